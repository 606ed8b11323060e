/**
 * The ledger in SQL: the rows of receipts, of what was sent back and collected, and of gas, newest first, each kind by its own
 * index of an account and the time. There is no second copy of the money: what those tables have is what the ledger has.
 */
import { hash } from "node:crypto"
import { Effect, Either, Schema } from "effect"
import { getAddress, type Hex } from "viem"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import { decimalsOn, decimalText, type Fiat, type NetworkTokens } from "../Domain/Currency.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { LedgerKind, type OwnedRow, type SummedRow, type UnknownRate, worthAt, worthText } from "../Domain/LedgerRow.ts"
import type { RefundStatus } from "../Domain/Refund.ts"
import { betweenParts } from "../Http/parts.ts"
import { present } from "../lib/Json.ts"
import { iso } from "../lib/moment.ts"
import { isBooked, isBookedRefund, isIncome } from "../migrations/0001_start/ledger.ts"
import { allValues, type Db, type Param } from "../Sql.ts"

/** The place of a row in the order of the ledger. */
export type LedgerPlace = readonly [at: number, kind: LedgerKind, ...key: ReadonlyArray<string | number>]

export interface LedgerFilter {
  /** Undefined: what is of no single account. */
  readonly account: string | undefined
  readonly mode: Mode
  /** The times of blocks, Unix milliseconds: from then on, and before. */
  readonly from?: number | undefined
  readonly until?: number | undefined
  readonly kind?: LedgerKind | undefined
  readonly payment?: string | undefined
  readonly chain?: ChainName | undefined
  readonly currency?: string | undefined
}

/** Where the rows of a kind are. */
interface Source {
  readonly table: string
  /** Its indexes by account and time, and by payment. */
  readonly indexes: readonly [booked: string, payment: string]
  readonly where: string
  /** The rest of its order behind the time, as its index has it. */
  readonly key: ReadonlyArray<string>
  readonly columns: string
}

/** Columns that all kinds have alike, beside those that sums need. */
const alike = `amount, tx_hash AS txHash, payment_id AS payment, rate_source AS source,
  (SELECT merchant_ref FROM payments WHERE id = payment_id) AS merchantRef`
const noRefund = "NULL AS decisions, NULL AS refund, NULL AS status"

const sources: Readonly<Record<LedgerKind, Source>> = {
  receipt: {
    table: "receipts",
    indexes: ["receipts_booked", "receipts_payment"],
    where: isBooked,
    key: ["chain", "block_hash", "address", "position"],
    columns: `${alike}, currency, sender AS "from", address AS "to", iif(listed IS NULL, 'too_small', kind) AS what, credited,
      NULL AS refund, NULL AS status, (SELECT group_concat(DISTINCT coalesce(outcome, 'open')) FROM exceptions AS e WHERE e.address = receipts.address
         AND e.chain = receipts.chain AND e.currency = receipts.currency AND e.tx_hash IS NOT DISTINCT FROM receipts.tx_hash) AS decisions`
  },
  refund: {
    table: "refunds",
    indexes: ["refunds_booked", "refunds_payment"],
    where: isBookedRefund,
    key: ["sequence"],
    // Of what it sends back, the money that is income otherwise: as for its receipt, what counts for a payment that is open or
    // confirmed, and what was accepted.
    columns: `${alike}, currency, sender AS "from", receiver AS "to", id AS refund, status, NULL AS decisions,
      CASE WHEN sender = address THEN 'address' WHEN sender IS NOT NULL THEN 'elsewhere' END AS what,
      (SELECT json_group_array(p.amount) FROM refund_parts AS p LEFT JOIN exceptions AS e ON e.id = coalesce(p.exception_id,
         (SELECT id FROM exceptions WHERE address = refunds.address AND tx_hash = p.tx_hash AND outcome = 'accepted'))
       WHERE p.refund_id = refunds.id AND (e.outcome = 'accepted' OR (p.exception_id IS NULL AND EXISTS (SELECT 1
         FROM payments WHERE id = refunds.payment_id AND status IN ('pending', 'detecting', 'confirmed'))))) AS credited`
  },
  collection: {
    table: "collected",
    indexes: ["collected_booked", "collected_payment"],
    // What pays a refund is the refund's row, unless a restored database has none.
    where: `NOT EXISTS (SELECT 1 FROM refunds AS paid WHERE paid.id = refund AND ${isBookedRefund})`,
    key: ["chain", "tx_hash", "place"],
    columns: `${alike}, currency, address AS "from", receiver AS "to", NULL AS what, NULL AS credited, ${noRefund}`
  },
  gas: {
    table: "gas",
    indexes: ["gas_booked", "gas_payment"],
    where: "true",
    key: ["chain", "tx_hash"],
    columns: `${alike}, iif(chain = 'polygon', 'MATIC', 'ETH') AS currency, payer AS "from", receiver AS "to",
      iif(EXISTS (SELECT 1 FROM payments WHERE address = payer), 'address', 'sponsor') AS what,
      NULL AS credited, ${noRefund}`
  }
}

