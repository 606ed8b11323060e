import type { IncomingMessage } from "node:http"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Scope, TestClock } from "effect"
import { Admin } from "../../src/Admin.ts"
import { Keys, RateLimits } from "../../src/Auth.ts"
import { Chains } from "../../src/Chains.ts"
import { Conditions } from "../../src/Conditions/standing.ts"
import { noBytes } from "../../src/Http/body.ts"
import { onlyCalledBy } from "../../src/Http/hostNames.ts"
import { Idempotency } from "../../src/Http/idempotency.ts"
import { Uncollected } from "../../src/Payments/addresses/Uncollected.ts"
import { Prices } from "../../src/Quotes/Prices.ts"
import { Reader } from "../../src/Sql.ts"
import { Metrics } from "../../src/Telemetry/Metrics.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { dial } from "../lib/socket.ts"

const unused = () => {
  throw new Error("nobody asks for it")
}

it.each([
  ["127.0.0.1:9090", 200],
  ["[::1]:9090", 200],
  ["::1", 421],
  ["192.0.2.7", 200],
  ["LOCALHOST.:9090", 200],
  ["Metrics.internal:9090", 200],
  ["admin.example", 200],
  ["evil.example:9090", 421],
  ["localhost.evil.example", 421],
  ["127.0.0.1.evil.example", 421],
  ["127.0.0.1@evil.example", 421],
  ["", 421],
  [undefined, 200]
] as const)("the host name %s gets %d: a page cannot read it by giving its name this address", (host, status) =>
  Effect.gen(function* () {
    const respond = onlyCalledBy(["admin.example", "metrics.internal"], () =>
      Effect.succeed({ status: 200, headers: {}, text: "{}" })
    )
    const request = { headers: host === undefined ? {} : { host } } as IncomingMessage
    expect((yield* respond(request, Effect.succeed(noBytes), "req_1")).status).toBe(status)
  }).pipe(Effect.runPromise)
)

it.scoped("an unanswered request delays a shutdown by 2 seconds, since the API may have taken 20 before", () =>
  Effect.gen(function* () {
    const asked = yield* Deferred.make<void>()
    const services = Layer.mergeAll(
      Layer.mock(Chains, {
        health: Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never),
        exclusively: unused,
        behind: () => 0,
        wake: unused,
        viewed: unused,
        refresh: unused,
        look: unused
      }),
      Layer.mock(Dispatcher, {}),
      Layer.mock(Conditions, {}),
      Layer.mock(Prices, { usd: unused, of: unused, status: unused, reported: unused }),
      Layer.mock(Uncollected, { waiting: unused }),
      Layer.mock(Keys, {}),
      Layer.mock(RateLimits, { spend: unused }),
      Layer.mock(Idempotency, {}),
      Layer.mock(Reader, { writes: unused }),
      Metrics.layer,
      testSettingsLayer(":memory:")
    )
    const scope = yield* Scope.make()
    const admin = Layer.provide(Admin.layer({ host: "127.0.0.1", port: 0, names: ["metrics.internal"] }), services)
    const { address } = yield* Effect.provide(Admin, yield* Layer.buildWithScope(admin, scope))
    const client = yield* dial(address)
    client.write("GET /healthz HTTP/1.1\r\nhost: evil.example\r\n\r\n")
    yield* client.received(/^HTTP\/1.1 421 [\s\S]*admin.names[\s\S]*\}$/)
    client.write("GET /readyz HTTP/1.1\r\nhost: metrics.internal\r\n\r\n")
    yield* Deferred.await(asked)
    const stop = yield* Effect.fork(Scope.close(scope, Exit.void))
    yield* TestClock.adjust("1999 millis")
    expect(yield* Fiber.poll(stop)).toMatchObject({ _tag: "None" })
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(stop)
    expect(yield* client.closed).toMatch(/^HTTP\/1.1 421 .*\}$/s)
  })
)
