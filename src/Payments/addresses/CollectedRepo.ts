/** The tables `collected` and `gas`: what was moved away from receiving addresses, and what that cost, as a broadcast has accounted for it. */
import { Effect } from "effect"
import { type ChainName, type Mode, type Network, networkKey } from "../../Domain/Chain.ts"
import { type Fiat, nativeToken } from "../../Domain/Currency.ts"
import type { AccountId, PaymentId } from "../../Domain/Ids.ts"
import { type PricedMoment, rateNow } from "../../Quotes/frozenRates.ts"
import { anyRow, type Db, execute, oneValue } from "../../Sql.ts"

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
