/**
 * The delivery queue's worker part: `step` stores ended attempts in batches, and says which deliveries to attempt now; `end`
 * returns a slot. Only the dispatcher uses it. The store is the source of truth for what is due: memory knows the attempts
 * that are under way and those that are not stored yet. One that was under way when the process ended is still due.
 */
import { Clock, Duration, Effect } from "effect"
import type { Db, StoreUnavailable, Writer } from "../../Sql.ts"
import * as DeliveriesRepo from "./DeliveriesRepo.ts"
import * as LanesRepo from "./LanesRepo.ts"
import { type Account, type Lane, type Slot, type SlotLimits, Slots } from "./slots.ts"

/** A target whose last attempt took this long counts as slow. */
const slowMillis = 5_000

/**
 * While at least `busyCount` attempts are under way, ended attempts are gathered into one commit until there are
 * `gatherCount`, for up to `gatherFactor` times as long as the last commit took: each costs a write to the disk, which
 * blocks the event loop, and must not take a larger part of the time on a slow disk.
 */
const busyCount = 8
const gatherCount = 128
const gatherFactor = 2
const shortestGather = 5
const longestGather = 100

/** Deliveries that are read ahead of a target. */
const readAhead = 16

/** Maximum number of attempts that one command of the writer stores. */
const storeBatch = 256

const never = Number.POSITIVE_INFINITY

/** An ended attempt; or a target that the store lists as due although nothing of it is, whose place is to be corrected. */
interface Ended {
  readonly lane: Lane
  readonly attempt?: DeliveriesRepo.Attempt
}

export class DueQueue {
  readonly #slots: Slots
  readonly #reader: Db
  readonly #writer: Writer["Type"]
  readonly #quotaBytes: number
  readonly #ended: Array<Ended> = []
  /** Slots that were taken and not handed out: a later read of their step has failed. */
  readonly #begun: Array<Slot> = []
  /** When to look for accounts with something due. */
  #lookAt = 0
  /**
   * When the last step ran. A clock that shows an earlier time was set back. Infinity before the first step: the clock
   * may have been set back while tilld was not running.
   */
  #steppedAt = never
  /** Milliseconds for which ended attempts are gathered. */
  #gatherMillis = shortestGather

  /** @param quotaBytes as configured */
  constructor(limits: SlotLimits, reader: Db, writer: Writer["Type"], quotaBytes: number) {
    this.#slots = new Slots(limits)
    this.#reader = reader
    this.#writer = writer
    this.#quotaBytes = quotaBytes
  }

  /** Frees the slot: a step has something to do now. */
  end(slot: Slot, attempt: DeliveriesRepo.Attempt): void {
    const { endedAt, isNewConnection, startedAt } = attempt
    this.#slots.ended(slot, endedAt - startedAt >= slowMillis, isNewConnection ? endedAt : undefined)
    this.#ended.push({ lane: slot.lane, attempt })
  }

  /** Deliveries were added to the store: a step has something to do now. */
  wake(): void {
    this.#lookAt = 0
  }

  /**
   * Stores ended attempts when it is time, and takes slots for what is due. Returns those slots, and the time of the next step
   * (Unix milliseconds, infinity when nothing is scheduled).
   */
  readonly step: Effect.Effect<{ readonly slots: ReadonlyArray<Slot>; readonly nextAt: number }, StoreUnavailable> =
    Effect.gen(this, function* () {
      const now = yield* Clock.currentTimeMillis
      if (this.#storeAt(now) <= now) yield* this.#store
      if (now < this.#steppedAt) {
        yield* this.#writer.write(DeliveriesRepo.replan(now))
        this.wake()
      }
      this.#steppedAt = now
      this.#slots.release(now)
      if (this.#lookAt <= now) {
        this.#slots.due(yield* LanesRepo.dueAccounts(this.#reader, now))
        this.#lookAt = (yield* LanesRepo.firstAfter(this.#reader, now)) ?? never
      }
      yield* this.#begin(now)
      this.#lookAt = Math.min(this.#lookAt, this.#slots.nextAt(now))
      return { slots: this.#begun.splice(0), nextAt: Math.min(this.#storeAt(now), this.#lookAt) }
    })

  /** Stores all ended attempts. */
  readonly flush: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() =>
    this.#ended.length > 0 ? Effect.zipRight(this.#store, this.flush) : Effect.void
  )

  #storeAt(now: number): number {
    const [first] = this.#ended
    if (first === undefined) return never
    const gathers = this.#slots.running >= busyCount && this.#ended.length < gatherCount
    const endedAt = first.attempt?.endedAt ?? never
    // An attempt with a future end time ended before the clock was set back: without this check it would wait until then.
    return gathers && endedAt <= now ? endedAt + this.#gatherMillis : 0
  }

