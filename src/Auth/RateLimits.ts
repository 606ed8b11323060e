import { Clock, Context, Effect, Layer, Schedule } from "effect"
import type { ApiKey } from "../Domain/ApiKey.ts"
import type { ApiKeyId } from "../Domain/Ids.ts"
import { Settings } from "../Settings.ts"
import { Reader, Writer } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import * as Repo from "./RateLimitsRepo.ts"
import { type Allowance, isForgotten, spend, type Usage, unused } from "./rateLimitWindows.ts"

/** How often usage is stored: the most that is lost when the process is killed. */
const storeInterval = "1 second"

/** The rate limits of API keys. Usage is counted in memory and stored every second, so that it survives a restart. */
export class RateLimits extends Context.Tag("tilld/Auth/RateLimits")<
  RateLimits,
  {
    /** Counts a request of the key at `now`, Unix milliseconds. Returns whether it is allowed, and the limit's state. */
    readonly spend: (
      key: Pick<ApiKey, "id" | "perMinute" | "perHour">,
      now: number
    ) => Allowance & { readonly allowed: boolean }
    /** The worker that stores usage. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.scoped(
    RateLimits,
    Effect.gen(function* () {
      const { limits } = yield* Settings
      const reader = yield* Reader
      const writer = yield* Writer
      const heartbeat = (yield* Workers).worker("limits", storeInterval)
      // Keys that have made a request within the hour.
      const usages = new Map<ApiKeyId, Usage>(yield* Repo.all(reader))
      let changed = new Set<ApiKeyId>()

      const store = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const expired = Array.from(usages, ([key, usage]) => (isForgotten(usage, now) ? [key] : [])).flat()
        for (const key of expired) usages.delete(key)
        const keys = changed
        changed = new Set()
        if (keys.size === 0 && expired.length === 0) return
        const kept = Array.from(keys).flatMap((key) => {
          const usage = usages.get(key)
          return usage === undefined ? [] : [[key, usage] as const]
        })
        yield* writer.write(Repo.replace(kept, expired)).pipe(
          Effect.tapError(() =>
            Effect.sync(() => {
              for (const key of keys) changed.add(key)
            })
          )
        )
      }).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logWarning(message)))

      yield* Effect.addFinalizer(() => store)

      return {
        spend: ({ id, perHour = limits.perHour, perMinute = limits.perMinute }, now) => {
          const usage = usages.get(id) ?? unused()
          usages.set(id, usage)
          const verdict = spend(usage, { perMinute, perHour }, now)
          if (verdict.allowed) changed.add(id)
          return verdict
        },
        run: Effect.zipRight(Effect.repeat(heartbeat(store), Schedule.spaced(storeInterval)), Effect.never)
      }
    })
  )
}
