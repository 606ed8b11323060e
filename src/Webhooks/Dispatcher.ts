import { Clock, Context, Duration, Effect, FiberSet, Layer, Queue, Schedule } from "effect"
import { Outbox } from "../Events/Outbox.ts"
import { Settings } from "../Settings.ts"
import { Reader, type StoreUnavailable, Writer } from "../Sql.ts"
import * as DeliveriesRepo from "./DeliveriesRepo.ts"
import { DeliveryClient } from "./DeliveryClient.ts"
import { type Lane, Lanes, type Slot } from "./Lanes.ts"
import * as LanesRepo from "./LanesRepo.ts"
import { failedAfter, succeeded } from "./retryPolicy.ts"
import { SigningKeys } from "./SigningKeys.ts"
import { signatureHeaders } from "./signature.ts"

/** A target whose last attempt took so long counts as slow. */
const slowMillis = 5_000

/** How long a stop waits for the attempts under way. What is cut off does not count, and is due at the next start. */
const stopGrace = "5 seconds"

/** Attempts that one command of the writer stores at most. */
const recordAtOnce = 256

const storeBackOff = Schedule.exponential("100 millis").pipe(Schedule.union(Schedule.spaced("5 seconds")))

/** Tries until the store is there again; its message names the remedy. */
const untilStored = <A>(effect: Effect.Effect<A, StoreUnavailable>): Effect.Effect<A> =>
  effect.pipe(
    Effect.tapError((error) => Effect.logWarning(error.message)),
    Effect.retry(storeBackOff),
    Effect.orDie
  )

/** An attempt that is over. `attempt` is undefined where the delivery was cancelled before it began. */
interface Ended {
  readonly slot: Slot
  readonly attempt: DeliveriesRepo.Attempt | undefined
}

/**
 * The due queue: sends what is due, then sleeps until something is, or until deliveries are added. The queue itself is in
 * the store; what is under way is known in memory alone, so that after a crash it is simply still due.
 */
export class Dispatcher extends Context.Tag("tilld/Webhooks/Dispatcher")<
  Dispatcher,
  {
    /** The worker. When it is interrupted, attempts under way have a few seconds to end. */
    readonly run: Effect.Effect<never>
    readonly health: Effect.Effect<LanesRepo.Backlog, StoreUnavailable>
  }