/** What is income: read from its index alone, which has nothing of the many transfers that are too small. */
const incomeSources = {
  receipt: {
    ...sources.receipt,
    indexes: ["receipts_income", "receipts_payment"],
    where: isIncome,
    columns: "currency, credited AS amount, credited, NULL AS what"
  },
  refund: sources.refund
} as const

/** What sums need of a row. */
interface IncomeRow {
  readonly at: number
  readonly key: string
  readonly chain: ChainName
  readonly currency: string
  readonly amount: string
  readonly what: string | null
  /** Of a refund JSON: amounts to add up. */
  readonly credited: string | null
  /** Of the payment's token. */
  readonly decimals: number | null
  readonly rate: string | null
  readonly worthCurrency: Fiat | null
}

interface StoredRow extends IncomeRow {
  readonly txHash: string | null
  readonly position: string
  readonly from: Hex | null
  readonly to: Hex | null
  readonly refund: string | null
  readonly status: RefundStatus | null
  readonly payment: string | null
  readonly merchantRef: string | null
  readonly decisions: string | null
  readonly source: string | null
}

interface Found<Row = StoredRow> {
  readonly place: LedgerPlace
  readonly kind: LedgerKind
  readonly row: Row
}

/** At most `limit` rows of a kind behind a place, newest first. */
const ofKind = <Row extends IncomeRow>(
  db: Db,
  kind: LedgerKind,
  { columns, indexes, key, table, where }: Source,
  filter: LedgerFilter,
  after: LedgerPlace | undefined,
  limit: number
) => {
  const { account, from = 0, mode, payment, until } = filter
  const order = ["block_time", ...key]
  const [at, afterKind = kind, ...afterKey] = after ?? []
  const isSame = afterKind === kind && at !== undefined
  const before =
    at === undefined ? Math.ceil((until ?? Number.MAX_SAFE_INTEGER) / 1000) : afterKind > kind ? at + 1 : at
  const params: ReadonlyArray<Param> = isSame ? [at, ...afterKey] : [before]
  const bound = isSame ? `(${order.join(", ")}) < (${order.map(() => "?").join(", ")})` : "block_time < ?"
  const owned =
    payment === undefined
      ? "account_id IS NOT DISTINCT FROM ?"
      : "+account_id IS NOT DISTINCT FROM ? AND payment_id = ?"
  // A payment keeps the decimals that its token had, where it has had several.
  const decimals = `SELECT iif(min(decimals) < max(decimals), (SELECT decimals
      FROM payments AS p JOIN tokens AS t ON t.id = p.token
      WHERE p.id = ${table}.payment_id AND p.chain = ${table}.chain AND p.currency = symbol), min(decimals))
    FROM tokens WHERE chain = ${table}.chain AND mode = ${table}.mode AND symbol = ${table === "gas" ? "''" : `${table}.currency`}`
  const sql = `SELECT block_time AS at, json_array(${key.join(", ")}) AS key, chain, ${key.at(-1)} AS position, rate,
      rate_currency AS worthCurrency, (${decimals}) AS decimals, ${columns}
    FROM ${table} INDEXED BY ${indexes[payment === undefined ? 0 : 1]}
    WHERE mode = ? AND ${owned} AND ${where} AND block_time >= ? AND ${bound}
    ORDER BY ${order.map((column) => `${column} DESC`).join(", ")} LIMIT ?`
  const given = [mode, account ?? null, ...(payment === undefined ? [] : [payment])]
  return Effect.map(
    db.all<Row>(sql, [...given, Math.ceil(from / 1000), ...params, limit]),
    (rows): ReadonlyArray<Found<Row>> =>
      rows.map((row) => ({ kind, row, place: [row.at, kind, ...JSON.parse(row.key)] }))
  )
}

