import { Clock, Context, Effect, FiberHandle, FiberSet, Layer, Queue, Schedule } from "effect"
import { failedAfter, lastDelay } from "../Domain/DeliveryObject.ts"
import { randomToken } from "../Domain/Ids.ts"
import type { Endpoint } from "../Domain/Webhook.ts"
import { iso } from "../lib/moment.ts"
import { Settings } from "../Settings.ts"
import { Reader, type StoreUnavailable, Writer } from "../Sql.ts"
import { LogLimit } from "../Telemetry/LogLimit.ts"
import { type Instruments, Metrics } from "../Telemetry/Metrics.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { type Attempt, type DueDelivery, deliveryId } from "./queue/DeliveriesRepo.ts"
import { DeliveryBell } from "./queue/DeliveryBell.ts"
import { DueQueue } from "./queue/DueQueue.ts"
import { type Backlog, backlog } from "./queue/LanesRepo.ts"
import { succeeded } from "./queue/retryPolicy.ts"
import type { Slot } from "./queue/slots.ts"
import { SigningKeys } from "./SigningKeys.ts"
import { pluginHeaders, type SigningKey, signatureHeaders } from "./signature.ts"
import { type AttemptOutcome, DeliveryClient } from "./transport/DeliveryClient.ts"

/** The attempt was not made because the signing secret cannot be opened. */
const secretUnreadable = "secret unreadable"

/** Every `AttemptOutcome.error`: how an attempt can end without a status. */
const errors = [
  "timeout",
  "tls",
  "connection refused",
  "connection reset",
  "connection closed",
  "connection failed",
  "unreachable",
  "out of descriptors",
  "invalid response",
  "name not resolved",
  "target refused",
  secretUnreadable
]

/** Without the details that follow a colon. */
const nameOf = (error: string): string => error.replace(/:.*/s, "").replaceAll(" ", "_")

/** Every way in which an attempt can end, as a label value of metrics. */
const outcomeClasses: ReadonlyArray<string> = [
  "delivered",
  "http_3xx",
  "http_4xx",
  "http_5xx",
  ...errors.map(nameOf),
  "other"
]

/** The outcome class of an attempt: one of `outcomeClasses`. */
export const outcomeClass = ({ error = "", status }: AttemptOutcome): string => {
  if (succeeded(status)) return "delivered"
  const name = status === undefined ? nameOf(error) : `http_${Math.floor(status / 100)}xx`
  return outcomeClasses.includes(name) ? name : "other"
}

/** How long a stop waits for attempts under way. An interrupted attempt does not count and is due at the next start. */
const stopGrace = "5 seconds"

const storeRetry = Schedule.exponential("100 millis").pipe(Schedule.union(Schedule.spaced("5 seconds")))

/**
 * Retries while the store is unavailable. The logged message names the remedy. The first try runs without the schedule:
 * starting a schedule costs more than the read itself.
 */
const untilStored = <A>(effect: Effect.Effect<A, StoreUnavailable>): Effect.Effect<A> =>
  Effect.catchAll(effect, () =>
    effect.pipe(
      Effect.tapError((error) => Effect.logWarning(error.message)),
      Effect.retry(storeRetry),
      Effect.orDie
    )
  )

/** Whether this attempt, if it failed, changes its delivery's status to `failed`. */
const isDecisive = ({ attempts, isRedelivery, isRetried }: Attempt): boolean =>
  !isRedelivery && (!isRetried || attempts === failedAfter)

/** Of one receiver, and of all: a dead receiver with a long queue must not fill the log. */
const deliveryLogs = { perKey: 6, inAll: 120 }

/**
 * Logs a delivery whose first attempt fails, one that has become `failed`, and its recovery; the attempts between only at
 * level debug.
 */
