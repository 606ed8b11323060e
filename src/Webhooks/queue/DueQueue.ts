/**
 * The part of the delivery queue that is in memory: which deliveries are next, which attempts are under way, and which
 * have ended and are not stored yet. Only the dispatcher uses it: `take` gives a delivery to attempt, `end` returns its
 * slot, `step` stores ended attempts in batches and reads what is due. The store remains the source of truth: an attempt
 * that was under way when the process ended is still due there.
 */
import { Clock, Duration, Effect, Option } from "effect"
import type { Db, StoreUnavailable, Writer } from "../../Sql.ts"
import * as DeliveriesRepo from "./DeliveriesRepo.ts"
import type { AccountLanes, Lane, LaneSlot } from "./DeliveryLanes.ts"
import { type LaneLimits, Lanes } from "./DeliveryLanes.ts"
import * as LanesRepo from "./LanesRepo.ts"

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

/** Maximum number of attempts that one command of the writer stores. */
const storeBatch = 256

const never = Number.POSITIVE_INFINITY

/** An ended attempt. `attempt` is undefined when none was made because the delivery had been cancelled. */
interface Ended {
  readonly slot: LaneSlot
  readonly attempt: DeliveriesRepo.Attempt | undefined
}

export class DueQueue {
  readonly #lanes: Lanes
  readonly #reader: Db
  readonly #writer: Writer["Type"]
  readonly #quotaBytes: number
  readonly #ended: Array<Ended> = []
  /**
   * Lanes that the store lists as due although none of their deliveries is. Their place is corrected with the next write.
   */
  readonly #misplaced = new Set<Lane>()
  readonly #takers: Array<(slot: Effect.Effect<Option.Option<LaneSlot>>) => void> = []
  /**
   * When the last step ran. A clock that shows an earlier time was set back. Infinity before the first step: the clock
   * may have been set back while tilld was not running.
   */
  #steppedAt = never
  #closed = false
  /** Milliseconds for which ended attempts are gathered. */
  #gatherMillis = shortestGather

  /** @param quotaBytes as configured */
  constructor(limits: LaneLimits, reader: Db, writer: Writer["Type"], quotaBytes: number) {
    this.#lanes = new Lanes(limits)
    this.#reader = reader
    this.#writer = writer
    this.#quotaBytes = quotaBytes
  }

  /** The next delivery to attempt. Waits for a delivery and a free slot. None: the queue was closed. */
  readonly take: Effect.Effect<Option.Option<LaneSlot>> = Effect.async((resume) => {
    const slot = this.#closed ? undefined : this.#lanes.next()
    if (slot === undefined && !this.#closed) this.#takers.push(resume)
    else resume(Effect.succeed(Option.fromNullable(slot)))
  })

  /** Frees the slot. True when `step` has something to do now. */
  end(slot: LaneSlot, attempt: DeliveriesRepo.Attempt | undefined): boolean {
    const wasSlow = attempt && attempt.endedAt - attempt.startedAt >= slowMillis
    this.#lanes.ended(slot, wasSlow, attempt?.isNewConnection ? attempt.endedAt : undefined)
    this.#ended.push({ slot, attempt })
    // A quick answer may make the lane healthy, which opens more slots than this one.
    this.#resumeTakers()
    const count = this.#ended.length
    return count === 1 || count === gatherCount || this.#lanes.running < busyCount || this.#lanes.isLow(slot.lane)
  }

  /** Deliveries were added to the store. */
  wake(): void {
    this.#lanes.wake()
  }

  /** Ends all `take`s, present and future, with none. */
  close(): void {
    this.#closed = true
    for (const resume of this.#takers.splice(0)) resume(Effect.succeedNone)
  }

  /**
   * Stores ended attempts when it is time, and reads what is due. Returns the time of the next step (Unix milliseconds,
   * infinity when nothing is scheduled). The caller steps earlier when deliveries are added or attempts end.
   */
  readonly step: Effect.Effect<number, StoreUnavailable> = Effect.gen(this, function* () {
    const now = yield* Clock.currentTimeMillis
    if (this.#storeAt(now) <= now) yield* this.#store
    if (now < this.#steppedAt) {
      yield* this.#writer.write(DeliveriesRepo.replan(now))
      this.#lanes.wake()
    }
    this.#steppedAt = now
    const freeAt = this.#lanes.release(now)
    const dueAt = yield* this.#fill
    return Math.min(this.#storeAt(now), dueAt, freeAt)
  })

  /** Stores all ended attempts. */
  readonly flush: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() =>
    this.#ended.length > 0 ? Effect.zipRight(this.#store, this.flush) : Effect.void
  )

  #storeAt(now: number): number {
    const [first] = this.#ended
    if (this.#misplaced.size > 0) return 0
    if (first === undefined) return never
    const gathers = this.#lanes.running >= busyCount && this.#ended.length < gatherCount
    const endedAt = first.attempt?.endedAt ?? never
    // An attempt with a future end time ended before the clock was set back: without this check it would wait until then.
    return gathers && endedAt <= now ? endedAt + this.#gatherMillis : 0
  }

  /** Uninterruptible, so that no attempt is stored twice. */
  readonly #store: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() => {
    const batch = this.#ended.slice(0, storeBatch)
    const misplaced = [...this.#misplaced]
    const servedLanes = new Set([...batch.map(({ slot }) => slot.lane), ...misplaced])
    const attempts = batch.flatMap(({ attempt }) => attempt ?? [])
    const quotaBytes = this.#quotaBytes
    const command = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* DeliveriesRepo.recordAttempts(attempts, now, quotaBytes)
      for (const { target, slow } of servedLanes) yield* LanesRepo.endTurn(target, slow, now)
    })
    return Effect.map(Effect.timed(this.#writer.write(command)), ([took]) => {
      const gather = gatherFactor * Duration.toMillis(took)
      this.#gatherMillis = Math.min(Math.max(gather, shortestGather), longestGather)
      this.#ended.splice(0, batch.length)
      for (const lane of misplaced) this.#misplaced.delete(lane)
      for (const { slot } of batch) this.#lanes.recorded(slot)
    })
  }).pipe(Effect.uninterruptible)

