import { hash } from "node:crypto"
import { describe, expect } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Redacted, TestClock } from "effect"
import { defaultAccount } from "../../src/Auth/Accounts.ts"
import { rotate } from "../../src/Control/rotateSecrets.ts"
import { Idempotency, type StoreReplay } from "../../src/Http/idempotency.ts"
import { Secrets } from "../../src/Secrets.ts"
import { MasterKey } from "../../src/Settings.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader, Writer } from "../../src/Sql.ts"
import { apiWithKey, TestApi, testApp } from "../lib/api.ts"
import { clockTest, liveSuite } from "../lib/scopedTest.ts"
import { inTransaction, storeAccount, temporaryDatabase } from "../lib/store.ts"

const order = { merchantRef: "order-1", amount: "5", currency: "ETH", chain: "base" }
const hook = { url: "https://shop.example.com/hook", events: ["payment.confirmed"], secret: `whsec_${"s".repeat(32)}` }
const withKey = (key: string) => ({ "idempotency-key": key })

const owner = { account: defaultAccount, mode: "test" as const }
const response = { status: 201, headers: { location: "/x" }, text: '{"id":1}' }
const keyOf = (byte: number) => Redacted.make(new Uint8Array(32).fill(byte))
const [masterKey, nextKey] = [keyOf(7), keyOf(8)]
/** A life of the service on the database at `path`. */
const life = (path: string, key = masterKey) =>
  Effect.provide(
    Layer.merge(Idempotency.layer, Layer.effectDiscard(storeAccount)).pipe(
      Layer.provide(Secrets.layer),
      Layer.provideMerge(Sql.layer(path)),
      Layer.provide(Layer.succeed(MasterKey, key))
    )
  )

/** Does its work in one transaction with the stored response, and counts its executions. */
const doing = (count: { done: number }) => (remember: StoreReplay) =>
  inTransaction(
    Effect.zipRight(
      Effect.sync(() => void count.done++),
      remember(response)
    )
  ).pipe(Effect.as(response))

const once = <E>(work: (remember: StoreReplay) => Effect.Effect<typeof response, E, Writer>, payload: unknown = {}) =>
  Effect.gen(function* () {
    const idempotency = yield* Idempotency
    const writer = yield* Writer
    return yield* idempotency.once(owner, "/v1/things", "key", payload, (remember) =>
      Effect.provideService(work(remember), Writer, writer)
    )
  })

