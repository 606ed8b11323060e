import { Effect } from "effect"
import { execute } from "./store.ts"

const hash = (n: number) => `0x${n.toString(16).padStart(64, "0")}`

/** Money that came too late for a payment, as settlement stores it: the `n`-th exception of a test. Gives its id. */
export const storeLateMoney = (payment: string, n: number) => {
  const id = `exc_${String(n).padStart(22, "0")}`
  const insert = execute(
    `INSERT INTO exceptions (id, address, key, payment_id, account_id, wallet, wallet_index, kind, chain, mode, tx_hash,
       sender, currency, amount, opened_at)
     SELECT ?, lower(address), ?, id, account_id, wallet, wallet_index, 'late', chain, mode, ?, ?, currency, '700', ?
     FROM payments WHERE id = ?`,
    [id, `late:${n}`, hash(n), `0x${"7".repeat(40)}`, n * 1000, payment]
  )
  return Effect.as(insert, id)
}
