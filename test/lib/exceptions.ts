import { Effect } from "effect"
import { execute } from "./store.ts"

const hash = (n: number) => `0x${n.toString(16).padStart(64, "0")}`

/** That a chain was read: twenty blocks more than before, each deep by then. */
const readOn = (payment: string) =>
  execute(
    `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
     SELECT chain, mode, 1, 112, '0x112', unixepoch(), 1 FROM payments WHERE id = ?
     ON CONFLICT (chain, mode) DO UPDATE SET head_number = scans.head_number + 20`,
    [payment]
  )

/** Money that came too late for a payment, as settlement stores it: the `n`-th exception of a test. Returns its id. */
export const storeLateMoney = (payment: string, n: number) => {
  const id = `exc_${String(n).padStart(22, "0")}`
  const writes = [
    execute("UPDATE payments SET created_head = coalesce(created_head, 0), floor = '0' WHERE id = ?", [payment]),
    execute(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
         amount, sender, payment_id, canonical, corroborated, seen_at)
       SELECT chain, mode, ?, lower(address), ?, created_head + 1, 4000000000, ?, currency, '700', ?, id, 1, 1, 1
       FROM payments WHERE id = ?`,
      [`0x${n}`, `log:${n}`, hash(n), `0x${"7".repeat(40)}`, payment]
    ),
    readOn(payment),
    execute(
      `INSERT INTO exceptions (id, address, key, payment_id, account_id, wallet, wallet_index, kind, chain, mode, tx_hash,
         sender, currency, amount, opened_at)
       SELECT ?, lower(address), 'late:' || chain || ':' || ? || ':' || currency, id, account_id, wallet, wallet_index, 'late',
         chain, mode, ?, ?, currency, '700', ?
       FROM payments WHERE id = ?`,
      [id, hash(n), hash(n), `0x${"7".repeat(40)}`, n * 1000, payment]
    )
  ]
  return Effect.as(Effect.all(writes, { concurrency: 1 }), id)
}

/** Money that has come for a pending payment, and waits for its confirmations, as the watcher and settlement store it. */
export const storeMoneyFor = (payment: string, amount: string, txHash = hash(1)) =>
  Effect.all(
    [
      readOn(payment),
      execute(
        `UPDATE payments SET status = 'detecting', created_head = 100, amount_received = ?, tx_hash = ? WHERE id = ?`,
        [amount, txHash, payment]
      ),
      execute(
        `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
           amount, payment_id, canonical, corroborated, seen_at)
         SELECT chain, mode, '0x110', lower(address), 'log:0', 110, unixepoch(), ?, currency, ?, id, 1, 1, 1
         FROM payments WHERE id = ?`,
        [txHash, amount, payment]
      )
    ],
    { concurrency: 1, discard: true }
  )
