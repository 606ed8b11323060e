import { Clock, Deferred, Effect, FiberId } from "effect"
import { Chains } from "../Chains.ts"
import type { HealthApi } from "../Http/Api.ts"
import { type Handlers, sharedAnswer } from "../Http/Handler.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { Dispatcher } from "../Webhooks/Dispatcher.ts"

/** How long the public readiness is cached, in nanoseconds, so that frequent requests cost nothing. */
const kept = 1_000_000_000n

export const alive = sharedAnswer({ alive: true } as const)

/** The full readiness of chains, workers and deliveries, for the operator. */
export const makeReport = Effect.map(
  Effect.all([Chains, Dispatcher, Workers], { concurrency: 1 }),
  ([chains, dispatcher, workers]) =>
    Effect.all(
      { chains: chains.health, workers: workers.health, dispatcher: dispatcher.health },
      { concurrency: 1 }
    ).pipe(
      Effect.map((report) => ({
        ready: [...report.chains, ...report.workers].every(({ ready }) => ready),
        ...report
      }))
    )
)

export const readinessStatusOf = ({ ready }: { readonly ready: boolean }) => ({ status: ready ? 200 : 503 })

/** Shares one result among all requests within a second. It is completed even if the first client goes away meanwhile. */
const oncePerSecond = <A, E>(make: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  let last: { readonly at: bigint; readonly made: Deferred.Deferred<A, E> } | undefined
  return Effect.flatMap(Clock.currentTimeNanos, (now) => {
    if (last !== undefined && now - last.at < kept) return Deferred.await(last.made)
    const made = Deferred.unsafeMake<A, E>(FiberId.none)
    last = { at: now, made }
    return Effect.zipRight(Effect.forkDaemon(Effect.intoDeferred(make, made)), Deferred.await(made))
  })
}

/** The public readiness: what is ready, by name, without reasons. */
export const healthHandlers = Effect.map(makeReport, (report): Handlers<typeof HealthApi> => {
  const publicReadiness = Effect.map(report, ({ chains, ready, workers }) =>
    sharedAnswer(
      {
        ready,
        chains: chains.map((one) => ({ chain: one.chain, mode: one.mode, ready: one.ready })),
        workers: workers.map((one) => ({ name: one.name, ready: one.ready }))
      },
      readinessStatusOf({ ready })
    )
  )
  const ready = oncePerSecond(publicReadiness)
  return { alive: () => Effect.succeed(alive), ready: () => ready }
})
