import { HttpApi, HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Context, Effect, Option } from "effect"
import { describe, expect, it } from "vitest"
import { Api } from "../../src/Api.ts"
import { ApiKeyAuth, RequiredPermission } from "../../src/Auth/Api.ts"
import { answer } from "../../src/Http/Handler.ts"
import { makeRouter } from "../../src/Http/routes.ts"

const handle = () => Effect.succeed(answer({}))
const handlers = {
  payments: { create: handle, get: handle, list: handle, currencies: handle, change: handle, cancel: handle },
  invoices: { create: handle, get: handle, list: handle, choose: handle, cancel: handle },
  exceptions: { list: handle, get: handle, resolve: handle },
  refunds: { create: handle, list: handle, get: handle, name: handle, drop: handle },
  ledger: { list: handle },
  webhooks: { create: handle, get: handle, list: handle, change: handle, remove: handle },
  deliveries: { list: handle, get: handle, redeliverSome: handle, redeliver: handle },
  quotes: { create: handle, get: handle },
  events: { stream: handle },
  health: { alive: handle, ready: handle },
  documents: { openapi: handle }
}

it("the definition declares the permission of each endpoint", () => {
  const needed: Array<string> = []
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations }) => {
      const permission = Option.getOrUndefined(Context.getOption(mergedAnnotations, RequiredPermission))
      needed.push(`${endpoint.method} ${endpoint.path} ${permission}`)
    }
  })
  expect(needed).toEqual([
    "POST /v1/payments payments:write",
    "GET /v1/payments/:id payments:read",
    "GET /v1/payments payments:read",
    "GET /v1/currencies ",
    "PATCH /v1/payments/:id payments:write",
    "POST /v1/payments/:id/cancel payments:write",
    "POST /v1/invoices payments:write",
    "GET /v1/invoices/:id payments:read",
    "GET /v1/invoices payments:read",
    "POST /v1/invoices/:id/choose payments:write",
    "POST /v1/invoices/:id/cancel payments:write",
    "GET /v1/exceptions exceptions:read",
    "GET /v1/exceptions/:id exceptions:read",
    "POST /v1/exceptions/:id/resolve exceptions:write",
    "POST /v1/payments/:id/refunds exceptions:write",
    "GET /v1/refunds exceptions:read",
    "GET /v1/refunds/:id exceptions:read",
    "PATCH /v1/refunds/:id exceptions:write",
    "DELETE /v1/refunds/:id exceptions:write",
    "GET /v1/ledger payments:read",
    "POST /v1/webhooks webhooks:write",
    "GET /v1/webhooks/:id webhooks:read",
    "GET /v1/webhooks webhooks:read",
    "PATCH /v1/webhooks/:id webhooks:write",
    "DELETE /v1/webhooks/:id webhooks:write",
    "GET /v1/deliveries webhooks:read",
    "GET /v1/deliveries/:id webhooks:read",
    "POST /v1/deliveries/redeliver webhooks:write",
    "POST /v1/deliveries/:id/redeliver webhooks:write",
    "POST /v1/quotes quotes:read",
    "GET /v1/quotes/:id quotes:read",
    "GET /v1/events/stream webhooks:read,payments:read",
    "GET /healthz undefined",
    "GET /readyz undefined",
    "GET /openapi.json undefined"
  ])
})

describe("the router", () => {
  const router = makeRouter(Api, handlers)

  it.each([
    ["/v1/payments", {}],
    ["/v1/payments/pay_1", { id: "pay_1" }],
    ["/v1/payments/%70ay%5F1", { id: "pay_1" }],
    ["/v1/payments/%ff", { id: "%ff" }],
    ["/v1/payments/__proto__", { id: "__proto__" }],
    ["/v1/payments/pay_1/cancel", { id: "pay_1" }],
    ["/v1/webhooks/a%2Fb", { id: "a/b" }],
    ["/v1/deliveries/redeliver", {}],
    ["/v1/deliveries/dlv_1/redeliver", { id: "dlv_1" }]
  ])("finds %s", (path, params) => expect(router(path)?.params).toEqual(params))

  it.each(["", "/", "*", "/v1/payments/", "/v1/payments//", "/v1/payments/a/", "/v1/payments?a", "/v1/:id"])(
    "has no route for %j",
    (path) => expect(router(path)).toBeUndefined()
  )

  it("knows which routes are public", () => {
    expect(
      ["/v1/payments", "/v1/webhooks/x", "/v1/quotes", "/healthz", "/readyz"].map(
        (path) => router(path)?.route.isPublic
      )
    ).toEqual([false, false, false, true, true])
  })

  it("cannot be built without a handler", () => {
    expect(() => makeRouter(Api, { ...handlers, quotes: {} })).toThrow("quotes.create has no handler")
  })

  it("cannot be built if an endpoint needs a key but no permission, or a permission but no key", () => {
    const endpoint = HttpApiEndpoint.get("create", "/v1/things")
    const things = HttpApiGroup.make("quotes")
    const unnamed = HttpApi.make("a").add(things.add(endpoint).middleware(ApiKeyAuth))
    const unguarded = HttpApi.make("b").add(things.add(endpoint.annotate(RequiredPermission, "quotes:read")))
    const message = "/v1/things needs ApiKeyAuth and a RequiredPermission, or neither"
    expect(() => makeRouter(unnamed, handlers)).toThrow(message)
    expect(() => makeRouter(unguarded, handlers)).toThrow(message)
  })
})
