import { Effect, Fiber, Schedule } from "effect"
import { Client } from "undici"
import { manyAddresses } from "./Attack.ts"
import { checkoutOf } from "./abuse.ts"
import type { Shop } from "./Shop.ts"

/**
 * Payers who look at a payment's page once, one after the other, each from an address that has asked for nothing before.
 * A payer who looks again may wait as long as all others: for how long depends on the machine. `seen` ends it.
 */
export const payers = Effect.fn("test.payers")(function* (daemon: Shop) {
  const path = yield* checkoutOf(daemon)
  const statuses: Array<number> = []
  const waits: Array<number> = []
  const look = Effect.promise(async () => {
    const localAddress = `127.0.4.${1 + waits.length}`
    const client = new Client(`http://127.0.0.1:${daemon.port}`, manyAddresses ? { localAddress } : {})
    const began = performance.now()
    const { body, statusCode } = await client.request({ method: "GET", path })
    await body.dump()
    statuses.push(statusCode)
    waits.push(performance.now() - began)
    await client.destroy()
  })
  const looking = yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced("500 millis")))
  return { seen: Effect.as(Fiber.interrupt(looking), { statuses, waits }) }
})
