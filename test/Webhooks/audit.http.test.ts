import { HttpApi } from "@effect/platform"
import { expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Api } from "../../src/Api.ts"
import { requiredPermissions } from "../../src/Auth/Api.ts"
import * as AuditRepo from "../../src/Auth/AuditRepo.ts"
import { Keys } from "../../src/Auth.ts"
import { Reader } from "../../src/Sql.ts"
import { TestApi, testApp } from "../lib/api.ts"

const secret = "whsec_0123456789abcdef"
const json = { url: "https://192.0.2.1:8443/hook/token-4711", events: ["payment.confirmed"], secret }

// 192.0.2.0/24 is for documentation: nobody is called.
const app = testApp({
  webhooks: {
    allowTargets: ["192.0.2.0/24"],
    denyTargets: [],
    extraCaFile: "",
    concurrency: 64,
    concurrencyPerEndpoint: 8
  }
})

/** What each operation that administers is done with, in this order, and what the log has of it. */
const acts = {
  "POST /v1/webhooks": { act: "webhooks register", host: "192.0.2.1:8443", events: ["payment.confirmed"] },
  "DELETE /v1/webhooks/:id": { act: "webhooks delete" }
} as const

/** To have a payment or a price is a merchant's business; to change where events go, and who can sign, administers. */
const isBusiness = new Set(["payments:read", "payments:write", "webhooks:read", "quotes:read"])

it("every operation of the API that administers is in the table", () => {
  const found: Array<string> = []
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations }) => {
      const permissions = requiredPermissions(mergedAnnotations)
      if (permissions.some((each) => !isBusiness.has(each))) found.push(`${endpoint.method} ${endpoint.path}`)
    }
  })
  expect(found).toEqual(Object.keys(acts))
})

layer(app, { excludeTestServices: true })("administration over HTTP", (it) => {
  it.effect("each act of a key leaves its row, and what is refused or given again leaves none", () =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const reader = yield* Reader
      const keys = yield* Keys
      const key = yield* api.newKey()
      const { id: keyId } = (yield* keys.authenticate(key)) ?? expect.fail("no key")
      const rows = Effect.map(AuditRepo.list(reader, { since: 0, before: undefined, limit: 10 }), (all) =>
        all.map(({ at: _, sequence: __, ...row }) => ({ ...row, detail: JSON.parse(row.detail) }))
      )
      const by = { via: "api", who: keyId, account: "default", mode: "test" }

      const headers = { "idempotency-key": "once" }
      const made = yield* api.call("POST", "/v1/webhooks", { key, json, headers })
      expect(made.status).toBe(201)
      const { act, ...detail } = acts["POST /v1/webhooks"]
      const registered = { ...by, act, detail: { endpoint: made.body.id, ...detail } }
      expect(yield* rows).toEqual([registered])

      const again = yield* api.call("POST", "/v1/webhooks", { key, json, headers })
      expect([again.status, again.body.id]).toEqual([201, made.body.id])
      const refused = yield* api.call("POST", "/v1/webhooks", { key, json: { ...json, url: "https://127.0.0.1" } })
      expect(refused.status).toBe(400)
      expect((yield* api.call("DELETE", "/v1/webhooks/wh_none", { key })).status).toBe(404)
      expect((yield* api.call("GET", "/v1/webhooks", { key })).status).toBe(200)
      expect(yield* rows).toEqual([registered])

      expect((yield* api.call("DELETE", `/v1/webhooks/${made.body.id}`, { key })).status).toBe(200)
      const deleted = { ...by, act: acts["DELETE /v1/webhooks/:id"].act, detail: { endpoint: made.body.id } }
      expect(yield* rows).toEqual([deleted, registered])
      expect((yield* api.call("DELETE", `/v1/webhooks/${made.body.id}`, { key })).status).toBe(404)
      expect(JSON.stringify(yield* rows)).not.toMatch(/whsec_|4711/)
      expect(yield* rows).toHaveLength(2)
    })
  )
})
