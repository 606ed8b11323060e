import { expect, it } from "@effect/vitest"
import type { Payment } from "../../src/Domain/Payment.ts"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import { exceptionsOf } from "../../src/Payments/exceptions.ts"
import { type Horizon, type Rules, undone } from "../../src/Payments/statusMachine.ts"
import { somePayment } from "../lib/payments.ts"

const rules: Rules = { settleGrace: 60_000, toleranceBps: 0 }

const confirmed = (currency: "ETH" | "USDC"): Payment =>
  somePayment({
    currency,
    status: "confirmed",
    amountReceived: 1000n,
    txHash: "0xt101",
    confirmedAt: 103_000,
    endedAt: 103_000
  })

const gone = (of: Payment): Receipt => ({
  chain: of.chain,
  mode: of.mode,
  blockHash: "0x101",
  blockNumber: 101,
  blockTime: 101,
  address: of.address,
  position: "tx:0",
  place: 0,
  txHash: "0xt101",
  currency: of.currency,
  amount: 1000n,
  payment: of.id,
  canonical: false,
  corroborated: true,
  seenAt: 101_000
})

const checkedAt = (number: number | undefined): Horizon => ({
  head: 400,
  headTime: 400,
  confirmations: 3,
  settled: undefined,
  checked: number === undefined ? undefined : { number, time: number },
  safe: undefined,
  finalized: 300,
  requires: undefined,
  elsewhereChecked: false,
  searched: Number.POSITIVE_INFINITY
})

// Coins that were mined again inside a contract are known to nobody before balances are compared.
it.each([
  ["ETH", undefined, undefined],
  ["ETH", 100, undefined],
  ["ETH", 101, "reorged"],
  ["USDC", undefined, "reorged"],
  ["USDC", 100, "reorged"]
] as const)(
  "a confirmed payment in %s, its balance compared at %s, whose final blocks lack its money: %s",
  (currency, checked, reason) => {
    const payment = confirmed(currency)
    expect(undone(payment, [gone(payment)], checkedAt(checked), rules, 500_000)?.payment.failureReason).toBe(reason)
  }
)

const arrived = (of: Payment, blockNumber: number, amount: bigint): Receipt => ({
  ...gone(of),
  blockHash: `0x${blockNumber}`,
  blockNumber,
  blockTime: blockNumber,
  txHash: `0xt${blockNumber}`,
  amount,
  canonical: true,
  seenAt: 102_000
})

const exceptions = (payment: Payment, receipts: ReadonlyArray<Receipt>) =>
  exceptionsOf(payment, receipts, rules).map(({ amount, kind, txHash }) => `${kind} ${amount} ${txHash}`)

it("money before the transaction that completed a payment counts in the surplus of that transaction only", () => {
  const payment = { ...confirmed("ETH"), txHash: "0xt102" }
  expect(exceptions(payment, [arrived(payment, 101, 1100n), arrived(payment, 102, 1000n)])).toEqual([
    "overpaid 1100 0xt102"
  ])
})

it("money that was orphaned when a payment failed, and is mined again, is found late however much was known", () => {
  const payment: Payment = {
    ...confirmed("ETH"),
    status: "failed",
    failureReason: "insufficient_amount",
    amountReceived: 300n,
    confirmedAt: undefined
  }
  expect(exceptions(payment, [arrived(payment, 101, 300n)])).toEqual([])
  expect(exceptions(payment, [arrived(payment, 101, 300n), arrived(payment, 102, 300n)])).toEqual([
    "found_late 300 0xt102"
  ])
})

it("of two transactions the one that is mined again is found late, not the one that was known all the time", () => {
  const payment: Payment = {
    ...confirmed("ETH"),
    status: "failed",
    failureReason: "insufficient_amount",
    amountReceived: 600n,
    confirmedAt: undefined
  }
  const known = { ...arrived(payment, 102, 600n), seenAt: 102_500 }
  const before = { ...arrived(payment, 101, 300n), canonical: false }
  const back = { ...before, blockHash: "0x103", blockNumber: 103, canonical: true, seenAt: 103_001 }
  expect(exceptions(payment, [before, known, back])).toEqual(["found_late 300 0xt101"])
})

it("money that is mined again is found late beside unattributed money", () => {
  const payment: Payment = {
    ...confirmed("ETH"),
    status: "failed",
    failureReason: "insufficient_amount",
    amountReceived: 500n,
    confirmedAt: undefined
  }
  const untold = { ...arrived(payment, 102, 500n), position: "unattributed", txHash: undefined }
  expect(exceptions(payment, [arrived(payment, 101, 300n), untold])).toEqual([
    "unattributed 500 undefined",
    "found_late 300 0xt101"
  ])
})

it("unattributed money reduces what a payment lacks since a reorg undid it", () => {
  const payment: Payment = {
    ...confirmed("ETH"),
    status: "failed",
    failureReason: "reorged",
    amountReceived: 700n
  }
  const untold = { ...arrived(payment, 102, 700n), position: "unattributed", txHash: undefined }
  expect(exceptions(payment, [{ ...gone(payment), amount: 300n }, untold])).toEqual([
    "unattributed 700 undefined",
    "reorged 300 0xt101"
  ])
})

it.each([
  ["ETH", ["wrong_chain 7 0xt120"]],
  // Gas to collect a token with.
  ["USDC", []]
] as const)("coins on another chain, after the end of a payment in %s: %s", (currency, found) => {
  const payment: Payment = { ...confirmed(currency), status: "expired", amountReceived: undefined, txHash: undefined }
  const stray: Receipt = { ...arrived(payment, 120, 7n), chain: "optimism", currency: "ETH", seenAt: 120_000 }
  expect(exceptions(payment, [stray])).toEqual(found)
})

it("gas for collecting a token stays no exception when a reorg undoes the payment", () => {
  const payment: Payment = { ...confirmed("USDC"), status: "failed", failureReason: "reorged", endedAt: 130_000 }
  const lost = { ...gone(payment), currency: "USDC", position: "log:0" }
  const gas: Receipt = { ...arrived(payment, 120, 7n), currency: "ETH", seenAt: 120_000 }
  expect(exceptions(payment, [lost, gas])).toEqual(["reorged 1000 0xt101"])
})
