import { Clock, Effect, Option } from "effect"
import type { Db, StoreUnavailable, Writer } from "../../Sql.ts"
import type { AccountLanes, Lane, LaneSlot } from "./AccountLanes.ts"
import * as DeliveriesRepo from "./DeliveriesRepo.ts"
import { type LaneLimits, Lanes } from "./Lanes.ts"
import * as LanesRepo from "./LanesRepo.ts"

/** A target whose last attempt took so long counts as slow. */
const slowMillis = 5_000

/**
 * While so many attempts are under way, those that end wait up to `gatherMillis` for each other, or until there are
 * `gatherCount`, and share a commit: each costs a write to the disk, which holds up everything else.
 */
const busy = 8
const gatherMillis = 30
const gatherCount = 128

/** Attempts that one command of the writer stores at most. */
const storeAtOnce = 256

const never = Number.POSITIVE_INFINITY

/** An attempt that is over. `attempt` is undefined where the delivery had been cancelled. */
interface Ended {
  readonly slot: LaneSlot
  readonly attempt: DeliveriesRepo.Attempt | undefined
}

/**
 * The part of the store's queue that is in memory: what is next, what is under way, and what has ended and is still to be
 * stored. Nothing here outlives the process, and nothing has to: what was under way is still due in the store.
 */
export class DueQueue {
  readonly #lanes: Lanes
  readonly #reader: Db
  readonly #writer: Writer["Type"]
  readonly #ended: Array<Ended> = []
  /** Lanes whose place in the store's order is wrong, since nothing of them is due. */
  readonly #misplaced = new Set<Lane>()
  readonly #takers: Array<(slot: Effect.Effect<Option.Option<LaneSlot>>) => void> = []
  /** When the last step was; a clock that is before that was set back. Before the first step it may have been. */
  #steppedAt = never
  #closed = false

  constructor(limits: LaneLimits, reader: Db, writer: Writer["Type"]) {
    this.#lanes = new Lanes(limits)
    this.#reader = reader
    this.#writer = writer
  }

