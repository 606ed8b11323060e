/** The table `collected`: what was moved away from receiving addresses, as a broadcast has accounted for it. */
import { Effect } from "effect"
import { type ChainName, type Mode, type Network, networkKey } from "../../Domain/Chain.ts"
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
  /** Of the address's own transaction; absent for an authorization, which another address carries. */
  readonly nonce?: number | undefined
}

/** Adds transfers; those that are there already stay as they are. Gives how many are new. */
export const add = (db: Db, { chain, mode }: Network, transfers: ReadonlyArray<CollectedTransfer>, now: number) =>
  Effect.gen(function* () {
    let added = 0
    for (const { address, amount, currency, hash, nonce, place, to } of transfers) {
      const known = yield* db.get<{ readonly one: 1 }>(
        "SELECT 1 AS one FROM collected WHERE chain = ? AND mode = ? AND tx_hash = ? AND place = ?",
        [chain, mode, hash, place]
      )
      if (known !== undefined) continue
      yield* execute(
        `INSERT INTO collected (chain, mode, tx_hash, place, address, receiver, currency, amount, noted_at, nonce)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        [chain, mode, hash, place, address, to, currency, amount, now, nonce ?? null]
      )
      added += 1
    }
    return added
  })

/** An address on one chain. */
interface NetworkAddress extends Network {
  /** EIP-55 form. */
  readonly address: string
}

const placeOf = (place: NetworkAddress): string => `${networkKey(place)} ${place.address}`

/** How many of their own transactions these addresses are known to have sent. */
export const transactionsOf = (db: Db, places: ReadonlyArray<NetworkAddress>) =>
  Effect.map(
    db.all<{ readonly chain: ChainName; readonly mode: Mode; readonly address: string; readonly count: number }>(
      `SELECT chain, mode, address, count(DISTINCT nonce) AS count FROM collected INDEXED BY collected_address
       WHERE address IN (SELECT value FROM json_each(?)) GROUP BY address, chain, mode`,
      [JSON.stringify(places.map(({ address }) => address))]
    ),
    (rows) => {
      const counts = new Map(rows.map((row) => [placeOf(row), row.count]))
      return (place: NetworkAddress): number => counts.get(placeOf(place)) ?? 0
    }
  )

/** When the newest of them was noted, Unix milliseconds. */
export const newest = (db: Db) =>
  Effect.map(db.get<{ at: number | null }>("SELECT max(noted_at) AS at FROM collected"), (row) => row?.at ?? undefined)
