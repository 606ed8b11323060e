import { describe, expect, it } from "vitest"
import { type CheckoutView, isFinal, returnUrl, versionOf, viewOf } from "../../src/Checkout/view.ts"
import { FailureReason, type Payment } from "../../src/Domain/Payment.ts"
import { paymentObject } from "../../src/Events/paymentObject.ts"
import { somePayment } from "../lib/payments.ts"
import { testChain, testSettings } from "../lib/settings.ts"

const token = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
const settings = testSettings("", { chains: [testChain()] })

const usdc = { currency: "USDC", token: { id: 1, contract: token, decimals: 6 }, amount: 25_000_000n } as const
const ended = { endedAt: 1 } as const

const view = (over: Partial<Payment> = {}, facts: { now?: number; lags?: boolean; count?: number } = {}) => {
  const payment = somePayment({ ...usdc, ...over })
  const { count, lags = false, now = payment.createdAt } = facts
  return viewOf({
    payment,
    object: paymentObject(payment, settings),
    confirmations: count === undefined ? undefined : { count, needed: 3 },
    extras: [],
    paidBy: [],
    lags,
    now
  })
}

describe("a checkout page", () => {
  it("asks for everything while nothing has come, by the URI of the payment", () => {
    const { state } = view()
    expect(state).toMatchObject({ kind: "waiting", ask: { due: 25_000_000n, chainId: 31_337, contract: token } })
    expect(state.kind === "waiting" && state.ask.uri).toMatch(/\/transfer\?address=0x.*&uint256=25000000$/)
  })

  it("asks for what is missing once a part has come", () => {
    const { state } = view({ status: "detecting", amountReceived: 20_000_000n })
    expect(state).toMatchObject({ kind: "partPaid", received: 20_000_000n, ask: { due: 5_000_000n } })
    expect(state.kind === "partPaid" && state.ask.uri).toMatch(/uint256=5000000$/)
  })

  it("asks for nothing more once enough has come, and shows how deep it is", () => {
    expect(view({ status: "detecting", amountReceived: 25_000_000n }, { count: 2 }).state).toEqual({
      kind: "seen",
      surplus: 0n,
      confirmations: { count: 2, needed: 3 },
      receipt: { received: 25_000_000n, paidAt: undefined, transactions: [] }
    })
  })

  it.each([
    ["waiting", { status: "pending" }],
    ["partPaid", { status: "detecting", amountReceived: 1n }]
  ] as const)("that is %s asks until the last millisecond, and for nothing after it", (kind, over) => {
    const { expiresAt } = somePayment()
    expect(view(over, { now: expiresAt }).state.kind).toBe(kind)
    expect(view(over, { now: expiresAt + 1 }).state.kind).toBe("closing")
  })

  it("of money that was seen in time says so, however late it is", () => {
    const over = { status: "detecting", amountReceived: 25_000_000n } as const
    expect(view(over, { now: somePayment().expiresAt + 1 }).state.kind).toBe("seen")
    const more = view({ ...over, amountReceived: 30_000_000n }).state
    expect(more).toMatchObject({ kind: "seen", surplus: 5_000_000n })
  })

  it("has the time in which it can be paid", () => {
    const { state } = view()
    expect(state).toMatchObject({ ask: { startsAt: 100_000, endsAt: 3_700_000 } })
  })

  it("asks for nothing on a chain that is not configured any more", () => {
    expect(view({ chain: "polygon" }).state).toEqual({ kind: "unavailable" })
  })

  it("has one end for each status, and every reason of a failure", () => {
    const kindOf = (over: Partial<Payment>) => view({ ...ended, ...over }).state.kind
    expect(kindOf({ status: "confirmed", confirmedAt: 1 })).toBe("paid")
    expect(kindOf({ status: "expired" })).toBe("expired")
    expect(kindOf({ status: "expired", failureReason: "cancelled" })).toBe("cancelled")
    for (const failureReason of FailureReason.literals.filter((reason) => reason !== "cancelled")) {
      expect(view({ ...ended, status: "failed", failureReason, amountReceived: 7n }).state).toEqual({
        kind: "failed",
        reason: failureReason,
        receipt: { received: 7n, paidAt: undefined, transactions: [] }
      })
    }
  })

  it("is final exactly when its payment has ended", () => {
    const open = [view(), view({ status: "detecting", amountReceived: 1n }), view({}, { now: 4_000_000 })]
    expect(open.map(isFinal)).toEqual([false, false, false])
    const over = [view({ ...ended, status: "expired" }), view({ ...ended, status: "confirmed", confirmedAt: 1 })]
    expect(over.map(isFinal)).toEqual([true, true])
  })

  it("says that its chain lags only while that matters", () => {
    expect(view({}, { lags: true }).lags).toBe(true)
    expect(view({ ...ended, status: "expired" }, { lags: true }).lags).toBe(false)
  })

  it("contains only what a payer needs", () => {
    const secrets = {
      webhookUrl: "https://hook.example",
      metadata: '{"secret":1}',
      redirectUrl: "https://shop.example"
    }
    const shown = view(secrets)
    const text = JSON.stringify(shown, (_, value) => (typeof value === "bigint" ? `${value}` : value))
    for (const secret of ["hook.example", "secret", "shop.example", "pay_", "default"])
      expect(text).not.toContain(secret)
  })

  it("has another version whenever it shows something else, and the same one as time goes by", () => {
    const seen = { status: "detecting", amountReceived: 25_000_000n } as const
    const views: ReadonlyArray<CheckoutView> = [
      view(),
      view({}, { lags: true }),
      view({}, { now: 3_700_001 }),
      view({ status: "detecting", amountReceived: 1n }),
      view({ status: "detecting", amountReceived: 2n }),
      view(seen, { count: 1 }),
      view(seen, { count: 2 })
    ]
    expect(new Set(views.map(versionOf)).size).toBe(views.length)
    expect(versionOf(view({}, { now: 200_000 }))).toBe(versionOf(view()))
  })
})

it("the way back to the shop keeps the shop's own query and fragment, with the payment's id behind them", () => {
  expect(
    ["https://a.example/b", "https://a.example/?x=a%20b+c", "https://a.example/?", "https://a.example/?x#top#2"].map(
      (url) => returnUrl(url, "pay_1")
    )
  ).toEqual([
    "https://a.example/b?paymentId=pay_1",
    "https://a.example/?x=a%20b+c&paymentId=pay_1",
    "https://a.example/?paymentId=pay_1",
    "https://a.example/?x&paymentId=pay_1#top#2"
  ])
})