>() {
  static readonly layer = Layer.effect(
    Dispatcher,
    Effect.gen(function* () {
      const { concurrency, concurrencyPerEndpoint } = (yield* Settings).webhooks
      const reader = yield* Reader
      const writer = yield* Writer
      const outbox = yield* Outbox
      const client = yield* DeliveryClient
      const keys = yield* SigningKeys

      const attempt = (delivery: DeliveriesRepo.DueDelivery) =>
        Effect.gen(function* () {
          const { sequence, eventId, endpoint, url } = delivery
          const key = yield* endpoint === undefined ? keys.ofOwner(delivery) : keys.ofEndpoint(endpoint)
          const body = Buffer.from(delivery.body, "utf8")
          const startedAt = yield* Clock.currentTimeMillis
          const outcome = yield* client.post({ url, body, headers: signatureHeaders(key, eventId, body, startedAt) })
          const endedAt = yield* Clock.currentTimeMillis
          const { status, error, bodyStart } = outcome
          const number = delivery.attempts + 1
          if (!succeeded(status)) {
            const log = number === failedAfter ? Effect.logWarning : Effect.logDebug
            yield* log("webhook attempt failed").pipe(
              Effect.annotateLogs({ event: eventId, endpoint: endpoint ?? "webhookUrl", number, result: status ?? error })
            )
          }
          const made: DeliveriesRepo.Attempt = { sequence, number, startedAt, endedAt, status, error, bodyStart }
          return made
        })

      const record = (batch: ReadonlyArray<Ended>, lanes: Iterable<Lane>) =>
        Effect.gen(function* () {
          for (const { attempt } of batch) if (attempt !== undefined) yield* DeliveriesRepo.recordAttempt(attempt)
          const now = yield* Clock.currentTimeMillis
          for (const { target, slow } of lanes) yield* LanesRepo.endTurn(target, slow, now)
        })

      const run = Effect.gen(function* () {
        const lanes = new Lanes({ concurrency, perLane: concurrencyPerEndpoint })
        const ended: Array<Ended> = []
        /** Lanes whose place in the order is wrong, since nothing of them is due. */
        const misplaced = new Set<Lane>()
        const changed = yield* Queue.sliding<void>(1)
        const attempts = yield* FiberSet.make<void, never>()
        const fork = yield* FiberSet.runtime(attempts)<never>()
        let stopping = false

        const start = (): void => {
          if (stopping) return
          for (let slot = lanes.next(); slot !== undefined; slot = lanes.next()) fork(occupy(slot), { immediate: false })
        }

        const occupy = (slot: Slot): Effect.Effect<void> =>
          Effect.gen(function* () {
            const delivery = yield* untilStored(DeliveriesRepo.dueDelivery(reader, slot.sequence))
            const made = delivery === undefined ? undefined : yield* untilStored(attempt(delivery))
            lanes.ended(slot, made === undefined ? slot.slow : made.endedAt - made.startedAt >= slowMillis)
            ended.push({ slot, attempt: made })
            start()
            changed.unsafeOffer(undefined)
          })

        const recordSome = Effect.suspend(() => {
          const batch = ended.slice(0, recordAtOnce)
          const turns = new Set([...batch.map(({ slot }) => slot.lane), ...misplaced])
          return Effect.map(writer.write(record(batch, turns)), () => {
            ended.splice(0, batch.length)
            misplaced.clear()
            for (const { slot } of batch) lanes.recorded(slot)
          })
        }).pipe(Effect.uninterruptible)

        const look = (lane: Lane, now: number) =>
          Effect.gen(function* () {
            const window = lanes.window(lane)
            const places = yield* LanesRepo.head(reader, lane.target, window)
            if (!lanes.fill(lane, places, window, now)) misplaced.add(lane)
          })

        /** Reads what is due in lanes of a class; gives the time when more will be. */
        const fill = (slow: boolean, now: number) =>
          Effect.gen(function* () {
            const room = lanes.room(slow)
            const order = yield* LanesRepo.first(reader, slow, lanes.size + room + 1)
            const others = order.filter(({ target }) => !lanes.has(target))
            const due = others.filter(({ nextAt }) => nextAt <= now)
            for (const { target } of due.slice(0, room)) yield* look(lanes.open(target, slow), now)
            // Lanes that wait outside come before second helpings.
            if (due.length <= room) {
              for (const lane of lanes.all) if (lane.slow === slow && lanes.wants(lane, now)) yield* look(lane, now)
            }
            return others[due.length]?.nextAt
          })

        const step = Effect.gen(function* () {
          if (ended.length > 0 || misplaced.size > 0) yield* recordSome
          lanes.prune()
          const now = yield* Clock.currentTimeMillis
          const times = [yield* fill(false, now), yield* fill(true, now)]
          start()
          if (ended.length > 0 || misplaced.size > 0) return
          for (const lane of lanes.all) times.push(lane.nextAt)
          const next = Math.min(...times.filter((time) => time !== undefined && time > now) as Array<number>)
          yield* Number.isFinite(next)
            ? Effect.timeoutOption(Queue.take(changed), Duration.millis(next - now))
            : Queue.take(changed)
        })

        const listen = Effect.map(outbox.newDeliveries, () => {
          lanes.wake()
          changed.unsafeOffer(undefined)
        })

        yield* Effect.addFinalizer(() =>
          Effect.gen(function* () {
            stopping = true
            yield* Effect.timeoutOption(Effect.interruptible(FiberSet.awaitEmpty(attempts)), stopGrace)
            while (ended.length > 0) yield* recordSome
          }).pipe(Effect.ignoreLogged)
        )

        return yield* Effect.all([Effect.forever(untilStored(step)), Effect.forever(listen), FiberSet.join(attempts)], {
          concurrency: "unbounded"
        })
      }).pipe(Effect.scoped, Effect.zipRight(Effect.never), Effect.annotateLogs({ service: "dispatcher" }))

      const health = Effect.flatMap(Clock.currentTimeMillis, (now) => LanesRepo.backlog(reader, now))

      return { run, health }
    })
  )
}