const Place = Schema.parseJson(
  Schema.Tuple([Schema.NonNegativeInt, LedgerKind], Schema.Union(Schema.String, Schema.NonNegativeInt))
)
const decodePlace = Schema.decodeUnknownEither(Place)

/** A place as a cursor: it is one of no list, and has nothing but a row of the owner's. */
export const placeText = (place: LedgerPlace): string => Buffer.from(JSON.stringify(place)).toString("base64url")

/** The place that a cursor is; undefined for a text that is not one. */
export const placeIn = (cursor: string): LedgerPlace | undefined => {
  const place = Either.getOrUndefined(decodePlace(Buffer.from(cursor, "base64url").toString("utf8")))
  return place !== undefined && place.length === 2 + sources[place[1]].key.length ? place : undefined
}

/** The accounts from an id on, in the order of ids, and then undefined: what is of no single account. */
export const accountsFrom = (db: Db, first: string) =>
  Effect.map(
    allValues<AccountId>(db, "SELECT id FROM accounts WHERE id >= ? ORDER BY id", [first]),
    (ids): ReadonlyArray<AccountId | undefined> => [...ids, undefined]
  )

/** The order of places, newest first. */
const newestFirst = (one: LedgerPlace, other: LedgerPlace): number => {
  const at = one.findIndex((part, i) => part !== other[i])
  return at === -1 ? 0 : (one[at] ?? "") < (other[at] ?? "") ? 1 : -1
}

const decisionOf = (decisions: string | null) =>
  (["open", "refunded", "accepted"] as const).find((one) => decisions?.split(",").includes(one)) ?? "none"

const idOf = (kind: LedgerKind, { chain, position, refund, to, txHash }: StoredRow): string =>
  `led_${hash("sha256", refund ?? [kind, chain, txHash, to, position].join("\n"), "base64url").slice(0, 22)}`

/** Base units of a refund that counted as income. */
const creditedOf = (parts: string): string =>
  `${(JSON.parse(parts) as ReadonlyArray<string>).reduce((sum, amount) => sum + BigInt(amount), 0n)}`

/** What sums need of a row, as the row itself has it. */
const summedOf = (networks: ReadonlyArray<NetworkTokens>, mode: Mode, { kind, row }: Found<IncomeRow>) => {
  const { amount, chain, currency, rate, worthCurrency } = row
  const decimals = row.decimals ?? decimalsOn(networks, { chain, mode }, currency)
  const isRefund = kind === "refund"
  const credited = isRefund ? creditedOf(row.credited ?? "[]") : (row.credited ?? undefined)
  const worthOf = (units: bigint) =>
    rate === null || decimals === undefined ? undefined : worthText(worthAt(units, decimals, rate), worthCurrency)
  const income = credited === undefined ? undefined : worthOf(BigInt(credited) * (isRefund ? -1n : 1n))
  const summed: SummedRow = {
    ...{ kind, chain, currency, amount },
    ...present({ decimals, what: row.what, credited, income, worthCurrency })
  }
  return { summed, worthOf }
}

