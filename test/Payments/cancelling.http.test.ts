import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { storeLateMoney } from "../lib/exceptions.ts"
import { withoutUri } from "../lib/payments.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"

let orders = 0

liveSuite(testApp(), "POST /v1/payments/:id/cancel", (test, it) => {
  const shop = Effect.gen(function* () {
    const { call, newKey } = yield* TestApi
    const key = yield* newKey()
    orders += 1
    const order = { merchantRef: `order ${orders}`, amount: "1000", currency: "ETH", chain: "base" }
    const json = { ...order, redirectUrl: "https://shop.example/thanks" }
    const { body: created } = yield* call("POST", "/v1/payments", { key, json })
    const path = `/v1/payments/${created.id}`
    return { call, created, key, newKey, path, cancel: (sent = {}) => call("POST", `${path}/cancel`, { key, ...sent }) }
  })

  test("ends a pending payment, needs no body, and may be repeated", function* () {
    const { call, cancel, created, key, path } = yield* shop
    const cancelled = yield* cancel()
    const ended = { ...withoutUri(created), status: "expired", failureReason: "cancelled" }
    const shown = { ...ended, redirectUrl: "https://shop.example/thanks" }
    expect([cancelled.status, cancelled.body]).toEqual([200, shown])
    expect((yield* call("GET", path, { key })).body).toEqual(shown)
    const again = yield* cancel({ json: {} })
    expect([again.status, again.body]).toEqual([200, shown])
    const events = yield* rows<{ body: string }>("SELECT body FROM events WHERE payment_id = ? ORDER BY sequence", [
      created.id
    ])
    const [first, expired, ...others] = events.map(({ body }) => JSON.parse(body))
    expect(first).toMatchObject({ event: "payment.created", data: created })
    expect(expired).toMatchObject({ event: "payment.expired", data: ended })
    expect(others).toEqual([])
  })

  test("shows the exceptions that the payment has, as reading it does", function* () {
    const { call, cancel, created, key, path } = yield* shop
    const id = yield* storeLateMoney(created.id, 1)
    const { body } = yield* cancel()
    expect(body.exceptions).toMatchObject([{ id, kind: "late", amount: "700" }])
    expect(body).toEqual((yield* call("GET", path, { key })).body)
    expect((yield* cancel()).body).toEqual(body)
  })

  test("returns the first response to a repeated Idempotency-Key, and commits it with the end", function* () {
    const { cancel } = yield* shop
    const sent = { headers: { "idempotency-key": `cancel ${orders}` } }
    const first = yield* cancel(sent)
    const again = yield* cancel({ ...sent, json: {} })
    expect([again.status, again.text, again.headers["idempotent-replayed"]]).toEqual([200, first.text, "true"])
  })

  it.effect.each([
    ["confirmed", "it is paid; send the money back."],
    ["expired", "it has ended, and there is nothing to cancel."]
  ])("refuses a payment that is %s, and says what to do instead", ([status, remedy]) =>
    Effect.gen(function* () {
      const { cancel, created } = yield* shop
      yield* execute(
        `UPDATE payments SET status = ?, confirmed_at = iif(? = 'confirmed', 1, NULL),
           ended_at = 1 WHERE id = ?`,
        [status, status, created.id]
      )
      const { body, headers, status: refused } = yield* cancel()
      expect([refused, body.error]).toEqual([
        409,
        {
          code: "PAYMENT_NOT_PENDING",
          message: `Only a payment that is pending or detecting can be cancelled, and this one is ${status}: ${remedy}`,
          details: { status },
          requestId: headers["x-request-id"]
        }
      ])
    })
  )

  test("is for the payment's own account and mode", function* () {
    const { call, cancel, newKey, path } = yield* shop
    const live = yield* newKey("live")
    for (const [key, of] of [
      [live, path],
      [yield* newKey(), "/v1/payments/pay_none"]
    ] as const) {
      expect((yield* call("POST", `${of}/cancel`, { key })).status).toBe(404)
    }
    expect((yield* cancel()).status).toBe(200)
  })

  test("takes no fields and no parameters", function* () {
    const { call, cancel, key, path } = yield* shop
    const wrong = yield* cancel({ json: { reason: "changed her mind" } })
    expect([wrong.status, problemsIn(wrong)]).toEqual([
      400,
      { reason: "must not be there: this endpoint takes no fields" }
    ])
    for (const json of [[], null, "now"]) expect((yield* cancel({ json })).status, JSON.stringify(json)).toBe(400)
    expect((yield* call("POST", `${path}/cancel?force=1`, { key })).status).toBe(400)
    expect((yield* cancel({ body: "{}", headers: { "content-type": "text/plain" } })).status).toBe(415)
  })
})