const makeDeliveryLog = () => {
  const failures = new LogLimit(deliveryLogs)
  const recoveries = new LogLimit(deliveryLogs)
  return ({ attempts, endpoint, eventId, status, url }: DueDelivery, attempt: Attempt): Effect.Effect<void> => {
    const isDelivered = succeeded(attempt.status)
    if (isDelivered && (attempts === 0 || status === "delivered")) return Effect.void
    // Of a URL only the host: its path may be a secret of the merchant.
    const { host } = new URL(url)
    const about = {
      delivery: deliveryId(eventId, endpoint),
      endpoint: endpoint ?? "webhookUrl",
      host,
      attempts: attempt.attempts,
      result: attempt.status ?? attempt.error
    }
    const key = endpoint ?? host
    if (isDelivered) {
      const line = Effect.logInfo("a webhook was delivered after failed attempts")
      return recoveries.write(key, Effect.annotateLogs(line, about))
    }
    if (isDecisive(attempt)) {
      const left = attempt.isRetried
        ? `one attempt is left, ${lastDelay} later`
        : "its shop plugin wants no other attempt"
      const line = Effect.logWarning(`a webhook delivery has failed: ${left}`)
      return failures.write(key, Effect.annotateLogs(line, about))
    }
    const isFirst = attempt.attempts === 1 && !attempt.isRedelivery
    return isFirst
      ? failures.write(key, Effect.annotateLogs(Effect.logWarning("a webhook attempt failed: it is retried"), about))
      : Effect.annotateLogs(Effect.logDebug("a webhook attempt failed again"), about)
  }
}

const attemptCounter = ({ webhookAttemptDuration, webhookAttempts, webhookFailures }: Instruments) => {
  for (const outcome of outcomeClasses) webhookAttempts.inc({ outcome }, 0)
  return (attempt: Attempt): void => {
    webhookAttempts.inc({ outcome: outcomeClass(attempt) })
    webhookAttemptDuration.observe(Math.max(0, attempt.endedAt - attempt.startedAt) / 1000)
    if (isDecisive(attempt) && !succeeded(attempt.status)) webhookFailures.inc()
  }
}

/** Undefined: the secret cannot be opened. One damaged row must not end the worker for all other deliveries. */
const keyOf = (keys: SigningKeys["Type"], delivery: DueDelivery) =>
  Effect.catchTag(
    delivery.endpoint === undefined ? keys.ofOwner(delivery) : keys.ofEndpoint(delivery.endpoint),
    "SecretUnreadable",
    ({ message }) => Effect.as(Effect.logError(message), undefined)
  )

/** Signs a delivery and sends it once. */
const makeAttempt =
  (
    client: DeliveryClient["Type"],
    keys: SigningKeys["Type"],
    count: (attempt: Attempt) => void,
    log: ReturnType<typeof makeDeliveryLog>
  ) =>
  (delivery: DueDelivery) =>
    Effect.gen(function* () {
      const { sequence, eventId, isOfPlugin, isRedelivery, isRetried, url } = delivery
      const key = yield* untilStored(keyOf(keys, delivery))
      const body = Buffer.from(delivery.body, "utf8")
      const startedAt = yield* Clock.currentTimeMillis
      const signed = (by: SigningKey) =>
        isOfPlugin ? pluginHeaders(by, body) : signatureHeaders(by, eventId, body, startedAt)
      const outcome =
        key === undefined ? { error: secretUnreadable } : yield* client.post({ url, body, headers: signed(key) })
      const endedAt = yield* Clock.currentTimeMillis
      const attempts = delivery.attempts + (isRedelivery ? 0 : 1)
      const moved = delivery.hasMoved ? { movedTo: url } : {}
      const attempt: Attempt = { ...outcome, ...moved, sequence, attempts, isRedelivery, isRetried, startedAt, endedAt }
      count(attempt)
      yield* log(delivery, attempt)
      return attempt
    })

/**
 * The worker that sends webhooks. It makes every attempt that is due, then sleeps until the next one is due or deliveries
 * are added. The store holds the queue: attempts under way are known to this process only, so after a crash they are
 * still due, and a receiver may get an event twice. `main` runs the worker; /readyz and the metrics read its backlog.
 */
export class Dispatcher extends Context.Tag("tilld/Webhooks/Dispatcher")<
  Dispatcher,
  {
    /** The worker. When it is interrupted, attempts under way have five seconds to end. */
    readonly run: Effect.Effect<never>
    /** Deliveries that are due now, and the age of the oldest. */
    readonly health: Effect.Effect<Backlog, StoreUnavailable>
  }