  /** Uninterruptible, so that no attempt is stored twice. */
  readonly #store: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() => {
    const batch = this.#ended.slice(0, storeBatch)
    const attempts = batch.flatMap(({ attempt }) => attempt ?? [])
    const quotaBytes = this.#quotaBytes
    const command = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* DeliveriesRepo.recordAttempts(attempts, now, quotaBytes)
      const lanes = new Set(batch.map(({ lane }) => lane))
      let nextAt = never
      for (const { slow, target } of lanes) nextAt = Math.min(nextAt, yield* LanesRepo.endTurn(target, slow, now))
      return nextAt
    })
    return Effect.map(Effect.timed(this.#writer.write(command)), ([took, nextAt]) => {
      this.#lookAt = Math.min(this.#lookAt, nextAt)
      const gather = gatherFactor * Duration.toMillis(took)
      this.#gatherMillis = Math.min(Math.max(gather, shortestGather), longestGather)
      this.#ended.splice(0, batch.length)
      for (const { attempt, lane } of batch) this.#slots.stored(lane, attempt?.sequence)
    })
  }).pipe(Effect.uninterruptible)

  #begin(now: number) {
    return Effect.gen(this, function* () {
      for (let account = this.#slots.next(); account !== undefined; account = this.#slots.next()) {
        const slots = account.count + this.#slots.free(account)
        if (account.due === undefined || account.dueFor < slots) {
          account.due = yield* this.#dueOf(account, now)
          account.dueFor = slots
        }
        const lane = this.#slots.choose(account, now)
        if (lane !== undefined) yield* this.#beginIn(lane, now)
      }
    })
  }

  #dueOf(account: Account, now: number) {
    return Effect.gen(this, function* () {
      const limit = account.lanes.size + this.#slots.free(account)
      const first = yield* LanesRepo.dueOf(this.#reader, account.name, false, now, limit)
      const slow = yield* LanesRepo.dueOf(this.#reader, account.name, true, now, limit)
      // However many others have waited longer: slots are kept for the healthy ones.
      const healthy =
        first.length < limit ? [] : yield* LanesRepo.dueAmong(this.#reader, [...account.healthy], now, limit)
      return [...first, ...slow, ...healthy]
    })
  }

  #beginIn(lane: Lane, now: number) {
    return Effect.gen(this, function* () {
      if (lane.waiting.length === 0) yield* this.#read(lane, now)
      const [sequence] = lane.waiting
      if (sequence === undefined) return
      const delivery = yield* DeliveriesRepo.dueDelivery(this.#reader, lane.target, sequence, now)
      lane.waiting.shift()
      if (delivery !== undefined) this.#begun.push(this.#slots.begin(lane, delivery))
    })
  }

  /** Reads what is due of a target: scheduled attempts, else one redelivery, so that no number of these delays a new event. */
  #read(lane: Lane, now: number) {
    return Effect.gen(this, function* () {
      const { taken } = lane.account
      const limit = lane.taken + readAhead
      let nextAt = never
      let isTaken = false
      for (const isRedelivery of [false, true]) {
        const places = yield* LanesRepo.head(this.#reader, lane.target, isRedelivery, limit)
        const others = places.filter(({ sequence }) => !taken.has(sequence))
        isTaken ||= others.length < places.length
        const due = others.filter(({ nextAttemptAt }) => nextAttemptAt <= now)
        lane.waiting = due.slice(0, isRedelivery ? 1 : readAhead).map(({ sequence }) => sequence)
        if (due.length > 0) return
        nextAt = Math.min(nextAt, others[0]?.nextAttemptAt ?? never)
      }
      lane.nextAt = nextAt
      if (!isTaken) this.#ended.push({ lane })
    })
  }
}
