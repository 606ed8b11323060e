/**
 * Dust: receipts that are settled as one sum instead of one by one. Anybody can send a hundred thousand transfers to an
 * address for a few cents each; with sums the cost of one more does not depend on how many there are. Dust counts towards
 * the payment like any other money.
 *
 * Pure rules: which receipts are dust, of which kind, and which receipts stand for the sums in the status machine and the
 * exceptions. `dustSums.ts` applies them, `DustRepo.ts` stores the sums.
 */
import { BigDecimal } from "effect"
import { dustFloor } from "../Domain/Amount.ts"
import { deadline, isEnded, type Payment } from "../Domain/Payment.ts"
import type { DustKind, Receipt } from "../Domain/Receipt.ts"
import { elsewhere, headAtCreation } from "./statusMachine.ts"

/** Receipts of the payment's currency that are listed, that is settled one by one; all further ones are summed up. */
export const listedPaying = 1_000
/** The same for each other currency, and for an address whose payment is lost: their worth is unknown. */
export const listedStray = 100

/** A sum of dust at an address, keyed by mode, chain, currency, kind and `corroborated`. */
export interface DustSum extends Pick<Receipt, "chain" | "mode" | "address" | "currency" | "corroborated" | "payment"> {
  readonly kind: DustKind
  readonly transfers: number
  /** Base units. */
  readonly amount: bigint
  /** The newest block with a transfer of the sum, or a newer one; `time` in Unix seconds. */
  readonly newest: { readonly number: number; readonly time: number }
  /** The number of the newest block whose part of the sum a reorg orphaned. */
  readonly orphaned: number | undefined
  /** One of its transactions. */
  readonly txHash: string
  /** How much of it the payment had when it ended; undefined while it is open. */
  readonly decided: bigint | undefined
}

const ceil = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor - 1n) / divisor
const least = (one: bigint, other: bigint): bigint => (one < other ? one : other)

/** Base units of the payment's currency that are worth `usd`, rounded up, by the payment's worth when it was created. */
const unitsWorth = ({ amount, usdValue }: Payment, usd: BigDecimal.BigDecimal): bigint => {
  const value = BigDecimal.unsafeFromString(usdValue ?? "0")
  if (value.value <= 0n || usd.value <= 0n) return 0n
  const scale = Math.max(value.scale, usd.scale)
  return ceil(amount * BigDecimal.scale(usd, scale).value, BigDecimal.scale(value, scale).value)
}

/**
 * The smallest amount of the payment's currency that is not dust; base units.
 *
 * @param floorUsd a transfer worth less than this is dust, where the payment's worth is known
 */
export const floorOf = (payment: Payment, floorUsd: BigDecimal.BigDecimal): bigint => {
  const { amount, amountReceived = 0n, status } = payment
  return dustFloor(amount, isEnded(status) ? 0n : amount - amountReceived, unitsWorth(payment, floorUsd))
}

/** Whether a receipt is in the payment's currency, on its chain. */
export const isPaying = (payment: Payment, { chain, currency }: Pick<Receipt, "chain" | "currency">): boolean =>
  chain === payment.chain && currency === payment.currency

/** Logs and transactions only: receipts that come from balances or traces may still be replaced by others. */
export const isSummable = ({ position }: Pick<Receipt, "position">): boolean => /^(log|tx):/.test(position)

/** The kind of dust that a receipt is; `none` where it does not concern the payment. */
export const dustKind = (payment: Payment, receipt: Receipt): DustKind | "none" => {
  const isNewer = receipt.blockNumber > headAtCreation(payment)
  if (isPaying(payment, receipt)) {
    if (!isNewer) return "none"
    return receipt.blockTime * 1000 <= deadline(payment) ? "paying" : "late"
  }
  const isStray = receipt.chain === payment.chain ? isNewer : elsewhere(payment, [receipt]).length > 0
  return isStray ? "stray" : "none"
}

const beforeAll = 0
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
  seenAt: part === "known" ? beforeAll : afterAll,
  dust: sum.kind
})

/** Stands for the orphaned part of a sum: only its block number matters. */
const orphanedOf = (sum: DustSum): ReadonlyArray<Receipt> =>
  sum.orphaned === undefined
    ? []
    : [{ ...receiptOf(sum, "known", 1n), blockNumber: sum.orphaned, txHash: undefined, canonical: false }]

/**
 * The receipts that stand for an address's dust. What came since the payment ended (`since`) is apart from what it had then
 * (`known`); corroborated dust counts as the older. The newest comes first: refunds are taken from that.
 *
 * @param sums of each kind, the corroborated ones before the others
 */
export const dustReceipts = (sums: ReadonlyArray<DustSum>): ReadonlyArray<Receipt> => {
  const decided = (one: DustSum) =>
    sums
      .filter(({ chain, currency, kind }) => kind === one.kind && chain === one.chain && currency === one.currency)
      .reduce((total, { amount, decided = amount }) => total + decided, 0n)
  const parts = sums.map((sum) => {
    const corroborated = sums.find(
      ({ corroborated, chain, currency, kind }) =>
        corroborated && kind === sum.kind && chain === sum.chain && currency === sum.currency
    )
    const before = sum.corroborated ? 0n : least(corroborated?.amount ?? 0n, decided(sum))
    const known = least(sum.amount, decided(sum) - before)
    return {
      since: sum.amount > known ? [receiptOf(sum, "since", sum.amount - known)] : [],
      known: known > 0n ? [receiptOf(sum, "known", known)] : []
    }
  })
  return [...parts.flatMap(({ since }) => since), ...parts.flatMap(({ known }) => known), ...sums.flatMap(orphanedOf)]
}
