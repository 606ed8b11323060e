// The audit log: who administered what, when. Whoever carries out an administrative act wraps it in `audited`, and the act
// is not done without its row: the row is committed with the first thing that the act commits. Rows are never changed or
// removed; each is bounded, and none holds a secret.

import { Clock, Effect } from "effect"
import type { ApiKey } from "../Domain/ApiKey.ts"
import type { Owner } from "../Domain/Owner.ts"
import { alsoCommit, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import * as Repo from "./AuditRepo.ts"

/** Who acts. `socket` and `direct`: a user by their own account, which nobody can check. */
export type Actor =
  | { readonly via: "socket" | "direct"; readonly who: string }
  | { readonly via: "api" | "portal"; readonly who: string; readonly owner: Owner }

/** Whether nobody has checked that it was them. */
export const isClaimed = (via: Repo.Via): boolean => via === "socket" || via === "direct"

export const keyActor = ({ account, id, mode }: ApiKey): Actor => ({ via: "api", who: id, owner: { account, mode } })

type Detail = string | number | boolean | ReadonlyArray<string> | undefined

/** What is done, and to what. */
export interface Act<Details extends Readonly<Record<string, Detail>> = Readonly<Record<string, Detail>>> {
  /** As the command is called, or what would be one. */
  readonly act: string
  readonly detail: Details
  /** Its row comes first, whatever becomes of it: what it sends into the world cannot be undone. */
  readonly first?: true
}

const longestText = 100
const mostItems = 8
const mostBytes = 1_000

const cut = (text: string): string => (text.length <= longestText ? text : `${text.slice(0, longestText - 1)}…`)

const bounded = (value: Detail): Detail => {
  if (typeof value === "string") return cut(value)
  if (typeof value !== "object") return value
  const more = value.length - mostItems
  return [...value.slice(0, mostItems).map(cut), ...(more > 0 ? [`and ${more} more`] : [])]
}

/** A detail as it is kept: a JSON object of at most 1,000 bytes; what does not fit is left out, and said to be. */
export const detailText = (detail: Act["detail"]): string => {
  let kept: Record<string, Detail> = {}
  for (const [name, value] of Object.entries(detail)) {
    const fields = { ...kept, [name]: bounded(value) }
    const longest = JSON.stringify({ ...fields, leftOut: true })
    if (Buffer.byteLength(longest) > mostBytes) return JSON.stringify({ ...kept, leftOut: true })
    kept = fields
  }
  return JSON.stringify(kept)
}

/** Adds to the row of an act what turns out while it is carried out, in the transaction that it is committed with. */
export type Note = (detail: Act["detail"]) => void

const entryOf = (actor: Actor, { act, detail }: Act, at: number) => ({
  at,
  via: actor.via,
  who: cut(actor.who),
  account: "owner" in actor ? actor.owner.account : undefined,
  mode: "owner" in actor ? actor.owner.mode : undefined,
  act,
  detail: detailText(detail)
})

/**
 * Carries out an administrative act, with its row in the audit log. The row is in the transaction of the first thing that
 * `work` commits; where it commits nothing, and does not fail, the row is stored before its result is given. A refused act
 * that has changed nothing leaves none.
 */
export const audited = <A, E, R>(
  actor: Actor,
  act: Act,
  carryOut: (note: Note) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | StoreUnavailable, R | Writer> =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const at = yield* Clock.currentTimeMillis
    let isStored = false
    let noted: Act["detail"] = {}
    const store = Effect.gen(function* () {
      if (isStored) return
      const tx = yield* Tx
      yield* Repo.insert(entryOf(actor, { ...act, detail: { ...act.detail, ...noted } }, at))
      tx.afterCommit(() => {
        isStored = true
      })
    })
    if (act.first) yield* writer.write(store)
    const note: Note = (detail) => {
      noted = { ...noted, ...detail }
    }
    const result = yield* Effect.locally(carryOut(note), alsoCommit, store)
    if (!isStored) yield* writer.write(store)
    return result
  })
