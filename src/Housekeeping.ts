import { Clock, Context, Duration, Effect, Layer, Schedule } from "effect"
import * as LinksRepo from "./Auth/LoginLinksRepo.ts"
import * as SessionsRepo from "./Auth/SessionsRepo.ts"
import { unusedSince } from "./Auth/sessions.ts"
import * as UsageRepo from "./Auth/UsageRepo.ts"
import { closeAccounts, levelsOf, type QuotaLevel } from "./Auth/UsageRepo.ts"
import type { AccountId } from "./Domain/Ids.ts"
import * as IdempotencyRepo from "./Http/IdempotencyRepo.ts"
import { lifetime } from "./Http/idempotency.ts"
import * as RequestLogRepo from "./Http/RequestLogRepo.ts"
import { areUnindexed, indexMetadata } from "./Payments/metadata.ts"
import * as QuotesRepo from "./Quotes/QuotesRepo.ts"
import { Settings } from "./Settings.ts"
import { Reader, type StoreUnavailable, type Tx, Writer } from "./Sql.ts"
import { Workers } from "./Telemetry/Workers.ts"
import * as RetentionRepo from "./Webhooks/queue/DeliveriesRepo.ts"

/** How often it deletes, and how many rows one command of the writer deletes, so that other writes do not wait long. */
const interval = "1 hour"
/** How often accounts are compared with their quotas. */
const quotaInterval = "1 minute"
const batchSize = 200
/** How often new payments' metadata is indexed: a search reads those that are not, one by one. */
const indexInterval = "10 seconds"

/** How far the clock may be ahead of the newest head. Beyond that it may be wrong, and would make all of today old. */
const longestLead = Duration.toMillis("1 day")

/** The clock's time, held back by the newest head that is known; Unix milliseconds. */
const timeOf = (reader: Reader["Type"]) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const row = yield* reader.get<{ time: number | null }>("SELECT max(head_time) AS time FROM scans")
    const head = row?.time ?? undefined
    return head === undefined ? now : Math.min(now, head * 1000 + longestLead)
  })

/** Maximum rows of the request log, of all accounts together. */
const mostRequests = 1_000_000

/**
 * Deletes what is older than `retention.deliveries`: finished deliveries with their attempts; events without
 * deliveries, except the newest of each owner; quotes without a payment; deleted endpoints. Payments, their quotes and
 * their transitions are never deleted. Of the log of requests it keeps what `retention.requests` says, and at most a
 * million; beyond that, the owner with the most rows loses the oldest. Sign-in links, sessions and responses to repeated
 * requests go when they have ended. It also says when an account comes close to its quota, and indexes the metadata of
 * payments behind their creation. `main` runs the worker.
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
      const heartbeat = (yield* Workers).worker("housekeeping", interval)

      const repeated = (page: Effect.Effect<boolean, StoreUnavailable, Tx>): Effect.Effect<void, StoreUnavailable> =>
        Effect.repeat(writer.write(page), { while: (more) => more })

      const paged = Effect.fnUntraced(function* <Place>(
        page: (after: Place | undefined) => Effect.Effect<Place | undefined, StoreUnavailable, Tx>
      ) {
        let after: Place | undefined
        do after = yield* writer.write(page(after))
        while (after !== undefined)
      })

      let levels: ReadonlyMap<AccountId, QuotaLevel> = new Map()
      /** Says once when an account comes close to its quota, when it reaches it, and when it has room again. */
      const watchQuotas = Effect.gen(function* () {
        const close = closeAccounts(yield* UsageRepo.all(reader, quotaBytes), levels)
        const before = levels
        levels = levelsOf(close)
        for (const { account, level, quota, remedy, stored, summary } of close) {
          if (before.get(account) === level) continue
          yield* Effect.logWarning(summary).pipe(Effect.annotateLogs({ account, bytes: stored, quota, remedy }))
        }
        for (const account of before.keys()) {
          if (levels.has(account)) continue
          yield* Effect.logInfo(`account ${account} has room below its quota again`).pipe(
            Effect.annotateLogs({ account })
          )
        }
      }).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logWarning(message)))

      const clean = Effect.gen(function* () {
        const now = yield* timeOf(reader)
        const until = now - retention
        yield* repeated(RetentionRepo.forgetDeliveries(until, batchSize))
        yield* paged<number>((after) => RetentionRepo.forgetEvents(until, after, batchSize))
        yield* repeated(RetentionRepo.forgetEndpoints(until, batchSize))
        yield* paged<QuotesRepo.QuoteCursor>((after) => QuotesRepo.forget(until, after, batchSize))
        const requestsUntil = now - Duration.toMillis(settings.retention.requests)
        yield* repeated(RequestLogRepo.forget(requestsUntil, batchSize))
        for (const { excess, owner } of yield* RequestLogRepo.beyondShare(reader, mostRequests)) {
          for (let left = excess; left > 0; left -= batchSize) {
            yield* writer.write(RequestLogRepo.forgetOldest(owner, Math.min(left, batchSize)))
          }
        }
        yield* repeated(IdempotencyRepo.forget(now - lifetime, batchSize))
        yield* repeated(LinksRepo.forget(now - LinksRepo.memory, batchSize))
        yield* repeated(SessionsRepo.forget(unusedSince(now), batchSize))
      }).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logWarning(message)))

      // The store's own health says when it cannot be written.
      const indexNew = Effect.ignore(Effect.whenEffect(repeated(indexMetadata(batchSize)), areUnindexed(reader)))

      return {
        run: Effect.all(
          [
            Effect.repeat(heartbeat(clean), Schedule.spaced(interval)),
            Effect.repeat(watchQuotas, Schedule.spaced(quotaInterval)),
            Effect.repeat(indexNew, Schedule.spaced(indexInterval))
          ],
          { concurrency: "unbounded", discard: true }
        ).pipe(Effect.zipRight(Effect.never), Effect.annotateLogs({ service: "housekeeping" }))
      }
    })
  )
}
