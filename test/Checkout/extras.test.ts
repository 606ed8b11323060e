import { expect, it } from "vitest"
import { extrasOf } from "../../src/Checkout/extras.ts"
import type { PaymentException } from "../../src/Domain/Exception.ts"
import { somePayment } from "../lib/payments.ts"
import { testChain } from "../lib/settings.ts"

const networks = [testChain({ tokens: [{ symbol: "USDC", address: "0x1", decimals: 6 }] })]
const open = { status: "pending", failureReason: undefined, endedAt: undefined } as const
const short = { status: "failed", failureReason: "insufficient_amount", endedAt: 1 } as const
const confirmed = { status: "confirmed", failureReason: undefined, endedAt: 1 } as const

const exception = (over: Partial<PaymentException>): PaymentException => ({
  ...{ sequence: 1, id: "exc_1", key: "key", kind: "late", chain: "base", mode: "test", address: "0x1", block: 1 },
  ...{ txHash: "0xa", currency: "USDC", amount: 5n, sentBack: 0n, refunds: [], status: "open", openedAt: 1 },
  ...{ payment: somePayment().id, account: somePayment().account, index: 1, walletAccount: 0, revision: 1 },
  ...{ closedAt: undefined, decisionTx: undefined, note: "for the shop's eyes" },
  ...over
})

it.each([
  ["late", open, "open", "late"],
  ["overpaid", confirmed, "open", "overpaid"],
  ["wrong_token", open, "accepted", "wrong_token"],
  ["wrong_chain", short, "refunded", "wrong_chain"],
  ["found_late", short, "open", "found_late"],
  ["underpaid", short, "open", "other"],
  ["underpaid", short, "refunded", "other"],
  ["underpaid", confirmed, "open", "other"],
  // What counts for the payment now is not reported as extra.
  ["unattributed", open, "open", undefined],
  ["unattributed", confirmed, "open", "other"],
  // No money, or none any more.
  ["reorged", confirmed, "open", undefined],
  ["late", confirmed, "gone", undefined]
] as const)("a payer sees money that is %s", (kind, payment, status, expected) => {
  const found = extrasOf(somePayment(payment), [exception({ kind, status })], networks)
  expect(found.map((one) => one.kind)).toEqual(expected === undefined ? [] : [expected])
})

it("the amount is all that came, including what was refunded, and the note stays with the shop", () => {
  const refunds = [
    { amount: 2n, at: 1, txHash: "0xb", note: "private" },
    { amount: 1n, at: 2, txHash: undefined, note: undefined }
  ]
  const found = extrasOf(
    somePayment(),
    [
      exception({ amount: 2n, sentBack: 3n, refunds }),
      exception({ amount: 5n, sentBack: 5n, status: "refunded" }),
      exception({ currency: "USDC.e" })
    ],
    networks
  )
  expect(found).toEqual([
    {
      ...{ kind: "late", currency: "USDC", decimals: 6, chain: "base", status: "open" },
      ...{ amount: 5n, sentBack: 3n, refunds: ["0xb"] }
    },
    expect.objectContaining({ amount: 5n, sentBack: 5n }),
    expect.objectContaining({ currency: "USDC.e", decimals: undefined })
  ])
})
