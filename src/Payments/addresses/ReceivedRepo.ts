/** The receiving addresses to which money came on a chain: what there may be to collect. */
import { Effect } from "effect"
import type { ChainName, Mode, Network } from "../../Domain/Chain.ts"
import type { AccountId } from "../../Domain/Ids.ts"
import type { Db } from "../../Sql.ts"

export interface ReceivedRow {
  readonly payment: string
  readonly account: string
  /** EIP-55 form. */
  readonly address: string
  /** The n and the i of its path m/44'/60'/n'/0/i; null where the wallet's key does not say n. */
  readonly walletAccount: number | null
  readonly index: number
  readonly isOpen: 0 | 1
  /** Some of its money, dust apart, is not confirmed yet. */
  readonly isUnconfirmed: 0 | 1
  readonly openExceptions: number
}

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
    const last = yield* db.get<{ sequence: number }>("SELECT max(sequence) AS sequence FROM payments")
    const until = after + window
    const rows = yield* db.all<ReceivedRow>(
      `SELECT p.id AS payment, p.account_id AS account, p.address, w.account_number AS walletAccount,
         p.wallet_index AS "index", p.status IN ('pending', 'detecting') AS isOpen,
         EXISTS (SELECT 1 FROM receipts r INDEXED BY receipts_payment
                 WHERE r.payment_id = p.id AND r.chain = ? AND r.canonical = 1 AND r.corroborated = 0
                   AND r.dust IS NULL) AS isUnconfirmed,
         (SELECT count(*) FROM exceptions e INDEXED BY exceptions_payment
          WHERE e.payment_id = p.id AND e.closed_at IS NULL) AS openExceptions
       FROM payments p JOIN wallets w ON w.fingerprint = p.wallet
       WHERE p.sequence > ? AND p.sequence <= ? AND p.mode = ? AND (? IS NULL OR p.account_id = ?)
         AND EXISTS (SELECT 1 FROM receipts r INDEXED BY receipts_payment
                     WHERE r.payment_id = p.id AND r.chain = ? AND r.canonical = 1)
       ORDER BY p.sequence`,
      [chain, after, until, mode, account ?? null, account ?? null, chain]
    )
    return { rows, next: until < (last?.sequence ?? 0) ? until : undefined }
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

interface AmountRow extends Pick<MovedRow, "account" | "chain" | "currency" | "mode"> {
  readonly address: string
  readonly amount: string
}

/**
 * Those of the next `window` payments behind the sequence `after`, and the sequence up to which was looked, as `received`.
 * Without dust, of which anyone may send any number of rows, and which is not worth its gas.
 */
export const moved = (db: Db, after: number, window: number) =>
  Effect.gen(function* () {
    const last = yield* db.get<{ sequence: number }>("SELECT max(sequence) AS sequence FROM payments")
    const until = after + window
    const received = yield* db.all<AmountRow>(
      `SELECT p.account_id AS account, p.address, r.chain, p.mode, r.currency, r.amount
       FROM payments p CROSS JOIN receipts r INDEXED BY receipts_payment ON r.payment_id = p.id
       WHERE p.sequence > ? AND p.sequence <= ? AND r.dust IS NULL AND r.canonical = 1`,
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
    const page: MovedPage = { rows: [...found.values()], next: until < (last?.sequence ?? 0) ? until : undefined }
    return page
  })