  readonly #fill: Effect.Effect<number, StoreUnavailable> = Effect.gen(this, function* () {
    this.#lanes.prune()
    const now = yield* Clock.currentTimeMillis
    const inMemory = [...this.#lanes.accounts].map(({ account }) => account)
    for (const account of new Set([...inMemory, ...(yield* LanesRepo.dueAccounts(this.#reader, now))])) {
      yield* this.#fillAccount(this.#lanes.of(account), now)
    }
    const nextAt = (yield* LanesRepo.firstAfter(this.#reader, now)) ?? never
    return Math.min(nextAt, ...this.#lanes.all.map((lane) => lane.nextAt ?? never).filter((time) => time > now))
  })

  #fillAccount(lanes: AccountLanes, now: number) {
    return Effect.gen(this, function* () {
      yield* this.#fillClass(lanes, false, now)
      yield* this.#fillClass(lanes, true, now)
      this.#resumeTakers()
      yield* this.#fillHealthy(lanes, now)
      this.#resumeTakers()
    })
  }

  #fillClass(lanes: AccountLanes, slow: boolean, now: number) {
    return Effect.gen(this, function* () {
      const room = lanes.room(slow, this.#lanes.allowed(lanes))
      const order = yield* LanesRepo.dueOf(this.#reader, lanes.account, slow, now, lanes.size + room + 1)
      const outside = order.filter((target) => !lanes.has(target))
      for (const target of outside.slice(0, room)) yield* this.#read(lanes.open(target, slow), now)
      // Lanes in memory get more of their backlog only when no due lane is left outside.
      if (outside.length > room) return
      for (const lane of lanes.all) if (lane.slow === slow && this.#lanes.wants(lane, now)) yield* this.#read(lane, now)
    })
  }

  /** Reads healthy lanes although lanes in probation fill the account's room: slots are kept for the healthy ones. */
  #fillHealthy(lanes: AccountLanes, now: number) {
    return Effect.gen(this, function* () {
      const room = lanes.healthyRoom(this.#lanes.allowed(lanes))
      if (room === 0) return
      const targets = yield* LanesRepo.dueAmong(this.#reader, lanes.healthyOutside, now, room)
      for (const target of targets) yield* this.#read(lanes.open(target, false), now)
    })
  }

  #read(lane: Lane, now: number) {
    const window = this.#lanes.window(lane)
    return Effect.map(LanesRepo.head(this.#reader, lane.target, window, now), (places) => {
      if (!this.#lanes.fill(lane, places, window, now)) this.#misplaced.add(lane)
    })
  }

  #resumeTakers(): void {
    while (this.#takers.length > 0) {
      const slot = this.#lanes.next()
      if (slot === undefined) return
      this.#takers.pop()?.(Effect.succeedSome(slot))
    }
  }
}
