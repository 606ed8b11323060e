// The audit log: who did what administrative act, and when. Code that carries out such an act wraps it in `audited`. No
// act is done without its row: the row is committed together with the act's first write. Rows are never changed or
// deleted; their size is bounded, and none contains a secret.

import { Clock, Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import type { Person } from "../Domain/Person.ts"
import { cut } from "../lib/text.ts"
import { alsoCommit, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import * as Repo from "./AuditRepo.ts"
import type { Caller, Operation } from "./operation.ts"

/** Carries out an operation; one that administers with its row in the audit log. */
export const carryOut = <In, InJson, Out, OutJson, E, R>(
  { audit, auditFirst, name, run }: Operation<In, InJson, Out, OutJson, E, R>,
  input: In,
  caller: Caller
): Effect.Effect<Out, E | StoreUnavailable, R | Writer> => {
  if (audit === undefined) return run(input, caller, () => undefined)
  const act = { act: name, detail: audit(input), ...(auditFirst ? { first: auditFirst } : {}) }
  return audited(caller.actor, act, (note) => run(input, caller, note))
}

/** Who acts. With `socket` and `direct` the user name is claimed by the command and cannot be verified. */
export type Actor =
  | { readonly via: "socket" | "direct" | "daemon"; readonly who: string }
  | { readonly via: "api" | "portal"; readonly who: string; readonly owner: ActsOn }

/** The account that an act is about, in a mode or for its people; none for operators. */
type ActsOn = { readonly [Part in keyof Owner]?: Owner[Part] | undefined }

/** Whether the name of the actor is only claimed. */
export const isClaimed = (via: Repo.Via): boolean => via === "socket" || via === "direct"

/** A person of the portal as the audit log names them. */
export const personName = ({ id, name }: Pick<Person, "id" | "name">): string => `${id} ${name}`

/** Somebody of the portal who acts on people of an account, or on operators. */
export const onPeople = (who: string, account: Person["account"]): Actor => ({ via: "portal", who, owner: { account } })

/** A person who acts on people: signs in, invites, revokes. */
export const personActor = (person: Person): Actor => onPeople(personName(person), person.account)

export const keyActor = ({ account, id, mode }: ApiKey): Actor => ({ via: "api", who: id, owner: { account, mode } })

type Detail = string | number | boolean | ReadonlyArray<string> | undefined

/** What is done, and what it is done to. */
export interface Act<Details extends Readonly<Record<string, Detail>> = Readonly<Record<string, Detail>>> {
  /** The name of the command, e.g. `keys create`, even if there is no such command. */
  readonly act: string
  readonly detail: Details
  /** The row is committed before the act, even if the act then fails: it sends something that cannot be undone. */
  readonly first?: true
}

const longestText = 100
const mostItems = 8
const mostBytes = 1_000

const shortened = (text: string): string => cut(text, longestText, "…")

const bounded = (value: Detail): Detail => {
  if (typeof value === "string") return shortened(value)
  if (typeof value !== "object") return value
  const more = value.length - mostItems
  return [...value.slice(0, mostItems).map(shortened), ...(more > 0 ? [`and ${more} more`] : [])]
}

/** The stored form of a detail: a JSON object of at most 1,000 bytes. `leftOut` is true when fields did not fit. */
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

/** Adds fields to the row of an act while it is carried out, up to the commit of the row. */
export type Note = (detail: Act["detail"]) => void

const ownerOf = (actor: Actor): ActsOn => ("owner" in actor ? actor.owner : {})

const entryOf = (actor: Actor, { act, detail }: Act, at: number) => ({
  at,
  via: actor.via,
  who: shortened(actor.who),
  account: ownerOf(actor).account,
  mode: ownerOf(actor).mode,
  act,
  detail: detailText(detail)
})

/** Stores what the daemon notes by itself, in the caller's transaction. */
export const noteOfDaemon = (act: Act) =>
  Effect.flatMap(Clock.currentTimeMillis, (at) => Repo.insert(entryOf({ via: "daemon", who: "tilld" }, act, at)))

/** Stores the row of a person's act or refusal, in the caller's transaction. */
export const noteOf = (person: Person, act: Act) =>
  Effect.flatMap(Clock.currentTimeMillis, (at) => Repo.insert(entryOf(personActor(person), act, at)))

/**
 * Carries out an administrative act with its row in the audit log. The row is part of the first transaction that
 * `carryOut` commits. If it commits nothing and succeeds, the row is stored before the result is returned. An act that is
 * refused without a change leaves no row.
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

/** Carries out an act that is one command of the writer. */
export const auditedWrite = <A, E>(actor: Actor, act: Act, command: Effect.Effect<A, E, Tx>) =>
  Effect.flatMap(Writer, (writer) => audited(actor, act, () => writer.write(command)))
