import { Effect, Fiber, Schedule } from "effect"
import { Client } from "undici"
import { manyAddresses } from "./Attack.ts"
import { checkoutOf } from "./abuse.ts"
import type { Shop } from "./Shop.ts"

/** Somebody who looks at their payment's page twice a second, from an address of their own. `seen` ends it. */
export const payer = Effect.fn("test.payer")(function* (daemon: Shop) {
  const path = yield* checkoutOf(daemon)
  const client = yield* Effect.acquireRelease(
    Effect.sync(
      () => new Client(`http://127.0.0.1:${daemon.port}`, manyAddresses ? { localAddress: "127.0.4.1" } : {})
    ),
    (client) => Effect.promise(() => client.destroy())
  )
  const statuses: Array<number> = []
  const waits: Array<number> = []
  const look = Effect.promise(async () => {
    const began = performance.now()
    const { body, statusCode } = await client.request({ method: "GET", path })
    await body.dump()
    statuses.push(statusCode)
    waits.push(performance.now() - began)
  })
  const looking = yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced("500 millis")))
  return { seen: Effect.as(Fiber.interrupt(looking), { statuses, waits }) }
})
