import { Clock, Context, Effect, Layer, Schedule } from "effect"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { Settings } from "../Settings.ts"
import { type Db, Reader, Tx, Writer } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { Accounts } from "./Accounts.ts"
import { accountLimits, configuredLimits, isForgotten, sharing, spend, type Usage, unused } from "./rateLimitWindows.ts"

/** How often usage is stored: the most that is lost when the process is killed. */
const storeInterval = "1 second"

const makeRateLimits = Effect.gen(function* () {
  const settings = yield* Settings
  const { limits } = settings
  const configured = configuredLimits(settings)
  const { termsOf } = yield* Accounts
  const reader = yield* Reader
  const writer = yield* Writer
  const heartbeat = (yield* Workers).worker("limits", storeInterval)
  // Of keys that have made a request within the hour, and of those that share a limit.
  const usages = new Map<string, Usage>(yield* storedUsages(reader))
  let changed = new Set<string>()

  const usageOf = (id: string): Usage => {
    const known = usages.get(id)
    if (known !== undefined) return known
    const usage = unused()
    usages.set(id, usage)
    return usage
  }

  const store = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const expired = Array.from(usages, ([id, usage]) => (isForgotten(usage, now) ? [id] : [])).flat()
    for (const id of expired) usages.delete(id)
    const ids = changed
    changed = new Set()
    if (ids.size === 0 && expired.length === 0) return
    const kept = Array.from(ids).flatMap((id) => {
      const usage = usages.get(id)
      return usage === undefined ? [] : [[id, usage] as const]
    })
    yield* writer.write(replaceUsages(kept, expired)).pipe(
      Effect.tapError(() =>
        Effect.sync(() => {
          for (const id of ids) changed.add(id)
        })
      )
    )
  }).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logWarning(message)))

  yield* Effect.addFinalizer(() => store)

  return {
    /**
     * Counts a request of the key and its account's keys at `now`, Unix milliseconds. Returns whether it is allowed, and the
     * state of the tightest limit.
     */
    spend: (key: Pick<ApiKey, "id" | "account" | "mode" | "granted" | "perMinute" | "perHour">, now: number) => {
      const { granted, id, perHour, perMinute } = key
      const terms = termsOf(key.account)
      const together = sharing(terms, key)
      const mostPerMinute = granted.perMinute ?? limits.perMinute
      const mostPerHour = granted.perHour ?? limits.perHour
      const verdict = spend(
        [
          {
            ...{ of: "key", usage: usageOf(id) },
            limits: {
              perMinute: Math.min(perMinute ?? mostPerMinute, mostPerMinute),
              perHour: Math.min(perHour ?? mostPerHour, mostPerHour)
            }
          },
          {
            ...{ of: "account", usage: usageOf(together) },
            limits: accountLimits(terms, configured, granted)
          }
        ],
        now
      )
      if (verdict.allowed) {
        changed.add(id)
        changed.add(together)
      }
      return verdict
    },
    /** The worker that stores usage. */
    run: Effect.zipRight(Effect.repeat(heartbeat(store), Schedule.spaced(storeInterval)), Effect.never)
  }
})

/**
 * The rate limits of API keys and of their accounts. Usage is counted in memory and stored every second, so that it survives
 * a restart.
 */
export class RateLimits extends Context.Tag("tilld/Auth/RateLimits")<
  RateLimits,
  Effect.Effect.Success<typeof makeRateLimits>
>() {
  static readonly layer = Layer.scoped(RateLimits, makeRateLimits)
}

interface Row {
  readonly of_id: string
  readonly minute_start: number
  readonly minute_count: number
  readonly hour_start: number
  readonly hour_count: number
}

/** The stored usage of every key, and of those that share a limit, that were active lately. */
const storedUsages = (db: Db) =>
  Effect.map(
    db.all<Row>("SELECT of_id, minute_start, minute_count, hour_start, hour_count FROM rate_windows"),
    (rows) =>
      rows.map((row): readonly [string, Usage] => [
        row.of_id,
        {
          minute: { start: row.minute_start, count: row.minute_count },
          hour: { start: row.hour_start, count: row.hour_count }
        }
      ])
  )

/** Stores the usage of some keys, and of those that share a limit, and deletes that of `expired` ones. */
const replaceUsages = (usages: Iterable<readonly [string, Usage]>, expired: Iterable<string>) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const id of expired) yield* tx.run("DELETE FROM rate_windows WHERE of_id = ?", [id])
    for (const [id, { hour, minute }] of usages) {
      yield* tx.run(
        `INSERT INTO rate_windows (of_id, minute_start, minute_count, hour_start, hour_count) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (of_id) DO UPDATE SET minute_start = excluded.minute_start, minute_count = excluded.minute_count,
           hour_start = excluded.hour_start, hour_count = excluded.hour_count`,
        [id, minute.start, minute.count, hour.start, hour.count]
      )
    }
  })