describe("the stored response", () => {
  clockTest("is made once, even if the client disconnects: the key is in use until the work is stored", function* () {
    yield* Effect.gen(function* () {
      const [started, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const count = { done: 0 }
      const slow = (remember: StoreReplay) =>
        Deferred.succeed(started, undefined).pipe(
          Effect.zipRight(Deferred.await(gate)),
          Effect.zipRight(doing(count)(remember))
        )
      const first = yield* Effect.fork(once(slow))
      yield* Deferred.await(started)
      const gone = yield* Effect.fork(Fiber.interrupt(first))
      yield* Effect.yieldNow()
      expect(yield* Effect.flip(once(doing(count)))).toMatchObject({ code: "IDEMPOTENCY_KEY_IN_USE" })
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(gone)
      expect((yield* once(doing(count))).headers).toMatchObject({ "idempotent-replayed": "true" })
      expect(count.done).toBe(1)
    }).pipe(life(yield* temporaryDatabase))
  })

  clockTest("survives a restart, and is not given again after 24 hours", function* () {
    const path = yield* temporaryDatabase
    const count = { done: 0 }
    yield* once(doing(count)).pipe(life(path))
    yield* TestClock.adjust("23 hours")
    yield* Effect.gen(function* () {
      expect((yield* once(doing(count))).text).toBe(response.text)
      expect(count.done).toBe(1)
      yield* TestClock.adjust("1 hour")
      yield* once(doing(count))
      expect(count.done).toBe(2)
    }).pipe(life(path))
  })

  clockTest(
    "reveals nothing of the request body, which may hold a secret, and is returned after a change of the master key too",
    function* () {
      const path = yield* temporaryDatabase
      const count = { done: 0 }
      const body = { secret: "whsec_guess" }
      const stored = Effect.flatMap(Reader, (reader) =>
        reader.get<{ body_hash: Uint8Array | null }>("SELECT body_hash FROM idempotent_responses")
      )
      yield* Effect.gen(function* () {
        yield* once(doing(count), body)
        const { body_hash: digest } = (yield* stored) ?? {}
        expect(digest).toHaveLength(32)
        expect(Buffer.from(digest ?? []).toString("hex")).not.toBe(hash("sha256", JSON.stringify(body), "hex"))
      }).pipe(life(path))
      yield* Effect.scoped(Effect.provide(rotate(masterKey, nextKey), Sql.layer(path)))
      yield* Effect.gen(function* () {
        expect(yield* stored).toEqual({ body_hash: null })
        expect((yield* once(doing(count), body)).headers).toMatchObject({ "idempotent-replayed": "true" })
        expect(count.done).toBe(1)
      }).pipe(life(path, nextKey))
    }
  )

  clockTest("does not exist if the work failed or was rolled back", function* () {
    yield* Effect.gen(function* () {
      const count = { done: 0 }
      const failing = (remember: StoreReplay) =>
        inTransaction(Effect.zipRight(remember(response), Effect.fail("no" as const))).pipe(Effect.as(response))
      expect(yield* Effect.flip(once(failing))).toBe("no")
      yield* once(doing(count), { other: "body" })
      expect(count.done).toBe(1)
    }).pipe(life(yield* temporaryDatabase))
  })
})

liveSuite(testApp(), "a POST with an Idempotency-Key", (test, it) => {
  test("that is repeated gets the same response, and nothing is done twice", function* () {
    const { api, key } = yield* apiWithKey
    const first = yield* api.call("POST", "/v1/payments", { key, json: order, headers: withKey("a") })
    expect(first.status).toBe(201)
    expect(first.headers["idempotent-replayed"]).toBeUndefined()
    // The same members in another order, with white space: the same request.
    const { amount, ...rest } = order
    const again = yield* api.call("POST", "/v1/payments", {
      key,
      body: JSON.stringify({ amount, ...rest }, undefined, 2),
      headers: { ...withKey("a"), "content-type": "application/json" }
    })
    expect(again.status).toBe(201)
    expect(again.text).toBe(first.text)
    expect(again.headers.location).toBe(first.headers.location)
    expect(again.headers["idempotent-replayed"]).toBe("true")
    expect(again.headers["x-request-id"]).not.toBe(first.headers["x-request-id"])
    expect((yield* api.call("GET", "/v1/payments", { key })).body.data).toHaveLength(1)
  })

  test("with another body is refused; a refused request can be corrected with the same key", function* () {
    const { api, key } = yield* apiWithKey
    const send = (json: unknown) => api.call("POST", "/v1/payments", { key, json, headers: withKey("b") })
    const corrected = { ...order, merchantRef: "corrected" }
    expect((yield* send({ ...corrected, amount: "0" })).status).toBe(400)
    expect((yield* send(corrected)).status).toBe(201)
    const other = yield* send({ ...order, merchantRef: "other" })
    expect(other.status).toBe(422)
    expect(other.body.error.code).toBe("IDEMPOTENCY_KEY_REUSED")
    // Before the schema is checked.
    expect((yield* send({})).status).toBe(422)
  })

  test("is separate for the keys of other modes and for other paths, and the same for the account's keys", function* () {
    const api = yield* TestApi
    const [key, sibling, live] = [yield* api.newKey(), yield* api.newKey(), yield* api.newKey("live")]
    const send = (as: string, path: string, json: unknown) =>
      api.call("POST", path, { key: as, json, headers: withKey("c") })
    const shared = { ...order, merchantRef: "shared" }
    const payment = yield* send(key, "/v1/payments", shared)
    expect((yield* send(sibling, "/v1/payments", shared)).text).toBe(payment.text)
    const made = yield* send(key, "/v1/webhooks", hook)
    expect(made.status).toBe(201)
    expect((yield* send(key, "/v1/webhooks", hook)).body).toEqual(made.body)
    expect((yield* api.call("GET", "/v1/webhooks", { key })).body.data).toHaveLength(1)
    expect((yield* send(live, "/v1/webhooks", hook)).body.id).not.toBe(made.body.id)
  })

  it.effect.each([["", "x".repeat(256)], ["é"]].flat())("that is %j is refused", (bad) =>
    Effect.gen(function* () {
      const { api, key } = yield* apiWithKey
      const answer = yield* api.call("POST", "/v1/payments", { key, json: order, headers: withKey(bad) })
      expect(answer.status).toBe(400)
      expect(answer.body.error.details).toEqual([
        { path: "Idempotency-Key", message: "must be 1 to 255 printable ASCII characters" }
      ])
    })
  )
})
