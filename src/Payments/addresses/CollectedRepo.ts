/**
 * The tables `collected` and `gas`: what was moved away from receiving addresses, and what that cost, as a broadcast has accounted
 * for it. And the addresses to which money came: what there may be to collect.
 */
import { Effect } from "effect"
import { type ChainName, chainTraits, type Mode, type Network, networkKey } from "../../Domain/Chain.ts"
import { type Fiat, nativeToken } from "../../Domain/Currency.ts"
import type { PaymentException } from "../../Domain/Exception.ts"
import type { AccountId, PaymentId } from "../../Domain/Ids.ts"
import { type PricedMoment, rateNow } from "../../Quotes/frozenRates.ts"
import { anyRow, type Db, execute, oneValue } from "../../Sql.ts"
import type { ReceivedPayment } from "./receivedPayment.ts"

export interface CollectedTransfer {
  readonly hash: string
  /** The place of the move in its plan. */
  readonly place: number
  /** EIP-55 form, both. */
  readonly address: string
  readonly to: string
  readonly currency: string
  readonly amount: string
  /** The refund that it pays. */
  readonly refund?: string | undefined
  /** The time of its block, Unix seconds. */
  readonly at: number
  /** Of the address's own transaction; absent for an authorization, which another address carries. */
  readonly nonce?: number | undefined
}

/** The rate of an account's token now. `at`: of the block, Unix seconds. */
export const accountRate = (
  db: Db,
  { now, prices }: PricedMoment,
  account: AccountId | undefined,
  symbol: string,
  at: number
) =>
  Effect.map(
    oneValue<Fiat>(db, "SELECT currency FROM shops WHERE account_id = ?", [account ?? ""]),
    (currency = "USD") => rateNow(prices, symbol, currency, at, now)
  )

/** Adds transfers; those that are there already stay as they are. Gives how many are new. */
export const add = (
  db: Db,
  { chain, mode }: Network,
  transfers: ReadonlyArray<CollectedTransfer>,
  moment: PricedMoment
) =>
  Effect.gen(function* () {
    let added = 0
    for (const { address, amount, at, currency, hash, nonce, place, refund, to } of transfers) {
      const isSame = "chain = ? AND mode = ? AND tx_hash = ? AND place = ?"
      if (yield* anyRow(db, `SELECT 1 FROM collected WHERE ${isSame}`, [chain, mode, hash, place])) continue
      const owner = yield* db.get<OwnerRow>(`${selectOwners} WHERE address = ?`, [address])
      yield* execute(
        `INSERT INTO collected (chain, mode, tx_hash, place, address, receiver, currency, amount, refund, block_time,
           noted_at, nonce, account_id, payment_id, rate, rate_currency, rate_source)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        [
          ...[chain, mode, hash, place, address, to, currency, amount, refund ?? null, at, moment.now, nonce ?? null],
          ...[
            owner?.account ?? null,
            owner?.payment ?? null,
            ...(yield* accountRate(db, moment, owner?.account, currency, at))
          ]
        ]
      )
      if (refund !== undefined) yield* execute("UPDATE refunds SET block_time = ? WHERE id = ?", [at, refund])
      added += 1
    }
    return added
  })

/** What a transaction has collected. Addresses in lower case. */
export const collectionsIn = (db: Db, { chain, mode }: Network, txHash: string) =>
  db.all<{ readonly address: string; readonly receiver: string; readonly amount: string }>(
    `SELECT lower(address) AS address, lower(receiver) AS receiver, amount FROM collected
     WHERE chain = ? AND mode = ? AND tx_hash = ? AND refund IS NULL`,
    [chain, mode, txHash]
  )

interface OwnerRow {
  readonly account: AccountId
  readonly payment: PaymentId
}
const selectOwners = "SELECT account_id AS account, id AS payment FROM payments"

export interface PaidGas {
  readonly hash: string
  /** EIP-55 form, both. */
  readonly payer: string
  readonly to: string
  readonly wei: string
  /** The time of its block, Unix seconds. */
  readonly at: number
}

/**
 * Adds the gas of transactions, after what they have moved: it belongs to the account and the payment that they were for,
 * where that is one. Those that are there already stay as they are.
 */
export const addGas = (db: Db, { chain, mode }: Network, paid: ReadonlyArray<PaidGas>, moment: PricedMoment) =>
  Effect.gen(function* () {
    for (const { at, hash, payer, to, wei } of paid) {
      const [first, ...others] = yield* db.all<OwnerRow>(
        `${selectOwners} WHERE mode = ? AND address IN (
           SELECT address FROM collected WHERE chain = ? AND mode = ? AND tx_hash = ? UNION VALUES (?), (?))`,
        [mode, chain, mode, hash, payer, to]
      )
      const account = others.every(({ account }) => account === first?.account) ? first?.account : undefined
      const payment = others.length === 0 ? first?.payment : undefined
      const rate = yield* accountRate(db, moment, account, nativeToken(chain), at)
      yield* execute(
        `INSERT INTO gas (chain, mode, tx_hash, payer, receiver, amount, account_id, payment_id, block_time, rate,
           rate_currency, rate_source)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        [chain, mode, hash, payer, to, wei, account ?? null, payment ?? null, at, ...rate]
      )
    }
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
export const newest = (db: Db) => oneValue<number>(db, "SELECT max(noted_at) FROM collected")

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
       WHERE p.sequence > ? AND p.sequence <= ? AND p.mode = ? AND (CAST(? AS TEXT) IS NULL OR p.account_id = ?)
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
       WHERE p.tx_hash IS NOT NULL AND e.kind IS DISTINCT FROM 'unattributed'
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
