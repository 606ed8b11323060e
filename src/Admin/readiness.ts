import { Clock, Deferred, Effect, FiberId } from "effect"
import { Chains } from "../Chains.ts"
import type { HealthApi } from "../Http/Api.ts"
import { type Handlers, sharedAnswer } from "../Http/Handler.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { Dispatcher } from "../Webhooks/Dispatcher.ts"

/** How long an answer to everybody is given again, in nanoseconds: who asks more often costs no more. */
const kept = 1_000_000_000n

export const alive = sharedAnswer({ alive: true } as const)

/** All that is known of what works by itself: for the operator. */
export const makeReport = Effect.map(
  Effect.all([Chains, Dispatcher, Workers], { concurrency: 1 }),
  ([chains, dispatcher, workers]) =>
    Effect.all(
      { chains: chains.health, workers: workers.health, dispatcher: dispatcher.health },
      { concurrency: 1 }
    ).pipe(
      Effect.map((report) => ({
        ready: [...report.chains, ...report.workers].every((one) => one.ready),
        ...report
      }))
    )
)

export const readinessStatusOf = ({ ready }: { readonly ready: boolean }) => ({ status: ready ? 200 : 503 })

/** Makes something once for all that ask within a second, also when who asked first goes away meanwhile. */
const oncePerSecond = <A, E>(make: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  let last: { readonly at: bigint; readonly made: Deferred.Deferred<A, E> } | undefined
  return Effect.flatMap(Clock.currentTimeNanos, (now) => {
    if (last !== undefined && now - last.at < kept) return Deferred.await(last.made)
    const made = Deferred.unsafeMake<A, E>(FiberId.none)
    last = { at: now, made }
    return Effect.zipRight(Effect.forkDaemon(Effect.intoDeferred(make, made)), Deferred.await(made))
  })
}

/** For everybody: what is ready by name, and nothing of why something is not. */
export const healthHandlers = Effect.map(makeReport, (report): Handlers<typeof HealthApi> => {
  const told = Effect.map(report, ({ chains, ready, workers }) =>
    sharedAnswer(
      {
        ready,
        chains: chains.map((one) => ({ chain: one.chain, mode: one.mode, ready: one.ready })),
        workers: workers.map((one) => ({ name: one.name, ready: one.ready }))
      },
      readinessStatusOf({ ready })
    )
  )
  const ready = oncePerSecond(told)
  return { alive: () => Effect.succeed(alive), ready: () => ready }
})
