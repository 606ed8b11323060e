import { Effect } from "effect"
import type { Mode } from "../Domain/Chain.ts"
import { type Db, Tx } from "../Sql.ts"

export const all = (db: Db) =>
  db.all<{ fingerprint: string; next_index: number }>("SELECT fingerprint, next_index FROM wallets")

/** Makes the wallet known if it is not. Gives its next index. */
export const ensure = (tx: Tx["Type"], fingerprint: string) =>
  Effect.map(
    tx.get<{ next_index: number }>(
      `INSERT INTO wallets (fingerprint, next_index) VALUES (?, 0)
       ON CONFLICT DO UPDATE SET next_index = next_index RETURNING next_index`,
      [fingerprint]
    ),
    (row) => row?.next_index ?? 0
  )

/** Takes the wallet's next index. */
export const nextIndex = (tx: Tx["Type"], fingerprint: string) =>
  Effect.map(
    tx.get<{ taken: number }>(
      "UPDATE wallets SET next_index = next_index + 1 WHERE fingerprint = ? RETURNING next_index - 1 AS taken",
      [fingerprint]
    ),
    (row) => {
      if (row === undefined) throw new Error(`wallet ${fingerprint} is not in the store`)
      return row.taken
    }
  )

export const jumpTo = (fingerprint: string, next: number) =>
  Effect.flatMap(Tx, (tx) => tx.run("UPDATE wallets SET next_index = ? WHERE fingerprint = ?", [next, fingerprint]))

/** Remembers addresses that a lost newer copy of this database may have handed out: those of the indexes from `from` on. */
export const keepGap = (fingerprint: string, mode: Mode, from: number, addresses: ReadonlyArray<string>, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const [i, address] of addresses.entries()) {
      yield* tx.run(
        "INSERT INTO gap_addresses (address, mode, wallet, wallet_index, created_at) VALUES (?, ?, ?, ?, ?)",
        [address, mode, fingerprint, from + i, now]
      )
    }
  })
