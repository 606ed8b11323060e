/** The receiving addresses to which money came on a chain: what there may be to collect. */
import { Effect } from "effect"
import { type ChainName, chainTraits, type Mode, type Network } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { PaymentException } from "../../Domain/Exception.ts"
import type { AccountId } from "../../Domain/Ids.ts"
import { type Db, oneValue } from "../../Sql.ts"
import type { ReceivedPayment } from "./receivedPayment.ts"

interface ReceivedRow extends Omit<ReceivedPayment, "held" | "isOpen" | "walletAccount"> {
  /** Null where the wallet's key does not say it. */
  readonly walletAccount: number | null
  readonly isOpen: 0 | 1
  /** JSON: what of its money on the chain waits, as `ReceivedPayment` has it. */
  readonly held: string
}

/** `until`, unless it is the last payment's sequence, or behind it. */
const nextAfter = (db: Db, until: number) =>
  Effect.map(oneValue<number>(db, "SELECT max(sequence) FROM payments"), (last = 0) =>
    until < last ? until : undefined
  )

/**
 * Those of the next `window` payments behind the sequence `after`, of any account or of one, and the sequence up to which was
 * looked; undefined when there are no more.
 */
export const received = (
  db: Db,
  { chain, mode }: Network,
  account: string | undefined,
  after: number,
  window: number
) =>
  Effect.gen(function* () {
    const until = after + window
    const rows = yield* db.all<ReceivedRow>(
      `SELECT p.id AS payment, p.account_id AS account, p.address, w.account_number AS walletAccount,
         p.wallet_index AS "index", p.status IN ('pending', 'detecting') OR EXISTS (
           SELECT 1 FROM exceptions e INDEXED BY exceptions_payment
           WHERE e.payment_id = p.id AND e.closed_at IS NULL AND e.kind = 'reorged') AS isOpen,
         (SELECT json_group_array(json_object('currency', currency, 'amount', amount, 'is', waits)) FROM (
            SELECT e.currency, e.amount, 'exception' AS waits FROM exceptions e INDEXED BY exceptions_payment
            WHERE e.payment_id = p.id AND e.chain = ? AND e.closed_at IS NULL
            UNION ALL
            SELECT f.currency, f.amount, 'refund' FROM refunds f INDEXED BY refunds_payment
            WHERE f.payment_id = p.id AND f.chain = ? AND f.status IN ('noted', 'begun', 'not_found')
            UNION ALL
            SELECT r.currency, r.amount, 'confirmations' FROM receipts r INDEXED BY receipts_payment
            WHERE r.payment_id = p.id AND r.chain = ? AND r.canonical = 1 AND r.corroborated = 0
              AND r.unverifiable = 0 AND r.listed IN ('own', 'stray'))) AS held
       FROM payments p JOIN wallets w ON w.fingerprint = p.wallet
       WHERE p.sequence > ? AND p.sequence <= ? AND p.mode = ? AND (? IS NULL OR p.account_id = ?)
         AND EXISTS (SELECT 1 FROM receipts r INDEXED BY receipts_payment
                     WHERE r.payment_id = p.id AND r.chain = ? AND r.canonical = 1)
       ORDER BY p.sequence`,
      [chain, chain, chain, after, until, mode, account ?? null, account ?? null, chain]
    )
    return { rows, next: yield* nextAfter(db, until) }
  })

/** What an address has received of a currency, and what was moved away from it; base units. */
export interface MovedRow {
  readonly account: AccountId
  readonly chain: ChainName
  readonly mode: Mode
  readonly currency: string
  readonly received: bigint
  readonly collected: bigint
}

export interface MovedPage {
  readonly rows: ReadonlyArray<MovedRow>
  readonly next: number | undefined
}

/** What is left of a currency at an address. Less coin than a transfer may cost is gas: it was sent there to collect tokens. */
export const leftOf = (chain: ChainName, currency: string, left: bigint): bigint => {
  const least = currency === nativeToken(chain) ? chainTraits[chain].mostGas : 0n
  return left > least ? left : 0n
}

interface AmountRow extends Pick<MovedRow, "account" | "chain" | "currency" | "mode"> {
  readonly address: string
  readonly amount: string
}

/**
 * Those of the next `window` payments behind the sequence `after`, and the sequence up to which was looked, as `received`.
 * Without what is too small to be credited, of which anyone may send any number of rows, and which is not worth its gas.
 */
