import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { AccountId } from "../../src/Domain/Ids.ts"
import { TooManyEndpoints } from "../../src/Domain/Webhook.ts"
import { Reader } from "../../src/Sql.ts"
import { defaultSecrets } from "../../src/Webhooks/DefaultSecrets.ts"
import { TargetRefused } from "../../src/Webhooks/transport/TargetGuard.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { deliveries, merchant, newPayment, publish } from "../lib/webhooks.ts"
import { allEvents, onStore, register, secret } from "./endpoints.ts"

it.scoped("an endpoint is listed only for its owner, and its secret is stored sealed", () =>
  onStore(function* () {
    const webhooks = yield* Webhooks
    const reader = yield* Reader
    const endpoint = yield* register("https://shop.example/a", ["payment.confirmed"])
    expect(endpoint).toEqual({
      id: endpoint.id,
      ...merchant,
      url: "https://shop.example/a",
      events: ["payment.confirmed"],
      createdAt: 0
    })
    expect(yield* webhooks.list(merchant)).toEqual([endpoint])
    expect(yield* webhooks.list({ ...merchant, mode: "live" })).toEqual([])
    expect(yield* webhooks.list({ ...merchant, account: AccountId.make("other") })).toEqual([])
    const row = yield* reader.get<{ secret: Uint8Array }>("SELECT secret FROM endpoints")
    expect(Buffer.from(row?.secret ?? []).includes(secret)).toBe(false)
  })
)

it.scoped("a target is checked by its text: registering a name does not reveal what it resolves to", () =>
  onStore(function* () {
    const webhooks = yield* Webhooks
    expect(yield* Effect.flip(register("https://10.0.0.7/"))).toBeInstanceOf(TargetRefused)
    expect(yield* Effect.flip(register("http://shop.example/"))).toBeInstanceOf(TargetRefused)
    yield* register("https://not-yet.example/")
    yield* register("https://inside.example/")
    yield* webhooks.checkTarget("https://inside.example/")
    expect(yield* Effect.flip(webhooks.checkTarget("https://10.0.0.7/"))).toBeInstanceOf(TargetRefused)
    expect(yield* webhooks.list(merchant)).toHaveLength(2)
  })
)

it.scoped("50 endpoints in each mode, also when more are asked for at once", () =>
  onStore(function* () {
    const webhooks = yield* Webhooks
    const outcomes = yield* Effect.forEach(
      Array.from({ length: 60 }, (_, i) => `https://shop.example/${i}`),
      (url) => Effect.either(register(url)),
      { concurrency: "unbounded" }
    )
    const refused = outcomes.flatMap((outcome) => (outcome._tag === "Left" ? [outcome.left] : []))
    expect(refused).toEqual(Array.from({ length: 10 }, () => TooManyEndpoints.of(50)))
    const [first] = yield* webhooks.list(merchant)
    expect(yield* webhooks.remove(merchant, first?.id ?? "")).toBe(0)
    yield* register("https://shop.example/again")
    yield* register("https://shop.example/live", allEvents, { ...merchant, mode: "live" })
  })
)

it.scoped("an event is queued once for each target, and the next one waits for it", () =>
  onStore(function* () {
    const a = yield* register("https://shop.example/a")
    const b = yield* register("https://shop.example/b", ["payment.detecting"])
    const payment = yield* newPayment("https://other.example/own")
    yield* publish(payment, "pending", 1)
    yield* publish(payment, "detecting", 2)
    yield* publish(payment, "confirmed", 3)
    const rows = yield* deliveries
    const shape = rows.map((row) => [row.target, row.next_attempt_at, row.after_sequence])
    const own = "https://other.example default/test"
    expect(shape).toEqual([
      [a.id, 1, null],
      [own, 1, null],
      [a.id, null, 1],
      [b.id, 2, null],
      [own, null, 2],
      [a.id, null, 3],
      [own, null, 5]
    ])
    expect(rows.map((row) => row.own_url)).toEqual([0, 1, 0, 0, 1, 0, 1])
  })
)

it.scoped("the same payment's own URL keeps its order when it becomes an endpoint's", () =>
  onStore(function* () {
    const payment = yield* newPayment("https://shop.example/own")
    yield* publish(payment, "pending")
    const endpoint = yield* register("https://shop.example/own")
    yield* publish(payment, "detecting")
    expect((yield* deliveries).map((row) => [row.endpoint_id, row.after_sequence])).toEqual([
      [null, null],
      [endpoint.id, 1]
    ])
  })
)

it.scoped("the default secret is made once for each account and mode", () =>
  onStore(function* () {
    const asked = yield* Effect.replicateEffect(defaultSecrets(merchant), 10, {
      concurrency: "unbounded"
    })
    const values = new Set(asked.map(({ current }) => Redacted.value(current)))
    expect(values.size).toBe(1)
    const [value = ""] = values
    expect(value).toMatch(/^whsec_/)
    expect(Buffer.from(value.slice(6), "base64")).toHaveLength(32)
    expect(Redacted.value((yield* defaultSecrets(merchant)).current)).toBe(value)
    expect(Redacted.value((yield* defaultSecrets({ ...merchant, mode: "live" })).current)).not.toBe(value)
  })
)
