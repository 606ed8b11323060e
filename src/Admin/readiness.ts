import { Clock, Deferred, Duration, Effect, FiberId } from "effect"
import { type ChainHealth, Chains } from "../Chains.ts"
import type { HealthApi } from "../Http/Api.ts"
import { type Handlers, sharedAnswer } from "../Http/Handler.ts"
import { Settings } from "../Settings.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { Dispatcher } from "../Webhooks/Dispatcher.ts"

/** How long the public readiness is kept, so that frequent requests cost nothing: at a start each look may find it ready. */
const keptTime = { ready: "1 second", waiting: "100 millis" } as const

export const alive = sharedAnswer({ alive: true } as const)

/**
 * Why this machine's clock is wrong by the last heads of the chains: it is too far behind one, or ahead of all. Payments
 * would end at a wrong time.
 */
export const wrongClock = (chains: ReadonlyArray<ChainHealth>, toleranceMillis: number): string | undefined => {
  const heads = chains.flatMap(({ headAheadSeconds }) => headAheadSeconds ?? [])
  const lead = Math.max(...heads)
  if (heads.length === 0 || Math.abs(lead) * 1000 <= toleranceMillis) return undefined
  const by = Duration.format(Duration.seconds(Math.round(Math.abs(lead))))
  const which = lead > 0 ? "behind a chain's" : "ahead of every chain's"
  return `this machine's clock is ${by} ${which}: let chrony or systemd-timesyncd set it`
}

/** The full readiness of chains, workers and deliveries, for the operator. */
export const makeReport = Effect.map(
  Effect.all([Chains, Dispatcher, Workers, Settings], { concurrency: 1 }),
  ([chains, dispatcher, workers, { payments }]) => {
    const tolerance = Duration.toMillis(payments.clockTolerance)
    return Effect.all(
      { chains: chains.health, workers: workers.health, dispatcher: dispatcher.health },
      { concurrency: 1 }
    ).pipe(
      Effect.map((report) => {
        const clock = wrongClock(report.chains, tolerance)
        const workers = report.workers.map((worker) =>
          worker.name === "clock" && worker.ready && clock !== undefined
            ? { name: worker.name, ready: false, reason: clock }
            : worker
        )
        return { ready: [...report.chains, ...workers].every(({ ready }) => ready), ...report, workers }
      })
    )
  }
)

export const readinessStatusOf = ({ ready }: { readonly ready: boolean }) => ({ status: ready ? 200 : 503 })

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
  const ready = keptFor(({ body }) => keptTime[body.ready ? "ready" : "waiting"], publicReadiness)
  return { alive: () => Effect.succeed(alive), ready: () => ready }
})

/**
 * Shares one result among all callers while it is computed, and until it expires, counted from the start of the
 * computation. It is completed even if its first caller is interrupted.
 */
export const keptFor = <A, E>(
  goodFor: (made: A) => Duration.DurationInput,
  make: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  let last: { readonly made: Deferred.Deferred<A, E>; until: bigint | undefined } | undefined
  return Effect.flatMap(Clock.currentTimeNanos, (now) => {
    if (last !== undefined && (last.until === undefined || now < last.until)) return Deferred.await(last.made)
    const making = { made: Deferred.unsafeMake<A, E>(FiberId.none), until: undefined as bigint | undefined }
    last = making
    const kept = Effect.onExit(make, (exit) =>
      Effect.sync(() => {
        making.until = exit._tag === "Success" ? now + BigInt(Duration.toMillis(goodFor(exit.value))) * 1_000_000n : now
      })
    )
    return Effect.zipRight(Effect.forkDaemon(Effect.intoDeferred(kept, making.made)), Deferred.await(making.made))
  })
}
