import { Clock, Context, Duration, Effect, Layer, Schedule } from "effect"
import * as UsageRepo from "./Auth/UsageRepo.ts"
import * as QuotesRepo from "./Quotes/QuotesRepo.ts"
import { Settings } from "./Settings.ts"
import { Reader, type StoreUnavailable, type Tx, Writer } from "./Sql.ts"
import { Workers } from "./Telemetry/Workers.ts"
import * as RetentionRepo from "./Webhooks/queue/RetentionRepo.ts"

/** How often it looks for what is old, and how many rows one command of the writer takes: nobody waits long behind it. */
const interval = "1 hour"
const atOnce = 200

/**
 * Forgets what `retention.deliveries` says is old enough: deliveries that have been done for so long, with their attempts,
 * events that were made before that and that no delivery needs any more, but for the newest of each owner, quotes that no
 * payment names, and deleted endpoints. Payments, their quotes and their transitions stay. Warns of accounts that have
 * almost stored what they may.
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
      const settings = yield* Settings
      const retention = Duration.toMillis(settings.retention.deliveries)
      const { quotaBytes } = settings.accounts
      const reader = yield* Reader
      const writer = yield* Writer
      const alive = (yield* Workers).worker("housekeeping", interval)

      const all = (page: Effect.Effect<boolean, StoreUnavailable, Tx>): Effect.Effect<void, StoreUnavailable> =>
        Effect.repeat(writer.write(page), { while: (more) => more })

      const paged = Effect.fnUntraced(function* <Place>(
        page: (after: Place | undefined) => Effect.Effect<Place | undefined, StoreUnavailable, Tx>
      ) {
        let after: Place | undefined
        do after = yield* writer.write(page(after))
        while (after !== undefined)
      })

      const warn = Effect.gen(function* () {
        for (const usage of yield* UsageRepo.all(reader)) {
          if (!UsageRepo.isNearlyFull(usage, quotaBytes)) continue
          yield* Effect.logWarning("an account has almost stored what it may: raise accounts.quota_bytes").pipe(
            Effect.annotateLogs({ account: usage.account, bytes: usage.stored + usage.reserved, quota: quotaBytes })
          )
        }
      })

      const clean = Effect.gen(function* () {
        const until = (yield* Clock.currentTimeMillis) - retention
        yield* all(RetentionRepo.forgetDeliveries(until, atOnce))
        yield* paged<RetentionRepo.Place>((after) => RetentionRepo.forgetEvents(until, after, atOnce))
        yield* all(RetentionRepo.forgetEndpoints(until, atOnce))
        yield* paged<QuotesRepo.Place>((after) => QuotesRepo.forget(until, after, atOnce))
        yield* warn
      }).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logWarning(message)))

      return {
        run: Effect.zipRight(Effect.repeat(alive(clean), Schedule.spaced(interval)), Effect.never).pipe(
          Effect.annotateLogs({ service: "housekeeping" })
        )
      }
    })
  )
}
