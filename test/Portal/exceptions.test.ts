import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { exceptionRoutes } from "../../src/Portal/pages/Exceptions.tsx"
import { storeLateMoney } from "../lib/exceptions.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { portalWith } from "./room.ts"
import { admin, home, makePayment, portalApp, viewer } from "./shop.ts"

const hash = (digit: string) => `0x${digit.repeat(64)}`

/** Money that came too late for a payment of this reference: 0.0007 USDC. */
const late = (merchantRef: string, n: number) =>
  Effect.flatMap(makePayment({ merchantRef }), ({ id }) =>
    Effect.map(storeLateMoney(id, n), (exception) => ({ exception, payment: id }))
  )

const stored = (id: string) =>
  rows<{ outcome: string | null; note: string | null; decision_tx: string | null }>(
    "SELECT outcome, note, decision_tx FROM exceptions WHERE id = ?",
    [id]
  )

const acts = rows<{ who: string; act: string; detail: string }>(
  "SELECT who, act, detail FROM audit WHERE act IN ('payments accept', 'payments refunded') ORDER BY sequence"
)

liveSuite(portalApp, "the portal's exceptions", (test) => {
  test("of a confirmed payment are accepted as what they are: money on top", function* () {
    const ada = yield* admin
    const { exception, payment } = yield* late("surplus", 40)
    yield* execute("UPDATE exceptions SET kind = 'overpaid' WHERE id = ?", [exception])
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1 WHERE id = ?", [payment])
    const { text } = yield* ada.get(`${home}/exceptions/${exception}`)
    expect(text).toContain("You keep 0.0007 USDC on top of the 54.615517 USDC that were asked for.")
    expect(text).not.toContain("webhooks go out")
    yield* execute("DELETE FROM exceptions WHERE id = ?", [exception])
  })

  test("are listed while they are open, newest first, and by status and kind", function* () {
    const vera = yield* viewer
    const first = yield* late("listed 1", 1)
    const second = yield* late("listed 2", 2)
    const ids = (text: string) => [...text.matchAll(/exceptions\/(exc_\d+)"/g)].map(([, id]) => id)
    const inbox = yield* vera.get(`${home}/exceptions`)
    expect(ids(inbox.text)).toEqual([second.exception, first.exception])
    expect(inbox.text).toContain('<span class="money">0.0007 USDC</span>')
    expect(ids((yield* vera.get(`${home}/exceptions?status=resolved`)).text)).toEqual([])
    expect(ids((yield* vera.get(`${home}/exceptions?status=all&kind=late`)).text)).toHaveLength(2)
    expect(ids((yield* vera.get(`${home}/exceptions?kind=overpaid`)).text)).toEqual([])
    const wrong = yield* vera.get(`${home}/exceptions?kind=nonsense`)
    expect(wrong.status).toBe(400)
    expect(wrong.text).toContain("Kind must be overpaid")
    // The payment's own page has it too.
    expect((yield* vera.get(`${home}/payments/${first.payment}`)).text).toContain(`/exceptions/${first.exception}`)
  })

  test("are accepted: the payment is confirmed, the note is kept, and the audit log says who", function* () {
    const ada = yield* admin
    const { exception, payment } = yield* late("accepted", 10)
    const page = `${home}/exceptions/${exception}`
    for (const path of [page, `${home}/payments/${payment}`]) {
      expect((yield* ada.get(path)).text).toContain(`action="${page}/accept"`)
    }
    // Late money of 0.0007 USDC for a payment of 54.615517 USDC: the form says what accepting it does, and asks once more.
    const unsure = yield* ada.post(`${page}/accept`, { note: "by telephone" })
    expect(unsure.status).toBe(422)
    expect(unsure.text).toContain("You keep 0.0007 USDC, and the payment, which asks for 54.615517 USDC, is confirmed")
    expect(unsure.text).toContain("Confirmation must be ticked: the decision is final")
    expect(unsure.text).toContain(">by telephone</textarea>")
    expect(yield* stored(exception)).toEqual([{ outcome: null, note: null, decision_tx: null }])
    const done = yield* ada.post(`${page}/accept`, { note: "  by telephone ", confirmed: "yes" })
    expect([done.status, done.headers.location]).toEqual([303, `${page}?done=accepted`])
    expect(yield* stored(exception)).toEqual([{ outcome: "accepted", note: "by telephone", decision_tx: null }])
    expect(yield* rows("SELECT status FROM payments WHERE id = ?", [payment])).toEqual([{ status: "confirmed" }])
    expect((yield* acts).at(-1)).toEqual({
      who: expect.stringContaining("Ada"),
      act: "payments accept",
      detail: JSON.stringify({ id: exception, note: "by telephone" })
    })
    const story = (yield* ada.get(`${home}/payments/${payment}`)).text
    expect(story).toContain('<span class="money">0.0007 USDC</span> accepted')
    const after = yield* ada.get(`${page}?done=accepted`)
    expect(after.text).toContain("The money was accepted.")
    expect(after.text).not.toContain("Accept the money")
    // A decision stays as it is.
    const other = yield* ada.post(`${page}/refund`, {})
    expect(other.status).toBe(409)
    expect(other.text).toContain("a decision stays as it is")
  })

  test("that somebody else decides meanwhile are shown as decided, and without forms", function* () {
    const { enter } = yield* portalWith(exceptionRoutes)
    const ada = yield* enter({ account: "default", name: "Ada" })
    const bob = yield* enter({ account: "default", name: "Bob" })
    const { exception } = yield* late("decided twice", 15)
    const page = `${home}/exceptions/${exception}`
    // Both read it before either is stored.
    const [accepted, refused] = yield* Effect.all(
      [ada.post(`${page}/accept`, { confirmed: "yes" }), bob.post(`${page}/refund`, { note: "by Bob" })],
      { concurrency: "unbounded" }
    )
    expect([accepted.status, refused.status]).toEqual([303, 409])
    expect(refused.text).toContain("a decision stays as it is")
    expect(refused.text).not.toContain("<h2>Decide</h2>")
    expect(yield* stored(exception)).toEqual([{ outcome: "accepted", note: null, decision_tx: null }])
  })

  test("are noted as sent back in parts, in the currency's own units; a refusal keeps what was typed", function* () {
    const ada = yield* admin
    const { exception, payment } = yield* late("refunded", 20)
    const page = `${home}/exceptions/${exception}`
    const refuse = (fields: Record<string, string>) => ada.post(`${page}/refund`, fields)
    expect((yield* refuse({ amount: "0.0008" })).text).toContain("Amount must be at most 0.0007 USDC (700")
    const wrong = yield* refuse({ amount: "0.0007", txHash: "0x12", note: "back & forth" })
    expect(wrong.status).toBe(422)
    expect(wrong.text).toContain("Transaction must be a transaction&#39;s hash".replace("&#39;", "'"))
    for (const kept of ['value="0.0007"', 'value="0x12"', ">back &amp; forth</textarea>"]) {
      expect(wrong.text).toContain(kept)
    }
    for (const amount of ["0", "1e3", "-1", "0.00000001", "7 USDC"]) {
      expect((yield* refuse({ amount })).text).toContain("Amount must be a number above zero")
    }
    expect(yield* stored(exception)).toEqual([{ outcome: null, note: null, decision_tx: null }])

    expect((yield* refuse({ amount: "0.0002", txHash: hash("A") })).status).toBe(303)
    const half = yield* ada.get(page)
    const money = (amount: string) => `<span class="money">${amount} USDC</span>`
    expect(half.text).toContain(money("0.0002"))
    expect(half.text).toContain(`<dt>Amount</dt><dd>${money("0.0007")}</dd>`)
    expect(half.text).toContain(`<dt>Still open</dt><dd>${money("0.0005")}</dd>`)
    const story = (yield* ada.get(`${home}/payments/${payment}`)).text
    expect(story).toContain(`${money("0.0007")} became an exception: <a href="${page}">late</a>`)
    expect(story).toContain(`${money("0.0002")} of it noted as sent back`)
    expect((yield* refuse({ txHash: hash("b"), note: "rest" })).headers.location).toBe(`${page}?done=refunded`)
    expect(yield* stored(exception)).toEqual([{ outcome: "refunded", note: null, decision_tx: null }])
    expect(
      yield* rows("SELECT amount, status, tx_hash, note FROM refunds WHERE payment_id = ? ORDER BY sequence", [payment])
    ).toEqual([
      { amount: "200", status: "noted", tx_hash: hash("a"), note: null },
      { amount: "500", status: "noted", tx_hash: hash("b"), note: "rest" }
    ])
    expect(JSON.parse((yield* acts).at(-2)?.detail ?? "")).toMatchObject({ amount: "200", tx: hash("a") })

    // Where the rest is accepted, the history keeps all that came.
    const other = yield* late("partly accepted", 21)
    const part = `${home}/exceptions/${other.exception}`
    yield* ada.post(`${part}/refund`, { amount: "0.0002", txHash: hash("c") })
    expect((yield* ada.post(`${part}/accept`, { confirmed: "yes" })).status).toBe(303)
    const told = (yield* ada.get(`${home}/payments/${other.payment}`)).text
    expect(told).toContain(`${money("0.0007")} became an exception: <a href="${part}">late</a>`)
    expect(told).toContain(`${money("0.0002")} of it noted as sent back`)
    expect(told).toContain(`${money("0.0005")} accepted`)
  })
})
