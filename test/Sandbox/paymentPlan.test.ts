import { describe, expect, it } from "@effect/vitest"
import { Either } from "effect"
import { type PlanOptions, planOf } from "../../src/Sandbox/pay.ts"

const expiresAt = "2026-01-31T13:00:00.000Z"

const payment: PlanOptions["payment"] = {
  id: "pay_1",
  merchantRef: "order-1",
  amount: "1000",
  currency: "USDC",
  chain: "base",
  address: "0x8C8d35429F74ec245F8Ef2f4Fd1e551cFF97d650",
  status: "pending",
  createdAt: "2026-01-31T12:00:00.000Z",
  expiresAt,
  metadata: {},
  ...{ received: "0", refunded: "0", kept: "0" },
  checkoutUrl: "http://127.0.0.1/pay/AZwT7J4AqB3xLk9TzW5cVn2mHf8RdQ"
}

const options: PlanOptions = {
  payment,
  part: undefined,
  chain: "base",
  currency: "USDC",
  confirmations: 3,
  decimals: { sent: 6, asked: 6 },
  show: (amount) => `${amount} units`
}

/** The amount that is sent, and what is said of it. */
const plan = (over: Partial<PlanOptions>, fields: Partial<PlanOptions["payment"]> = {}) =>
  Either.match(planOf({ ...options, ...over, payment: { ...payment, ...fields } }), {
    onLeft: ({ message }) => message,
    onRight: ({ amount, expected }) => [amount, expected]
  })

const partPaid = { status: "detecting", amountReceived: "600" } as const

describe("what is sent", () => {
  it("for a payment that has ended is what it asked for, only where it is to come late", () => {
    const ended = (over: Partial<PlanOptions>, fields: Partial<PlanOptions["payment"]>) =>
      plan({ late: true, ...over }, { amountReceived: "600", ...fields })
    expect(ended({}, { status: "expired" })).toEqual([1000n, "an exception late"])
    expect(ended({ part: "half" }, { status: "failed" })).toEqual([500n, "an exception late"])
    expect(ended({}, { status: "expired", failureReason: "cancelled" })).toEqual([
      1000n,
      `an exception found_late, and late after ${expiresAt}`
    ])
    expect(ended({}, { status: "confirmed" })).toEqual([1000n, `an exception overpaid, and late after ${expiresAt}`])
    expect(ended({ currency: "DAI" }, { status: "expired" })).toEqual([1000n, "an exception wrong_token"])
    expect(ended({ late: false }, { status: "expired" })).toContain("expects no more money")
    expect(ended({}, { status: "detecting" })).toBe("pay_1 is detecting: --late is for a payment that has ended")
  })

  it("is all that is missing, and completes the payment", () => {
    expect(plan({})).toEqual([1000n, "payment.detecting, then payment.confirmed after 3 blocks"])
    expect(plan({}, partPaid)).toEqual([400n, "payment.confirmed after 3 blocks"])
    const invoice = { id: "inv_1", price: { amount: "25.00", currency: "EUR" } } as const
    expect(plan({}, { ...partPaid, invoice })).toEqual([400n, "payment.confirmed and invoice.paid after 3 blocks"])
  })

  it("is half of what is missing, rounded down, with what is missing after it", () => {
    const ends = `are still missing: without them by ${expiresAt} it fails with insufficient_amount`
    expect(plan({ part: "half" })).toEqual([500n, `payment.detecting. 500 units ${ends}`])
    expect(plan({ part: "half" }, partPaid)).toEqual([200n, `200 units ${ends}`])
    expect(plan({ part: "half" }, { amount: "5" })).toEqual([2n, `payment.detecting. 3 units ${ends}`])
  })

  it("is a tenth of the payment too much, also when nothing is missing any more", () => {
    const confirmed = "payment.confirmed after 3 blocks"
    expect(plan({ part: "more" })).toEqual([
      1100n,
      `payment.detecting, then ${confirmed}, then an exception overpaid of 100 units`
    ])
    expect(plan({ part: "more" }, { amount: "1" })).toEqual([
      2n,
      `payment.detecting, then ${confirmed}, then an exception overpaid of 1 units`
    ])
    expect(plan({ part: "more" }, { ...partPaid, amountReceived: "1000" })).toEqual([
      100n,
      `${confirmed}, then an exception overpaid of 100 units`
    ])
  })

  it("is as many units of another token, and at least the smallest amount; the payment lacks what it lacked", () => {
    const ends = `1000 units are missing as before: without them by ${expiresAt} it fails with`
    const wrongToken = { currency: "DAI", decimals: { sent: 18, asked: 6 } }
    expect(plan(wrongToken)).toEqual([10n ** 15n, `an exception wrong_token. ${ends} wrong_token`])
    expect(plan({ ...wrongToken, part: "half" })).toEqual([
      5n * 10n ** 14n,
      `an exception wrong_token. ${ends} wrong_token`
    ])
    expect(plan({ ...wrongToken, part: "more" })[0]).toBe(11n * 10n ** 14n)
    expect(plan({ currency: "WBTC", decimals: { sent: 2, asked: 6 } })[0]).toBe(1n)
    expect(plan({ chain: "polygon" })).toEqual([
      1000n,
      `an exception wrong_chain within two minutes. ${ends} wrong_chain`
    ])
    expect(plan({ chain: "polygon" }, partPaid)).toEqual([
      400n,
      `an exception wrong_chain within two minutes. ${ends.replace("1000", "400")} insufficient_amount`
    ])
    expect(plan({ chain: "polygon" }, { ...partPaid, amountReceived: "1000" })).toEqual([
      1000n,
      "an exception wrong_chain within two minutes"
    ])
  })

  it("is found at the deadline if it is the coin of a chain whose blocks are read without transactions", () => {
    const said = (chain: PlanOptions["chain"], currency: string) =>
      String(plan({ chain, currency, decimals: { sent: 18, asked: 6 } }))
    const late = `, found when the payment's time is over, ${expiresAt}. 1000 units`
    expect(said("base", "ETH")).toContain(`an exception wrong_token${late}`)
    expect(said("polygon", "MATIC")).toContain(`an exception wrong_chain${late}`)
    expect(said("ethereum", "ETH")).toContain("an exception wrong_chain within two minutes. 1000 units")
    expect(said("base", "DAI")).toContain("an exception wrong_token. 1000 units")
  })
})

describe("nothing is sent", () => {
  it.each(["confirmed", "expired", "failed"] as const)("for a payment that is %s", (status) => {
    for (const part of [undefined, "half", "more"] as const) {
      expect(plan({ part }, { status })).toBe(
        `pay_1 is ${status} and expects no more money: make another payment (or --late)`
      )
    }
  })

  it("for a payment that lacks nothing, unless more is asked for", () => {
    const complete = { ...partPaid, amountReceived: "1200" }
    for (const part of [undefined, "half"] as const) {
      expect(plan({ part }, complete)).toBe(
        "pay_1 has got what it asks for and waits for confirmations: --part more sends too much"
      )
    }
  })

  it("for half of the smallest amount", () => {
    expect(plan({ part: "half" }, { amount: "1" })).toBe(
      "pay_1 lacks the smallest amount that there is, which has no half"
    )
  })
})
