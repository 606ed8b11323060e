import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { idsOf, type openShop } from "./shop.ts"

type Shop = Effect.Effect.Success<ReturnType<typeof openShop>>

/** While there is harm, the store takes no writes, which is said where it must be; afterwards everything goes on by itself. */
export const survives = (
  { arrives, create, daemon, home, isReady, isReported, order, pay, stored }: Shop,
  harm: Effect.Effect<void>,
  mend: Effect.Effect<void>,
  words: string
) =>
  Effect.gen(function* () {
    const before = yield* Effect.replicateEffect(create, 5)
    yield* harm
    const refused = yield* Effect.replicateEffect(order, 20, { concurrency: 8 })
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]))
    expect(JSON.stringify(refused[0]?.body)).toContain("STORE_UNAVAILABLE")
    expect(yield* isReported("store")).toContain(words)
    // Besides the line of the first request that was refused.
    yield* daemon.line((line) => [`"service":"store"`, `"ERROR"`, words].every((text) => line.includes(text)))
    // Paid while nothing can be written.
    yield* Effect.forEach(before, pay, { concurrency: 1 })
    yield* mend
    yield* isReady("store")
    yield* daemon.logged("the store takes writes again")
    const after = yield* Effect.replicateEffect(create, 5)
    yield* Effect.forEach(after, pay, { concurrency: 1 })
    for (const payment of [...before, ...after]) yield* arrives(payment)
    expect(yield* stored).toEqual(idsOf([...before, ...after]))
    expect(yield* daemon.end("SIGTERM"), home.folder).toMatchObject({ code: 0 })
  })