  /** The next delivery to attempt: waits for one, and for a slot. None: the queue was closed. */
  readonly take: Effect.Effect<Option.Option<LaneSlot>> = Effect.async((resume) => {
    const slot = this.#closed ? undefined : this.#lanes.next()
    if (slot === undefined && !this.#closed) this.#takers.push(resume)
    else resume(Effect.succeed(Option.fromNullable(slot)))
  })

  /** Frees the slot. Tells whether `step` has something to do now. */
  end(slot: LaneSlot, attempt: DeliveriesRepo.Attempt | undefined): boolean {
    this.#lanes.ended(slot, attempt && attempt.endedAt - attempt.startedAt >= slowMillis)
    this.#ended.push({ slot, attempt })
    // One answer may have opened more slots than its own.
    this.#giveOut()
    const count = this.#ended.length
    return count === 1 || count === gatherCount || this.#lanes.running < busy || this.#lanes.isLow(slot.lane)
  }

  /** Deliveries were added to the store. */
  wake(): void {
    this.#lanes.wake()
  }

  /** Gives nothing more out. */
  close(): void {
    this.#closed = true
    for (const resume of this.#takers.splice(0)) resume(Effect.succeedNone)
  }

  /**
   * Stores what has ended, when it is time, and takes in what is due. Gives the time of the next step (Unix milliseconds,
   * infinity when nothing is scheduled), which comes earlier when deliveries are added or attempts end.
   */
  readonly step: Effect.Effect<number, StoreUnavailable> = Effect.gen(this, function* () {
    const now = yield* Clock.currentTimeMillis
    if (this.#storeAt(now) <= now) yield* this.#store
    if (now < this.#steppedAt) {
      yield* this.#writer.write(DeliveriesRepo.replan(now))
      this.#lanes.wake()
    }
    this.#steppedAt = now
    const dueAt = yield* this.#fill
    return Math.min(this.#storeAt(now), dueAt)
  })

  /** Stores all that has ended. */
  readonly flush: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() =>
    this.#ended.length > 0 ? Effect.zipRight(this.#store, this.flush) : Effect.void
  )

  #storeAt(now: number): number {
    const [first] = this.#ended
    if (this.#misplaced.size > 0) return 0
    if (first === undefined) return never
    const gathers = this.#lanes.running >= busy && this.#ended.length < gatherCount
    const endedAt = first.attempt?.endedAt ?? never
    // One that ends later than now ended before the clock was set back, and would wait until it has caught up.
    return gathers && endedAt <= now ? endedAt + gatherMillis : 0
  }

  /** In one piece: an interruption does not let an attempt be stored twice. */
  readonly #store: Effect.Effect<void, StoreUnavailable> = Effect.suspend(() => {
    const batch = this.#ended.slice(0, storeAtOnce)
    const misplaced = [...this.#misplaced]
    const turns = new Set([...batch.map(({ slot }) => slot.lane), ...misplaced])
    const attempts = batch.flatMap(({ attempt }) => attempt ?? [])
    const command = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      yield* DeliveriesRepo.recordAttempts(attempts, now)
      for (const { target, slow } of turns) yield* LanesRepo.endTurn(target, slow, now)
    })
    return Effect.map(this.#writer.write(command), () => {
      this.#ended.splice(0, batch.length)
      for (const lane of misplaced) this.#misplaced.delete(lane)
      for (const { slot } of batch) this.#lanes.recorded(slot)
    })
  }).pipe(Effect.uninterruptible)

  readonly #fill: Effect.Effect<number, StoreUnavailable> = Effect.gen(this, function* () {
    this.#lanes.prune()
    const now = yield* Clock.currentTimeMillis
    const inside = [...this.#lanes.accounts].map(({ account }) => account)
    for (const account of new Set([...inside, ...(yield* LanesRepo.dueAccounts(this.#reader, now))])) {
      yield* this.#fillAccount(this.#lanes.of(account), now)
    }
    const nextAt = (yield* LanesRepo.firstAfter(this.#reader, now)) ?? never
    return Math.min(nextAt, ...this.#lanes.all.map((lane) => lane.nextAt ?? never).filter((time) => time > now))
  })

  #fillAccount(lanes: AccountLanes, now: number) {
    return Effect.gen(this, function* () {
      yield* this.#fillClass(lanes, false, now)
      yield* this.#fillClass(lanes, true, now)
      this.#giveOut()
      yield* this.#fillProven(lanes, now)
      this.#giveOut()
    })
  }

  #fillClass(lanes: AccountLanes, slow: boolean, now: number) {
    return Effect.gen(this, function* () {
      const room = lanes.room(slow, this.#lanes.allowed(lanes))
      const order = yield* LanesRepo.dueOf(this.#reader, lanes.account, slow, now, lanes.size + room + 1)
      const outside = order.filter((target) => !lanes.has(target))
      for (const target of outside.slice(0, room)) yield* this.#look(lanes.open(target, slow), now)
      // Lanes that are still outside come before second helpings.
      if (outside.length > room) return
      for (const lane of lanes.all) if (lane.slow === slow && this.#lanes.wants(lane, now)) yield* this.#look(lane, now)
    })
  }

  /** Many new lanes must not hide those that slots are kept for. */
  #fillProven(lanes: AccountLanes, now: number) {
    return Effect.gen(this, function* () {
      const room = lanes.provenRoom(this.#lanes.allowed(lanes))
      if (room === 0) return
      const targets = yield* LanesRepo.dueAmong(this.#reader, lanes.provenOutside, now, room)
      for (const target of targets) yield* this.#look(lanes.open(target, false), now)
    })
  }

  #look(lane: Lane, now: number) {
    const window = this.#lanes.window(lane)
    return Effect.map(LanesRepo.head(this.#reader, lane.target, window, now), (places) => {
      if (!this.#lanes.fill(lane, places, window, now)) this.#misplaced.add(lane)
    })
  }

  #giveOut(): void {
    while (this.#takers.length > 0) {
      const slot = this.#lanes.next()
      if (slot === undefined) return
      this.#takers.pop()?.(Effect.succeedSome(slot))
    }
  }
}
