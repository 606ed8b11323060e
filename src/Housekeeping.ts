import { Clock, Context, Duration, Effect, Layer, Schedule } from "effect"
import { Settings } from "./Settings.ts"
import { type StoreUnavailable, Writer } from "./Sql.ts"
import { Workers } from "./Telemetry/Workers.ts"
import * as RetentionRepo from "./Webhooks/RetentionRepo.ts"

/** How often it looks for what is old, and how many rows one command of the writer takes: nobody waits long behind it. */
const interval = "1 hour"
const atOnce = 200

/**
 * Forgets what `retention.deliveries` says is old enough: deliveries that have been done for so long, with their attempts,
 * and events that were made before that and that no delivery needs any more, but for the newest of each owner. Payments
 * and their transitions stay.
 */
export class Housekeeping extends Context.Tag("tilld/Housekeeping")<
  Housekeeping,
  {
    /** The worker. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.effect(
    Housekeeping,
    Effect.gen(function* () {
      const retention = Duration.toMillis((yield* Settings).retention.deliveries)
      const writer = yield* Writer
      const alive = (yield* Workers).worker("housekeeping", interval)

      const forgetDeliveries = (until: number): Effect.Effect<void, StoreUnavailable> =>
        Effect.repeat(writer.write(RetentionRepo.forgetDeliveries(until, atOnce)), { while: (more) => more })

      const forgetEvents = Effect.fnUntraced(function* (until: number) {
        let after: RetentionRepo.Place | undefined
        do after = yield* writer.write(RetentionRepo.forgetEvents(until, after, atOnce))
        while (after !== undefined)
      })

      const clean = Effect.gen(function* () {
        const until = (yield* Clock.currentTimeMillis) - retention
        yield* forgetDeliveries(until)
        yield* forgetEvents(until)
      }).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logWarning(message)))

      return {
        run: Effect.zipRight(Effect.repeat(alive(clean), Schedule.spaced(interval)), Effect.never).pipe(
          Effect.annotateLogs({ service: "housekeeping" })
        )
      }
    })
  )
}
