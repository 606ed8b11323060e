import { Context, Duration, Effect, Schedule } from "effect"

/** How long a start waits for a resource that another process holds: a minute; in the sandbox not at all. */
export class Patience extends Context.Reference<Patience>()("tilld/Telemetry/Patience", {
  defaultValue: () => Duration.minutes(1)
}) {}
const pause = "200 millis"

/**
 * Retries for up to `Patience` while the error may be transient. A warning names the reason at once, and again when it
 * changes.
 */
export const retryPatiently =
  <E extends { readonly message: string }>(mayPass: (error: E) => boolean) =>
  <A, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Patience, (patience) => {
      let said = ""
      return effect.pipe(
        Effect.tapError((error) => {
          if (!mayPass(error) || error.message === said) return Effect.void
          said = error.message
          return Effect.logWarning(error.message).pipe(Effect.annotateLogs({ waitsAtMost: Duration.format(patience) }))
        }),
        Effect.retry({ while: mayPass, schedule: Schedule.spaced(pause).pipe(Schedule.upTo(patience)) })
      )
    })