>() {
  static readonly layer = Layer.effect(
    Dispatcher,
    Effect.gen(function* () {
      const settings = yield* Settings
      const { concurrency, concurrencyPerEndpoint } = settings.webhooks
      const { quotaBytes } = settings.accounts
      const reader = yield* Reader
      const writer = yield* Writer
      const bell = yield* DeliveryBell
      const heartbeat = (yield* Workers).worker("dispatcher", "10 seconds")
      const count = attemptCounter(yield* Metrics)
      const attempt = makeAttempt(yield* DeliveryClient, yield* SigningKeys, count, makeDeliveryLog())

      const run = Effect.gen(function* () {
        const queue = new DueQueue({ concurrency, perLane: concurrencyPerEndpoint }, reader, writer, quotaBytes)
        const changed = yield* Queue.sliding<void>(1)
        // Set only where it is earlier: a step follows each attempt, and to race a timer with it would take three fibers.
        const alarm = yield* FiberHandle.make<void>()
        let alarmAt = Number.POSITIVE_INFINITY
        const ring = Effect.sync(() => {
          alarmAt = Number.POSITIVE_INFINITY
          changed.unsafeOffer(undefined)
        })

        const send = (slot: Slot) =>
          Effect.map(attempt(slot.delivery), (made) => {
            queue.end(slot, made)
            changed.unsafeOffer(undefined)
          })

        // One fiber per attempt, in a set and not as children: an interruption lets attempts under way end.
        const underWay = yield* FiberSet.make<void, never>()
        const schedule = Effect.gen(function* () {
          const { nextAt, slots } = yield* heartbeat(untilStored(queue.step))
          for (const slot of slots) yield* FiberSet.run(underWay, send(slot))
          const now = yield* Clock.currentTimeMillis
          if (nextAt <= now) return
          // By the clock that is never set. A later alarm is set again when the earlier one has rung.
          const ringsAt = Number(yield* Clock.currentTimeNanos) / 1e6 + nextAt - now
          if (ringsAt < alarmAt) {
            alarmAt = ringsAt
            yield* FiberHandle.run(alarm, Effect.delay(ring, nextAt - now))
          }
          yield* Queue.take(changed)
        })

        const listen = Effect.map(bell.rung, () => {
          queue.wake()
          changed.unsafeOffer(undefined)
        })

        yield* Effect.addFinalizer(() =>
          Effect.gen(function* () {
            yield* Effect.timeoutOption(Effect.interruptible(FiberSet.awaitEmpty(underWay)), stopGrace)
            yield* FiberSet.clear(underWay)
            yield* queue.flush
          }).pipe(Effect.ignoreLogged)
        )
        // Not a race: a race does not wait for its losers, and the finalizer would store attempts while they still do.
        yield* Effect.all([Effect.forever(schedule), Effect.forever(listen), FiberSet.join(underWay)], {
          concurrency: "unbounded",
          discard: true
        })
        return yield* Effect.dieMessage("the webhook dispatcher ended by itself")
      }).pipe(Effect.scoped, Effect.annotateLogs({ service: "webhooks" }))

      const health = Effect.flatMap(Clock.currentTimeMillis, (now) => backlog(reader, now))

      return { run, health }
    })
  )
}

/**
 * Sends an endpoint a test message, signed like its webhooks. It cannot be taken for an event: its id and its kind are
 * not those of events, and it contains no payment.
 */
export const sendTest = Effect.fn("Webhooks.sendTest")(function* ({ id: endpoint, url }: Endpoint) {
  const client = yield* DeliveryClient
  const key = yield* Effect.flatMap(SigningKeys, (keys) => keys.ofEndpoint(endpoint))
  const startedAt = yield* Clock.currentTimeMillis
  const id = `test_${randomToken()}`
  const message = "A test of this endpoint. It tells of no payment."
  const body = Buffer.from(JSON.stringify({ id, event: "test", createdAt: iso(startedAt), endpoint, message }))
  const outcome = yield* client.post({ url, body, headers: signatureHeaders(key, id, body, startedAt) })
  const endedAt = yield* Clock.currentTimeMillis
  return { ...outcome, id, endpoint, url, durationMillis: endedAt - startedAt }
})