export const moved = (db: Db, after: number, window: number) =>
  Effect.gen(function* () {
    const until = after + window
    const received = yield* db.all<AmountRow>(
      `SELECT p.account_id AS account, p.address, r.chain, p.mode, r.currency, r.amount
       FROM payments p CROSS JOIN receipts r INDEXED BY receipts_payment ON r.payment_id = p.id
       WHERE p.sequence > ? AND p.sequence <= ? AND r.listed IN ('own', 'stray') AND r.canonical = 1`,
      [after, until]
    )
    const collected = yield* db.all<AmountRow>(
      `SELECT p.account_id AS account, p.address, c.chain, p.mode, c.currency, c.amount
       FROM payments p CROSS JOIN collected c INDEXED BY collected_address ON c.address = p.address AND c.mode = p.mode
       WHERE p.sequence > ? AND p.sequence <= ?`,
      [after, until]
    )
    const found = new Map<string, MovedRow>()
    const add = ({ account, address, chain, currency, mode }: AmountRow, came: bigint, went: bigint) => {
      const key = `${address} ${chain} ${currency}`
      const before = found.get(key) ?? { account, chain, mode, currency, received: 0n, collected: 0n }
      found.set(key, { ...before, received: before.received + came, collected: before.collected + went })
    }
    for (const row of received) add(row, BigInt(row.amount), 0n)
    for (const row of collected) add(row, 0n, BigInt(row.amount))
    const page: MovedPage = { rows: [...found.values()], next: yield* nextAfter(db, until) }
    return page
  })

/** An exception at an address (lower case) of a payment; none where a lost database handed it out. */
type Held = Pick<PaymentException, "address" | "chain" | "currency" | "payment">

/**
 * What counts for payments at the addresses of exceptions, of the same currency and chain, and was not moved away: what two
 * providers have seen come, less open exceptions, refunds that plans pay, and what broadcasts have moved. Without coin at the
 * address of a token's payment, which may be gas, and without what is too small to be credited.
 */
export const keptBeside = (db: Db, exceptions: ReadonlyArray<Held>) =>
  Effect.map(
    db.all<Pick<AmountRow, "amount" | "chain" | "currency"> & { readonly payment: string; readonly sign: 1 | -1 }>(
      `WITH listed AS (SELECT DISTINCT p.id, p.address, p.mode, p.currency FROM json_each(?) JOIN payments p ON p.id = value)
       SELECT l.id AS payment, r.chain, r.currency, r.amount, 1 AS sign
       FROM listed l CROSS JOIN receipts r INDEXED BY receipts_payment ON r.payment_id = l.id AND r.listed IN ('own', 'stray')
       WHERE r.canonical = 1 AND r.corroborated = 1 AND r.tx_hash IS NOT NULL
         AND (r.currency = l.currency OR r.currency NOT IN ('ETH', 'MATIC'))
       UNION ALL SELECT l.id, e.chain, e.currency, e.amount, -1
       FROM listed l CROSS JOIN exceptions e INDEXED BY exceptions_payment ON e.payment_id = l.id
       WHERE e.closed_at IS NULL AND e.tx_hash IS NOT NULL AND e.kind NOT IN ('reorged', 'unattributed')
       UNION ALL SELECT l.id, f.chain, f.currency, p.amount, -1
       FROM listed l CROSS JOIN refunds f INDEXED BY refunds_payment ON f.payment_id = l.id
         JOIN refund_parts p ON p.refund_id = f.id LEFT JOIN exceptions e ON e.id = p.exception_id
       WHERE p.tx_hash IS NOT NULL AND e.kind IS NOT 'unattributed'
         AND (f.status = 'begun' OR (f.status = 'noted' AND f.tx_hash IS NULL AND f.receiver IS NOT NULL))
       UNION ALL SELECT l.id, c.chain, c.currency, c.amount, -1
       FROM listed l CROSS JOIN collected c INDEXED BY collected_address ON c.address = l.address AND c.mode = l.mode`,
      [JSON.stringify(exceptions.flatMap(({ payment }) => payment ?? []))]
    ),
    (rows) => {
      const sums = new Map<string, bigint>()
      for (const { amount, chain, currency, payment, sign } of rows) {
        const key = `${payment} ${chain} ${currency}`
        sums.set(key, (sums.get(key) ?? 0n) + BigInt(sign) * BigInt(amount))
      }
      return ({ chain, currency, payment }: Held): bigint =>
        leftOf(chain, currency, sums.get(`${payment} ${chain} ${currency}`) ?? 0n)
    }
  )
