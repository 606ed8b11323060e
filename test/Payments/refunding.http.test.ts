import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { storeMoneyFor } from "../lib/exceptions.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"

const hash = (digit: string) => `0x${digit.repeat(64)}`
let orders = 0

liveSuite(testApp(), "POST /v1/payments/:id/refund", (test) => {
  /** A payment of 1,000 with 600 that wait for their confirmations. */
  const shop = Effect.gen(function* () {
    const { call, newKey } = yield* TestApi
    const key = yield* newKey()
    orders += 1
    const json = { merchantRef: `order ${orders}`, amount: "1000", currency: "ETH", chain: "base" }
    const { body: created } = yield* call("POST", "/v1/payments", { key, json })
    yield* storeMoneyFor(created.id, "600", `0x${String(orders).padStart(64, "0")}`)
    const path = `/v1/payments/${created.id}`
    const refund = (json: unknown, sent = {}) => call("POST", `${path}/refund`, { key, json, ...sent })
    return { call, id: created.id, key, newKey, path, refund }
  })

  test("subtracts what was sent back from what counts, and records it with the money's transaction", function* () {
    const { call, id, key, path, refund } = yield* shop
    const sent = { amount: "200", txHash: hash("A"), note: "ticket 7" }
    const { body, status } = yield* refund(sent)
    expect([status, body]).toMatchObject([
      200,
      {
        id,
        status: "detecting",
        amountReceived: "400",
        amountRemaining: "600",
        exceptions: [
          {
            kind: "underpaid",
            amount: "200",
            resolution: "refunded",
            refunds: [{ amount: "200", txHash: hash("a"), note: "ticket 7" }]
          }
        ]
      }
    ])
    expect((yield* call("GET", path, { key })).body).toEqual(body)
    expect((yield* refund(sent)).body).toEqual(body)
    const [audit] = yield* rows<{ act: string; detail: string }>(
      "SELECT act, detail FROM audit WHERE detail LIKE ? ORDER BY sequence",
      [`%${id}%`]
    )
    expect(audit?.act).toBe("payments refunded")
    expect(JSON.parse(audit?.detail ?? "")).toMatchObject({
      amount: "200",
      tx: hash("a"),
      note: "ticket 7",
      closed: [`${body.exceptions[0].id}: 200 ETH`]
    })
  })

  test("repeats its response to an Idempotency-Key, and records the refund once", function* () {
    const { refund } = yield* shop
    const sent = { headers: { "idempotency-key": `refund ${orders}` } }
    const first = yield* refund({ amount: "100" }, sent)
    const again = yield* refund({ amount: "100" }, sent)
    expect([again.status, again.text, again.headers["idempotent-replayed"]]).toEqual([200, first.text, "true"])
    expect(first.body.amountReceived).toBe("500")
  })

  test("refuses more than what counts, what is missing or unknown, and says where other money is", function* () {
    const { id, refund } = yield* shop
    const tooMuch = yield* refund({ amount: "601" })
    expect([tooMuch.status, problemsIn(tooMuch)]).toEqual([
      400,
      { amount: expect.stringContaining(`must be at most 600, which is what counts for ${id}`) }
    ])
    for (const json of [
      {},
      { amount: 5 },
      { amount: "0" },
      { amount: "1", txHash: "0x1" },
      { amount: "1", all: true }
    ]) {
      expect((yield* refund(json)).status, JSON.stringify(json)).toBe(400)
    }
    yield* refund({ amount: "100", txHash: hash("b") })
    const other = yield* refund({ amount: "200", txHash: hash("b") })
    expect([other.status, other.body.error.code]).toEqual([409, "EXCEPTION_RESOLVED"])
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1 WHERE id = ?", [id])
    const ended = yield* refund({ amount: "100" })
    expect([ended.status, ended.body.error]).toMatchObject([
      409,
      { code: "NOTHING_TO_REFUND", message: expect.stringContaining("note in your own shop") }
    ])
  })

  test("is for the payment's own account and mode, with exceptions:write", function* () {
    const { newKey, refund } = yield* shop
    expect((yield* refund({ amount: "1" }, { key: yield* newKey("live") })).status).toBe(404)
    const refused = yield* refund({ amount: "1" }, { key: yield* newKey("test", ["payments:write"]) })
    expect([refused.status, refused.body.error.message]).toEqual([403, expect.stringContaining("exceptions:write")])
  })
})
