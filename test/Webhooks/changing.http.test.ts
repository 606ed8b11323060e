import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { testWebhooks } from "../lib/settings.ts"

const secret = "whsec_0123456789abcdef"
const next = "whsec_fedcba9876543210"

// 192.0.2.0/24 is for documentation: no one is called.
const app = testApp({
  webhooks: testWebhooks({ allowTargets: ["192.0.2.0/24"] })
})

layer(app, { excludeTestServices: true })("a change of a webhook endpoint over HTTP", (it) => {
  const registered = Effect.gen(function* () {
    const api = yield* TestApi
    const key = yield* api.newKey()
    const json = { url: "https://192.0.2.1/hook", events: ["payment.confirmed"], secret }
    const { body } = yield* api.call("POST", "/v1/webhooks", { key, json })
    const change = (json: unknown, headers = {}) => api.call("PATCH", `/v1/webhooks/${body.id}`, { key, json, headers })
    return { api, key, endpoint: body, change }
  })

  it.effect("changes the given fields, and returns the endpoint without its secret", () =>
    Effect.gen(function* () {
      const { api, change, endpoint, key } = yield* registered
      const moved = yield* change({ url: "https://192.0.2.2/hook" })
      expect([moved.status, moved.body]).toEqual([200, { ...endpoint, url: "https://192.0.2.2/hook" }])
      const more = yield* change({ events: ["payment.failed"], secret: next, overlapSeconds: 60 })
      expect(more.body).toEqual({ ...moved.body, events: ["payment.failed"] })
      expect((yield* api.call("GET", "/v1/webhooks", { key })).body.data).toContainEqual(more.body)
      expect(more.text).not.toContain("whsec_")
    })
  )

  it.effect.each([
    [{}, { "": "must have at least one of url, events and secret" }],
    [{ overlapSeconds: 5 }, { "": "must have at least one of url, events and secret" }],
    [{ url: "https://192.0.2.2", overlapSeconds: 5 }, { overlapSeconds: "must come with a secret" }],
    [{ url: "https://10.0.0.1" }, { url: "target is not a public address" }],
    [{ url: "http://192.0.2.1" }, { url: "must be an https URL of at most 2048 characters, without user info" }],
    [{ events: [] }, { events: "must have at least one event kind" }],
    [{ secret: "whsec_short" }, { secret: "must be whsec_ followed by 16 to 256 visible characters" }],
    ...[-1, 2_592_001, 1.5, "60", null].map(
      (overlapSeconds) =>
        [
          { secret: next, overlapSeconds },
          { overlapSeconds: "must be an integer from 0 to 2592000, in seconds, with a secret" }
        ] as const
    ),
    [{ id: "wh_x" }, { id: "is not a field of this endpoint" }]
  ] as const)("refuses %j", ([body, problems]) =>
    Effect.gen(function* () {
      const { change } = yield* registered
      const answer = yield* change(body)
      expect([answer.status, problemsIn(answer)]).toEqual([400, problems])
    })
  )

  it.effect("a second rotation waits for the end of the first one's overlap, or ends it", () =>
    Effect.gen(function* () {
      const { change } = yield* registered
      expect((yield* change({ secret: next })).status).toBe(200)
      const refused = yield* change({ secret: `${next}!` })
      expect([refused.status, refused.body.error.code]).toEqual([409, "ROTATION_UNDER_WAY"])
      expect(refused.body.error.message).toMatch(/still signs until \d{4}-\d\d-\d\dT.*overlapSeconds 0/)
      // The request whose answer was lost.
      expect((yield* change({ secret: next })).status).toBe(200)
      expect((yield* change({ secret: `${next}!`, overlapSeconds: 0 })).status).toBe(200)
    })
  )

  it.effect("is found by its owner alone, in its mode, and not once it is deleted", () =>
    Effect.gen(function* () {
      const { api, change, endpoint, key } = yield* registered
      const path = `/v1/webhooks/${endpoint.id}`
      const json = { url: "https://192.0.2.2/hook" }
      const live = yield* api.newKey("live")
      const reader = yield* api.newKey("test", ["webhooks:read"])
      expect((yield* api.call("PATCH", path, { key: live, json })).status).toBe(404)
      expect((yield* api.call("PATCH", path, { key: reader, json })).status).toBe(403)
      expect((yield* api.call("PATCH", path, { json })).status).toBe(401)
      yield* api.call("DELETE", path, { key })
      expect((yield* change(json)).status).toBe(404)
    })
  )

  it.effect("an idempotency key counts for one endpoint: the same body for another is another request", () =>
    Effect.gen(function* () {
      const { api, change, endpoint, key } = yield* registered
      const json = { url: "https://192.0.2.1/other", events: ["payment.confirmed"], secret }
      const other = yield* api.call("POST", "/v1/webhooks", { key, json })
      const headers = { "idempotency-key": "move" }
      const body = { url: "https://192.0.2.3/hook" }
      const first = yield* change(body, headers)
      const again = yield* change(body, headers)
      expect([again.headers["idempotent-replayed"], again.body]).toEqual(["true", first.body])
      const theirs = yield* api.call("PATCH", `/v1/webhooks/${other.body.id}`, { key, json: body, headers })
      expect([theirs.headers["idempotent-replayed"], theirs.body.id]).toEqual([undefined, other.body.id])
      expect(first.body.id).toBe(endpoint.id)
      expect((yield* change({ url: "https://192.0.2.4/hook" }, headers)).body.error.code).toBe("IDEMPOTENCY_KEY_REUSED")
    })
  )
})
