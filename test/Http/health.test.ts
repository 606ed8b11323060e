import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type ChainHealth, Chains } from "../../src/Chains.ts"
import { healthHandlers } from "../../src/Http/health.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"

const providers = [{ host: "rpc.example", healthy: false, reason: "no answer" }]
const base: ChainHealth = { chain: "base", mode: "test", ready: true, head: 100, lagBlocks: 2, providers: [] }
const polygon: ChainHealth = { chain: "polygon", mode: "test", ready: false, reason: "no answer", providers }
const dispatcher = { due: 3, oldestDueMillis: 1_500 }

const readiness = (health: ReadonlyArray<ChainHealth>) =>
  Effect.flatMap(healthHandlers, ({ ready }) =>
    ready({ headers: {} as never, path: {} as never, query: {} as never, payload: {} as never })
  ).pipe(
    Effect.provide(
      Layer.merge(
        Layer.mock(Chains, {
          wake: () => {},
          refresh: () => Effect.void,
          exclusively: () => () => Effect.die("not asked for"),
          health: Effect.succeed(health)
        }),
        Layer.mock(Dispatcher, { health: Effect.succeed(dispatcher) })
      )
    )
  )

it.effect("ready is every chain being read; the dispatcher is told and does not decide", () =>
  Effect.gen(function* () {
    expect(yield* readiness([base])).toEqual({ status: 200, body: { ready: true, chains: [base], dispatcher } })
    expect(yield* readiness([base, polygon])).toEqual({
      status: 503,
      body: { ready: false, chains: [base, polygon], dispatcher }
    })
  })
)
