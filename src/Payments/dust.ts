import { BigDecimal } from "effect"
import { dustFloor } from "../Domain/Amount.ts"
import { deadline } from "../Domain/deadline.ts"
import type { Payment } from "../Domain/Payment.ts"
import { isEnded } from "../Domain/Payment.ts"
import type { DustKind, Receipt } from "../Domain/Receipt.ts"
import { isGas } from "./exceptions.ts"
import { elsewhere, headAtCreation, type Rules } from "./statusMachine.ts"

// Anybody may send a hundred thousand transfers to an address, for a few cents each. What is too small to matter by itself
// is settled as a sum, so that what one more of them costs does not depend on how many there are. It counts all the same.

/** Transfers of a payment's currency that are settled one by one; from there on, all are summed up. */
export const listedPaying = 1_000
/** The same for each other currency, and for an address whose payment is lost: there, nothing tells what they are worth. */
export const listedStray = 100

export interface DustRules extends Pick<Rules, "settleGrace"> {
  /** A transfer of the payment's currency worth less than this is dust, where the payment's worth is known; USD. */
  readonly floorUsd: BigDecimal.BigDecimal
}

/** How an address's dust is kept: one sum for each of the first five. */
export interface DustSum extends Pick<Receipt, "chain" | "mode" | "address" | "currency" | "corroborated" | "payment"> {
  readonly kind: DustKind
  readonly transfers: number
  /** Base units. */
  readonly amount: bigint
  /** No transfer of the sum is in a later block; its time in Unix seconds. */
  readonly newest: { readonly number: number; readonly time: number }
  /** The newest block that a reorg has taken some of it from. */
  readonly orphaned: number | undefined
  /** One of its transactions. */
  readonly txHash: string
  /** How much of it the payment had when it ended; undefined while it is open. */
  readonly decided: bigint | undefined
}

const ceil = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor - 1n) / divisor
const least = (one: bigint, other: bigint): bigint => (one < other ? one : other)

/** So much of the payment's currency as so many USD, rounded up, by what the payment was worth when it was made. */
const worth = ({ amount, usdValue }: Payment, usd: BigDecimal.BigDecimal): bigint => {
  const value = BigDecimal.unsafeFromString(usdValue ?? "0")
  if (value.value <= 0n || usd.value <= 0n) return 0n
  const scale = Math.max(value.scale, usd.scale)
  return ceil(amount * BigDecimal.scale(usd, scale).value, BigDecimal.scale(value, scale).value)
}

/** The least that is not dust of the payment's currency, base units. */
export const floorOf = (payment: Payment, { floorUsd }: DustRules): bigint => {
  const { amount, amountReceived = 0n, status } = payment
  return dustFloor(amount, isEnded(status) ? 0n : amount - amountReceived, worth(payment, floorUsd))
}

/** Whether it is of the payment's currency, on its chain. */
export const isPaying = (payment: Payment, { chain, currency }: Pick<Receipt, "chain" | "currency">): boolean =>
  chain === payment.chain && currency === payment.currency

/** Sums are of what a log or a block tells in full; what is put together from balances may yet become something else. */
export const isSummable = ({ position }: Pick<Receipt, "position">): boolean => /^(log|tx):/.test(position)

/** What a transfer is part of as dust; `none`: it is none of the payment's business. */
export const dustKind = (payment: Payment, receipt: Receipt, rules: DustRules): DustKind | "none" => {
  const isNewer = receipt.blockNumber > headAtCreation(payment)
  if (isPaying(payment, receipt)) {
    if (!isNewer) return "none"
    return receipt.blockTime * 1000 <= deadline(payment, rules.settleGrace) ? "paying" : "late"
  }
  if (isGas(payment, receipt, receipt.seenAt)) return "none"
  const isStray = receipt.chain === payment.chain ? isNewer : elsewhere(payment, [receipt]).length > 0
  return isStray ? "stray" : "none"
}

const never = 0
const afterAll = Number.MAX_SAFE_INTEGER

const receiptOf = (sum: DustSum, part: "known" | "since", amount: bigint): Receipt => ({
  chain: sum.chain,
  mode: sum.mode,
  blockHash: `dust of ${sum.currency} on ${sum.chain}`,
  blockNumber: sum.newest.number,
  blockTime: sum.newest.time,
  address: sum.address,
  position: `dust:${sum.kind}:${sum.corroborated}:${part}`,
  place: 0,
  txHash: sum.txHash,
  currency: sum.currency,
  amount,
  payment: sum.payment,
  canonical: true,
  corroborated: sum.corroborated,
  seenAt: part === "known" ? never : afterAll,
  dust: sum.kind
})

/** What a reorg has taken, of which it only matters where that was. */
const orphanedOf = (sum: DustSum): ReadonlyArray<Receipt> =>
  sum.orphaned === undefined
    ? []
    : [{ ...receiptOf(sum, "known", 1n), blockNumber: sum.orphaned, txHash: undefined, canonical: false }]

/**
 * The receipts that stand for an address's dust. What has come since the payment ended is apart from what it had then; that
 * which is corroborated counts as having been there first. What came last is first in order: what was sent back is of that.
 *
 * @param sums of each kind those that are corroborated before the others
 */
export const dustReceipts = (sums: ReadonlyArray<DustSum>): ReadonlyArray<Receipt> => {
  const decided = (one: DustSum) =>
    sums
      .filter(({ chain, currency, kind }) => kind === one.kind && chain === one.chain && currency === one.currency)
      .reduce((total, { amount, decided = amount }) => total + decided, 0n)
  const parts = sums.map((sum) => {
    const vouched = sums.find(
      ({ corroborated, chain, currency, kind }) =>
        corroborated && kind === sum.kind && chain === sum.chain && currency === sum.currency
    )
    const before = sum.corroborated ? 0n : least(vouched?.amount ?? 0n, decided(sum))
    const known = least(sum.amount, decided(sum) - before)
    return {
      since: sum.amount > known ? [receiptOf(sum, "since", sum.amount - known)] : [],
      known: known > 0n ? [receiptOf(sum, "known", known)] : []
    }
  })
  return [...parts.flatMap(({ since }) => since), ...parts.flatMap(({ known }) => known), ...sums.flatMap(orphanedOf)]
}
