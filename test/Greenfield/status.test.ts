// How an invoice stands in the words of shop plugins: pure.
import { describe, expect, it } from "@effect/vitest"
import { newInvoiceId } from "../../src/Domain/Ids.ts"
import type { Invoice } from "../../src/Domain/Invoice.ts"
import type { ReceiptKind, ShownReceipt } from "../../src/Domain/Receipt.ts"
import { pluginStandingOf } from "../../src/Greenfield/status.ts"
import { somePayment } from "../lib/payments.ts"

const payment = somePayment({ status: "expired", amount: 100n, currency: "ETH", chain: "base" })
const needed = 12
const invoice: Invoice = {
  ...{ id: newInvoiceId(1), account: payment.account, mode: "test", sequence: 1, merchantRef: "1", metadata: "{}" },
  ...{ price: { amount: "100", currency: "USD" }, choices: ["ETH-base"], checkoutToken: payment.checkoutToken },
  ...{ status: "expired", createdAt: 0, expiresAt: 1, payment: payment.id, changes: 1 },
  ...{ redirectUrl: undefined, webhookUrl: undefined, language: undefined }
}

const received = (kind: ReceiptKind, amount: string, confirmations: number): ShownReceipt => ({
  ...{ amount, at: 1, chain: "base", confirmations, currency: "ETH", from: undefined, kind, txHash: `0x${amount}` }
})

const additionalOf = (...receipts: ReadonlyArray<ShownReceipt>) => {
  const own = receipts.filter(({ chain, currency, kind }) => `${kind} ${currency} ${chain}` !== "wrong_token ETH base")
  return additionalWhere(
    own.reduce((sum, { amount }) => sum + BigInt(amount), 0n),
    receipts
  )
}

/** @param came all that the ledger has; the receipts are the newest of it */
const additionalWhere = (came: bigint, receipts: ReadonlyArray<ShownReceipt>) => {
  const standing = pluginStandingOf(
    { invoice, payments: [{ ...payment, received: came }] },
    () => ({ receipts, exceptions: [] }),
    () => needed
  )
  return [standing.status, standing.additional, standing.transfers.map(({ status }) => status)]
}

describe("an expired invoice of a shop plugin", () => {
  it("late money is enough once it is certain", () => {
    expect(additionalOf(received("late", "100", needed - 1))).toEqual(["Expired", "PaidPartial", ["Processing"]])
    expect(additionalOf(received("late", "100", needed))).toEqual(["Expired", "PaidLate", ["Settled"]])
  })
  it("a part that came in time counts with the rest that came late, as far as both are certain", () => {
    const part = received("underpaid", "40", needed)
    expect(additionalOf(part, received("late", "60", 0))).toEqual(["Expired", "PaidPartial", ["Settled", "Processing"]])
    expect(additionalOf(part, received("late", "59", needed))).toEqual([
      "Expired",
      "PaidPartial",
      ["Settled", "Settled"]
    ])
    expect(additionalOf(part, received("late", "60", needed))).toEqual(["Expired", "PaidLate", ["Settled", "Settled"]])
  })
  it("more transfers than are listed are all counted", () => {
    const newest = Array.from({ length: 100 }, () => received("late", "0", needed))
    expect(additionalWhere(100n, newest).slice(0, 2)).toEqual(["Expired", "PaidLate"])
    // What is not certain may be older than what is listed.
    const uncertain = newest.map((one) => ({ ...one, confirmations: 0 }))
    expect(additionalWhere(100n, uncertain).slice(0, 2)).toEqual(["Expired", "PaidPartial"])
  })
  it("money of another token, or from before, pays for nothing", () => {
    expect(additionalOf(received("wrong_token", "100", needed))).toEqual(["Expired", "None", []])
    expect(additionalOf({ ...received("late", "100", needed), currency: "USDC" })).toEqual(["Expired", "None", []])
    expect(additionalOf({ ...received("late", "100", needed), chain: "polygon" })).toEqual(["Expired", "None", []])
  })
})
