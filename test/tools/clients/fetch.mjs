// The API through openapi-fetch, by the types of its document alone: fields that are optional are left out.
import assert from "node:assert/strict"
import process from "node:process"
import createClient from "openapi-fetch"

/** @typedef {import("./api.d.ts").paths} paths */
/** @template {keyof paths} P @typedef {paths[P] extends { post: { requestBody?: { content: { "application/json": infer B } } } } ? B : never} Body */

const { SHOP_HOOK, SHOP_KEY, SHOP_URL } = process.env
const headers = { "X-API-Key": String(SHOP_KEY) }
/** @type {import("openapi-fetch").Client<paths>} */
const api = createClient({ baseUrl: String(SHOP_URL), headers })

/** @type {Body<"/v1/payments">} */
const order = { merchantRef: "fetch 1", amount: "1000000", currency: "USDC", chain: "base" }
/** @type {Body<"/v1/deliveries/redeliver">} */
export const everyDelivery = {}

const metadata = { cart: ["ünïcödé 🎂", 1.5, null, { nested: true }] }
const created = await api.POST("/v1/payments", { body: { ...order, metadata } })
assert(created.data, JSON.stringify(created.error))
const { id } = created.data
assert.deepEqual(created.data.metadata, metadata)
const read = await api.GET("/v1/payments/{id}", { params: { path: { id } } })
assert.deepEqual(read.data, created.data)

const second = { ...order, merchantRef: "fetch 2" }
const once = { headers: { "Idempotency-Key": "fetch" } }
const first = await api.POST("/v1/payments", { ...once, body: second })
const again = await api.POST("/v1/payments", { ...once, body: second })
assert.deepEqual(again.data, first.data)
assert.equal(again.response.headers.get("idempotent-replayed"), "true")

const refused = {
  422: await api.POST("/v1/payments", { ...once, body: { ...order, merchantRef: "fetch 3" } }),
  409: await api.POST("/v1/payments", { body: order }),
  400: await api.POST("/v1/payments", { body: { ...order, amount: "0" } }),
  404: await api.GET("/v1/payments/{id}", { params: { path: { id: "pay_none" } } }),
  401: await api.GET("/v1/payments", { headers: { "X-API-Key": "none" } })
}
for (const [status, { error, response }] of Object.entries(refused)) {
  assert.equal(response.status, Number(status), JSON.stringify(error))
  assert(error?.error.message)
}

const seen = []
/** @type {string | null} */
let cursor = ""
while (cursor !== null) {
  /** @type {{ data?: { data: ReadonlyArray<{ id: string }>, cursor: string | null }, error?: unknown }} */
  const page = await api.GET("/v1/payments", { params: { query: { limit: 1, cursor } } })
  assert(page.data, JSON.stringify(page.error))
  seen.push(...page.data.data.map((one) => one.id))
  cursor = page.data.cursor
}
assert.deepEqual(seen, [first.data?.id, id])

const hook = await api.POST("/v1/webhooks", {
  body: { url: `${SHOP_HOOK}/fetch`, events: ["payment.created"], secret: "whsec_0123456789abcdef" }
})
assert(hook.data, JSON.stringify(hook.error))
const deleted = await api.DELETE("/v1/webhooks/{id}", { params: { path: { id: hook.data.id } } })
assert.equal(deleted.data?.deleted, true)

let limited = read.response
for (let i = 0; i < 200 && limited.status === 200; i++) {
  limited = (await api.GET("/v1/payments/{id}", { params: { path: { id } } })).response
}
assert.equal(limited.status, 429)
assert(Number(limited.headers.get("retry-after")) > 0)
