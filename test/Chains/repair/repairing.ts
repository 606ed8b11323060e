import { Effect } from "effect"
import { claim } from "../../../src/Chains/repair/claim.ts"
import { rescan } from "../../../src/Chains/repair/rescan.ts"
import { Chains } from "../../../src/Chains.ts"
import { Reader, Tx } from "../../../src/Sql.ts"
import { write } from "../../lib/rows.ts"
import { alice, next, watchedPayment } from "../around.ts"
import type { ModelChain, ModelTransaction } from "../ModelChain.ts"

export const start = 10
const network = { chain: "ethereum", mode: "test" } as const

export const exclusively = Effect.map(Chains, (chains) => chains.exclusively(network))
export const rescanFrom = (from: number, to?: number) =>
  Effect.flatMap(exclusively, (turn) => rescan(turn, { from, ...(to === undefined ? {} : { to }) }, "1 minute"))
export const claimOf = (hash: string) => Effect.flatMap(exclusively, (turn) => claim(turn, hash))

/** All of the ledger but when each row was first seen. */
export const rows = Effect.flatMap(Reader, (reader) =>
  reader.all<object>(
    `SELECT chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount, payment_id,
       canonical, corroborated FROM receipts ORDER BY block_hash, address, position`
  )
)

export const checkpoint = Effect.flatMap(Reader, (reader) =>
  reader.get<object>("SELECT head_number, head_hash, start_number FROM scans")
)

interface Money {
  readonly block_hash: string
  readonly address: string
  readonly position: string
  readonly amount: string
}

/** Removes a receipt from the ledger; a coin's stays there as unattributed money. */
const lose = ({ address, amount, block_hash, position }: Money, keptAsUnattributed: boolean) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const key = [block_hash, address]
    const where = "block_hash = ? AND address = ? AND position"
    if (keptAsUnattributed) {
      const there = yield* tx.get<Money>(`SELECT amount FROM receipts WHERE ${where} = 'unattributed'`, key)
      yield* tx.run(`DELETE FROM receipts WHERE ${where} = 'unattributed'`, key)
      yield* tx.run(
        `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, currency, amount,
           payment_id, canonical, corroborated, seen_at)
         SELECT chain, mode, block_hash, address, 'unattributed', block_number, block_time, currency, ?, payment_id,
           canonical, corroborated, seen_at FROM receipts WHERE ${where} = ?`,
        [(BigInt(amount) + BigInt(there?.amount ?? 0)).toString(), ...key, position]
      )
    }
    yield* tx.run(`DELETE FROM receipts WHERE ${where} = ?`, [...key, position])
  })

/** Loses receipts as the choices say, one each: none, all of it, or only the knowledge of its transaction. */
export const damage = (choices: ReadonlyArray<"keep" | "drop" | "forget">) =>
  Effect.gen(function* () {
    const all = (yield* rows) as ReadonlyArray<Money>
    yield* write(
      Effect.forEach(
        all,
        (row, i) => {
          const choice = choices[i % choices.length]
          if (choice === "keep") return Effect.void
          return lose(row, choice === "forget" && row.position.startsWith("tx:"))
        },
        { concurrency: 1, discard: true }
      )
    )
  })

/** A payment to alice that has been read up to the block after its money. */
export const paid = (chain: ModelChain, money: ModelTransaction) =>
  Effect.gen(function* () {
    yield* watchedPayment(alice)
    yield* next(chain, money)
    yield* next(chain)
  })
