/**
 * A row of the ledger, described once: money that came, went back, was collected, or paid for gas, with its worth when tilld
 * first stored it. The API, the command, the portal and its file show these fields; every sum is a sum over them.
 */
import { BigDecimal, Schema } from "effect"
import { count, idPattern, maybe, text, timestamp } from "../lib/annotations.ts"
import { ChainName, type Mode } from "./Chain.ts"
import { decimalText, Fiat } from "./Currency.ts"
import { RefundStatus } from "./Refund.ts"

const units = { pattern: "^(0|[1-9][0-9]*)$" }
const address = { pattern: "^0x[0-9a-fA-F]{40}$" }
const maybeText = (...given: Parameters<typeof text>) => maybe(text(...given))

/** Why a rate is not known: the token has no price, no source had a fresh one, or the money was seen a day after its block. */
export const UnknownRate = Schema.Literal("unknown_token", "no_fresh_price", "seen_late", "too_small")
export type UnknownRate = typeof UnknownRate.Type

export const LedgerKind = Schema.Literal("receipt", "refund", "collection", "gas")
export type LedgerKind = typeof LedgerKind.Type

export const LedgerRow = Schema.Struct({
  id: text(
    "Identifier of the row. A reorg that mines the same transfer again changes nothing of it.",
    idPattern("led")
  ),
  at: timestamp("The time of its block"),
  kind: LedgerKind.annotations({
    description:
      "`receipt`: money that came. `refund`: money that was sent back. `collection`: money that `tilld sweep` moved to the operator's own address. `gas`: what a transaction of `tilld sweep` paid."
  }),
  refund: maybeText("The refund; absent where it is none.", idPattern("ref")),
  status: maybe(
    RefundStatus.annotations({
      description: "Of a refund: while it is `noted`, the chain has not shown it, and `at` is the time of its record."
    })
  ),
  payment: maybeText("The payment; absent where there are several, as of a batch's gas.", idPattern("pay")),
  merchantRef: maybeText("The payment's reference."),
  chain: ChainName.annotations({ description: "The chain that the money moved on." }),
  currency: text("What moved: a token's symbol, a wrong token's name, or its contract."),
  amount: text("How much, in the smallest unit.", units),
  decimals: maybe(count("Decimals of the currency; absent where they are not known.")),
  quantity: maybeText("The amount in whole tokens, a decimal."),
  from: maybeText("Who sent it, in EIP-55 form; absent where that is not known.", address),
  to: maybeText(
    "Who received it, in EIP-55 form; of gas, what the transaction called. Absent for a refund whose receiver is not known.",
    address
  ),
  txHash: maybeText("The transaction; absent where no node can tell it.", { pattern: "^0x[0-9a-fA-F]{64}$" }),
  what: maybeText(
    "Of a receipt what the money is, as for the payment. Of a refund and of gas who paid: a receiving `address`, the `sponsor`, or `elsewhere`."
  ),
  decision: Schema.Literal("accepted", "refunded", "open", "none").annotations({
    description: "What was decided on the money of a receipt that did not fit; `none` where nothing had to be."
  }),
  credited: maybeText("How much of a receipt is income, in the smallest unit; of a refund, how much of it was.", units),
  worth: maybeText(
    "The amount in the account's currency when tilld first stored it, a decimal with at most four digits behind the point. It never changes. Absent where no rate was known."
  ),
  income: maybeText(
    "What the row adds to the income, in the account's currency: the worth of `credited`, below zero for a refund."
  ),
  worthCurrency: maybe(Fiat.annotations({ description: "The account's currency of then." })),
  rate: maybeText("Units of that currency for one whole token."),
  rateSource: maybeText("Where the rate is from: `quote`, or the names of price sources."),
  worthUnknown: maybe(
    UnknownRate.annotations({
      description:
        "Why there is no worth. `unknown_token`: it has no price. `no_fresh_price`: no source had one. `seen_late`: the money was seen more than a day after its block. `too_small`: it is not credited."
    })
  )
}).annotations({ identifier: "LedgerRow", description: "Money that moved, and its worth at that moment." })
export type LedgerRow = typeof LedgerRow.Type

/** A row with whose it is, as operators see it; of several accounts, or of a lost payment, it is no one's. */
export interface OwnedRow extends LedgerRow {
  readonly account?: string
  readonly mode: Mode
}

const scale = 4
const zero = BigDecimal.make(0n, scale)

/** A decimal with two to four digits behind the point: `110.00`. */
export const worthText = (worth: BigDecimal.BigDecimal): string => {
  const { value } = BigDecimal.scale(worth, scale)
  const digits = decimalText(`${value < 0n ? -value : value}`, scale) ?? ""
  return `${value < 0n ? "-" : ""}${digits.replace(/0{1,2}$/, "")}`
}

/** What base units are worth at a rate, to a hundredth of a cent. */
export const worthAt = (amount: bigint, decimals: number, rate: string): BigDecimal.BigDecimal =>
  BigDecimal.round(BigDecimal.multiply(BigDecimal.make(amount, decimals), BigDecimal.unsafeFromString(rate)), { scale })

/** What moved of a currency on a chain; base units. */
export interface LedgerSum {
  readonly chain: ChainName
  readonly currency: string
  readonly decimals: number | undefined
  received: bigint
  /** From receiving addresses alone, as of gas. */
  refunded: bigint
  collected: bigint
  gas: bigint
  /** Income less what was refunded of it. */
  income: bigint
}

/** Sums of rows: by chain and currency, and the income by the currencies that the account counted in. */
export const addUp = (rows: Iterable<LedgerRow>) => {
  const sums = new Map<string, LedgerSum>()
  const income = new Map<Fiat, BigDecimal.BigDecimal>()
  /** Rows of income whose worth is not known. */
  let unknown = 0
  for (const row of rows) {
    const { chain, credited = "0", currency, decimals, kind, what, worthCurrency } = row
    const key = `${chain} ${currency} ${decimals}`
    const none = { chain, currency, decimals, received: 0n, refunded: 0n, collected: 0n, gas: 0n, income: 0n }
    const sum = sums.get(key) ?? none
    sums.set(key, sum)
    const amount = BigInt(row.amount)
    if (kind === "receipt") sum.received += amount
    if (kind === "refund" && what === "address") sum.refunded += amount
    if (kind === "collection") sum.collected += amount
    if (kind === "gas" && what === "address") sum.gas += amount
    sum.income += kind === "refund" ? -BigInt(credited) : BigInt(credited)
    if (row.income === undefined && BigInt(credited) > 0n) unknown += 1
    if (row.income === undefined || worthCurrency === undefined) continue
    const before = income.get(worthCurrency) ?? zero
    income.set(worthCurrency, BigDecimal.sum(before, BigDecimal.unsafeFromString(row.income)))
  }
  return { sums: [...sums.values()], income, unknown }
}

/** What the rows say is at the receiving addresses. */
export const leftOf = ({ collected, gas, received, refunded }: LedgerSum): bigint =>
  received - refunded - collected - gas
