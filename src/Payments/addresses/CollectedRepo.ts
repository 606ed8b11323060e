/** The table `collected`: what was moved away from receiving addresses, as a broadcast has accounted for it. */
import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import { type Db, execute } from "../../Sql.ts"

export interface CollectedTransfer {
  readonly hash: string
  /** The place of the move in its plan. */
  readonly place: number
  /** EIP-55 form, both. */
  readonly address: string
  readonly to: string
  readonly currency: string
  readonly amount: string
}

/** Adds transfers; those that are there already stay as they are. Gives how many are new. */
export const add = (db: Db, { chain, mode }: Network, transfers: ReadonlyArray<CollectedTransfer>, now: number) =>
  Effect.gen(function* () {
    let added = 0
    for (const { address, amount, currency, hash, place, to } of transfers) {
      const known = yield* db.get<{ readonly one: 1 }>(
        "SELECT 1 AS one FROM collected WHERE chain = ? AND mode = ? AND tx_hash = ? AND place = ?",
        [chain, mode, hash, place]
      )
      if (known !== undefined) continue
      yield* execute(
        `INSERT INTO collected (chain, mode, tx_hash, place, address, receiver, currency, amount, noted_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        [chain, mode, hash, place, address, to, currency, amount, now]
      )
      added += 1
    }
    return added
  })

/** When the newest of them was noted, Unix milliseconds. */
export const newest = (db: Db) =>
  Effect.map(db.get<{ at: number | null }>("SELECT max(noted_at) AS at FROM collected"), (row) => row?.at ?? undefined)
