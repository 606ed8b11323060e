import { Clock, Context, Duration, Effect, FiberSet, Layer, Option, Queue, Schedule } from "effect"
import { Settings } from "../Settings.ts"
import { Reader, type StoreUnavailable, Writer } from "../Sql.ts"
import { type Instruments, Metrics } from "../Telemetry/Metrics.ts"
import { Workers } from "../Telemetry/Workers.ts"
import type { LaneSlot } from "./queue/AccountLanes.ts"
import { type Attempt, type DueDelivery, dueDelivery } from "./queue/DeliveriesRepo.ts"
import { DeliveryBell } from "./queue/DeliveryBell.ts"
import { DueQueue } from "./queue/DueQueue.ts"
import { type Backlog, backlog } from "./queue/LanesRepo.ts"
import { outcomeClass, outcomeClasses, secretUnreadable } from "./queue/outcomes.ts"
import { failedAfter, succeeded } from "./queue/retryPolicy.ts"
import { SigningKeys } from "./SigningKeys.ts"
import { signatureHeaders } from "./signature.ts"
import { DeliveryClient } from "./transport/DeliveryClient.ts"

/** How long a stop waits for the attempts under way. What is cut off does not count, and is due at the next start. */
const stopGrace = "5 seconds"

const storeBackOff = Schedule.exponential("100 millis").pipe(Schedule.union(Schedule.spaced("5 seconds")))

/**
 * Tries until the store is there again; its message names the remedy. The first try goes without the schedule: to begin
 * one costs more than what is read.
 */
const untilStored = <A>(effect: Effect.Effect<A, StoreUnavailable>): Effect.Effect<A> =>
  Effect.catchAll(effect, () =>
    effect.pipe(
      Effect.tapError((error) => Effect.logWarning(error.message)),
      Effect.retry(storeBackOff),
      Effect.orDie
    )
  )

/** Whether a failed attempt is the one that makes its delivery fail. */
const isDecisive = ({ attempts, isRedelivery }: Attempt): boolean => attempts === failedAfter && !isRedelivery

const logFailure = ({ eventId, endpoint }: DueDelivery, attempt: Attempt) =>
  (isDecisive(attempt) ? Effect.logWarning : Effect.logDebug)("webhook attempt failed").pipe(
    Effect.annotateLogs({
      event: eventId,
      endpoint: endpoint ?? "webhookUrl",
      attempts: attempt.attempts,
      result: attempt.status ?? attempt.error
    })
  )

const countWith = ({ webhookAttemptDuration, webhookAttempts, webhookFailures }: Instruments) => {
  for (const outcome of outcomeClasses) webhookAttempts.add([outcome], 0)
  return (attempt: Attempt): void => {
    webhookAttempts.add([outcomeClass(attempt)])
    webhookAttemptDuration.observe(Math.max(0, attempt.endedAt - attempt.startedAt) / 1000)
    if (isDecisive(attempt) && !succeeded(attempt.status)) webhookFailures.add()
  }
}

/** Undefined: it cannot be read. That is one row's damage, which must not end the worker for all others. */
const keyOf = (keys: SigningKeys["Type"], delivery: DueDelivery) =>
  Effect.catchTag(
    delivery.endpoint === undefined ? keys.ofOwner(delivery) : keys.ofEndpoint(delivery.endpoint),
    "SecretUnreadable",
    ({ message }) => Effect.as(Effect.logError(message), undefined)
  )

/** Signs a delivery and sends it once. */
const makeAttempt =
  (client: DeliveryClient["Type"], keys: SigningKeys["Type"], count: (attempt: Attempt) => void) =>
  (delivery: DueDelivery) =>
    Effect.gen(function* () {
      const { sequence, eventId, isRedelivery, url } = delivery
      const key = yield* untilStored(keyOf(keys, delivery))
      const body = Buffer.from(delivery.body, "utf8")
      const startedAt = yield* Clock.currentTimeMillis
      const outcome =
        key === undefined
          ? { error: secretUnreadable }
          : yield* client.post({ url, body, headers: signatureHeaders(key, eventId, body, startedAt) })
      const endedAt = yield* Clock.currentTimeMillis
      const attempts = delivery.attempts + (isRedelivery ? 0 : 1)
      const attempt: Attempt = { ...outcome, sequence, attempts, isRedelivery, startedAt, endedAt }
      count(attempt)
      if (!succeeded(outcome.status)) yield* logFailure(delivery, attempt)
      return attempt
    })

/**
 * Sends what is due, then sleeps until something is, or until deliveries are added. The queue itself is in the store;
 * what is under way is known here alone, so that after a crash it is simply still due.
 */
export class Dispatcher extends Context.Tag("tilld/Webhooks/Dispatcher")<
  Dispatcher,
  {
    /** The worker. When it is interrupted, attempts under way have a few seconds to end. */
    readonly run: Effect.Effect<never>
    readonly health: Effect.Effect<Backlog, StoreUnavailable>
  }
>() {
  static readonly layer = Layer.effect(
    Dispatcher,
    Effect.gen(function* () {
      const { concurrency, concurrencyPerEndpoint } = (yield* Settings).webhooks
      const reader = yield* Reader
      const writer = yield* Writer
      const bell = yield* DeliveryBell
      const alive = (yield* Workers).worker("dispatcher", "10 seconds")
      const attempt = makeAttempt(yield* DeliveryClient, yield* SigningKeys, countWith(yield* Metrics))

      const run = Effect.gen(function* () {
        const queue = new DueQueue({ concurrency, perLane: concurrencyPerEndpoint }, reader, writer)
        const changed = yield* Queue.sliding<void>(1)

        const send = (slot: LaneSlot) =>
          Effect.gen(function* () {
            const delivery = yield* untilStored(dueDelivery(reader, slot.sequence))
            const made = delivery === undefined ? undefined : yield* attempt(delivery)
            if (queue.end(slot, made)) changed.unsafeOffer(undefined)
          })

        // A fiber for each attempt, and no children of this one: a stop lets them end what they have begun.
        const underWay = yield* FiberSet.make<void, never>()
        const give = Effect.gen(function* () {
          for (let slot = yield* queue.take; Option.isSome(slot); slot = yield* queue.take) {
            yield* FiberSet.run(underWay, send(slot.value))
          }
        })

        const schedule = Effect.gen(function* () {
          const nextAt = yield* alive(untilStored(queue.step))
          const wait = nextAt - (yield* Clock.currentTimeMillis)
          if (wait <= 0) return
          const change = Queue.take(changed)
          yield* Number.isFinite(wait) ? Effect.timeoutOption(change, Duration.millis(wait)) : change
        })

        const listen = Effect.map(bell.heard, () => {
          queue.wake()
          changed.unsafeOffer(undefined)
        })

        yield* Effect.addFinalizer(() =>
          Effect.gen(function* () {
            queue.close()
            yield* Effect.timeoutOption(Effect.interruptible(FiberSet.awaitEmpty(underWay)), stopGrace)
            yield* FiberSet.clear(underWay)
            yield* queue.flush
          }).pipe(Effect.ignoreLogged)
        )
        // Not a race: that would not wait for its losers, and a stop would store beside them.
        yield* Effect.all([Effect.forever(schedule), Effect.forever(listen), give, FiberSet.join(underWay)], {
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