const rowOf = (networks: ReadonlyArray<NetworkTokens>, { account, mode }: LedgerFilter, found: Found) => {
  const { kind, row } = found
  const { amount, rate } = row
  const { summed, worthOf } = summedOf(networks, mode, found)
  const worth = worthOf(BigInt(amount))
  const quantity = decimalText(amount, summed.decimals)
  const shown: OwnedRow = {
    ...present({ account }),
    ...{ mode, id: idOf(kind, row), at: iso(row.at * 1000) },
    ...present({ refund: row.refund, status: row.status, payment: row.payment, merchantRef: row.merchantRef }),
    ...summed,
    ...present({
      quantity,
      from: row.from && getAddress(row.from),
      to: row.to && getAddress(row.to),
      txHash: row.txHash
    }),
    decision: decisionOf(row.decisions),
    ...present({ worth }),
    ...(rate === null ? {} : { rate, rateSource: row.source ?? "" }),
    ...(rate === null ? { worthUnknown: (row.source ?? "too_small") as UnknownRate } : {})
  }
  return shown
}

/** Whether it is of the chain and the currency that a filter names, in any case of letters. */
const isMeant = ({ chain, currency }: LedgerFilter, { row }: Found<IncomeRow>): boolean =>
  (chain ?? row.chain) === row.chain && (currency ?? row.currency).toLowerCase() === row.currency.toLowerCase()

/** Rows that are looked at for one page, and at once, where the filter leaves out some: a page of few may have a next one. */
const mostLooked = 10_000
const atOnce = 500

/** A page of the ledger behind a place, newest first. `next`: the place of the page behind it; undefined at the end. */
export const page = Effect.fn("BooksRepo.page")(function* (
  db: Db,
  networks: ReadonlyArray<NetworkTokens>,
  filter: LedgerFilter,
  after: LedgerPlace | undefined,
  limit: number
) {
  const kinds = filter.kind === undefined ? LedgerKind.literals : [filter.kind]
  const isSifted = (filter.chain ?? filter.currency) !== undefined
  const size = isSifted ? atOnce : limit + 1
  const rows: Array<OwnedRow> = []
  let next = after
  for (let looked = 0; looked < mostLooked && rows.length < limit; looked += size) {
    const found: Array<Found> = []
    for (const kind of kinds) found.push(...(yield* ofKind<StoredRow>(db, kind, sources[kind], filter, next, size)))
    const merged = found.sort((one, other) => newestFirst(one.place, other.place)).slice(0, size)
    for (const [i, one] of merged.entries()) {
      next = one.place
      if (!isMeant(filter, one)) continue
      rows.push(rowOf(networks, filter, one))
      if (rows.length === limit && (i < merged.length - 1 || merged.length === size)) return { rows, next }
    }
    if (merged.length < size) return { rows, next: undefined }
    yield* betweenParts
  }
  return { rows, next }
})

/**
 * Tells of the rows of a filter that are income, newest first, of at most `most` receipts and as many refunds; with a turn of the
 * event loop between some and the next. Gives the time of the oldest one where there may be more; Unix milliseconds.
 */
export const eachIncome = Effect.fn("BooksRepo.eachIncome")(function* (
  db: Db,
  networks: ReadonlyArray<NetworkTokens>,
  filter: LedgerFilter,
  most: number,
  each: (row: SummedRow, at: number) => void
) {
  let since = 0
  for (const kind of ["receipt", "refund"] as const) {
    let after: LedgerPlace | undefined
    for (let left = (filter.kind ?? kind) === kind ? most : 0; left > 0; left -= atOnce) {
      const limit = Math.min(atOnce, left)
      const found: ReadonlyArray<Found<IncomeRow>> = yield* ofKind(db, kind, incomeSources[kind], filter, after, limit)
      for (const one of found) {
        if (isMeant(filter, one)) each(summedOf(networks, filter.mode, one).summed, one.row.at * 1000)
      }
      if (found.length < limit) break
      after = found.at(-1)?.place
      if (left <= atOnce) since = Math.max(since, (after?.[0] ?? 0) * 1000)
      yield* betweenParts
    }
  }
  return since === 0 ? undefined : since
})
