import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Scope, TestClock } from "effect"
import { Admin } from "../../src/Admin.ts"
import { Keys, RateLimits } from "../../src/Auth.ts"
import { Chains } from "../../src/Chains.ts"
import { Idempotency } from "../../src/Http/idempotency.ts"
import { Prices } from "../../src/Quotes/Prices.ts"
import { Reader } from "../../src/Sql.ts"
import { Metrics } from "../../src/Telemetry/Metrics.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { dial } from "../lib/socket.ts"

const unused = () => {
  throw new Error("nobody asks for it")
}

it.scoped("an unanswered request delays a shutdown by 2 seconds, since the API may have taken 20 before", () =>
  Effect.gen(function* () {
    const asked = yield* Deferred.make<void>()
    const services = Layer.mergeAll(
      Layer.mock(Chains, {
        health: Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never),
        exclusively: unused,
        behind: () => 0,
        wake: unused,
        refresh: unused
      }),
      Layer.mock(Dispatcher, {}),
      Layer.mock(Prices, { usd: unused, of: unused, status: unused, told: unused }),
      Layer.mock(Keys, {}),
      Layer.mock(RateLimits, { spend: unused }),
      Layer.mock(Idempotency, {}),
      Layer.mock(Reader, { writes: unused }),
      Metrics.layer,
      testSettingsLayer(":memory:")
    )
    const scope = yield* Scope.make()
    const admin = Layer.provide(Admin.layer({ host: "127.0.0.1", port: 0 }), services)
    const { address } = yield* Effect.provide(Admin, yield* Layer.buildWithScope(admin, scope))
    const client = yield* dial(address)
    client.write("GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n")
    yield* Deferred.await(asked)
    const stop = yield* Effect.fork(Scope.close(scope, Exit.void))
    yield* TestClock.adjust("1999 millis")
    expect(yield* Fiber.poll(stop)).toMatchObject({ _tag: "None" })
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(stop)
    expect(yield* client.closed).toBe("")
  })
)
