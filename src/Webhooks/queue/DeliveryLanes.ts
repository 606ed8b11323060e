/**
 * Decides which delivery is sent next. A lane holds the deliveries to one target; a slot is the right to make one
 * attempt. Slots go to accounts first, the account with the fewest attempts under way before the others, and within an
 * account to its lanes. An account may use every slot that the other accounts leave, and always its reserve of `perLane`:
 * no account waits because receivers of other accounts hang. Memory holds a bounded number of deliveries of each account;
 * the rest of a backlog stays in the store. A pure data structure: `DueQueue` fills it from the store and takes slots
 * from it.
 */
import type { LanePlace } from "./LanesRepo.ts"

export interface LaneLimits {
  /** Attempts at once of all accounts together. */
  readonly concurrency: number
  /** Attempts at once to one target. It is also each account's reserve: slots that other accounts cannot use up. */
  readonly perLane: number
}

/** Deliveries read ahead per slot of a lane, so that a free slot is filled without waiting for the store. */
const readAhead = 4

/**
 * A new connection, with whatever is answered over it, costs the event loop up to 20 ms where a request over a kept one
 * costs a tenth of one. Its slot is reserved so long, for each slot that there is, that an account which has all of them opens
 * 25 connections a second after a burst of as many as there are slots: a quarter of the loop, and never all of it.
 */
const reserveMillis = 80

/** From this many times `concurrency` attempts under way, each account's reserve is one slot. */
const ceilingFactor = 4

export class Lanes {
  readonly #limits: LaneLimits
  /** In turn order: the account that was served last is at the end. */
  readonly #accounts = new Map<string, AccountLanes>()
  /** Sequences of deliveries that are in memory. The store still lists them as due until their attempt is recorded. */
  readonly #taken = new Set<number>()
  #running = 0

  constructor(limits: LaneLimits) {
    this.#limits = limits
  }

  get accounts(): Iterable<AccountLanes> {
    return this.#accounts.values()
  }

  get all(): ReadonlyArray<Lane> {
    return [...this.#accounts.values()].flatMap(({ all }) => [...all])
  }

  /** Attempts under way. */
  get running(): number {
    return this.#running
  }

  of(account: string): AccountLanes {
    const found = this.#accounts.get(account) ?? new AccountLanes(account, this.#limits.perLane)
    if (!this.#accounts.has(account)) this.#accounts.set(account, found)
    return found
  }

  /** Attempts that an account may have under way now: all slots that others leave, but at least its reserve. */
  allowed(account: AccountLanes): number {
    const { concurrency, perLane } = this.#limits
    const reserve = this.#running < concurrency * ceilingFactor ? Math.min(perLane, concurrency) : 1
    return Math.max(concurrency - (this.#running - account.running), reserve)
  }

  /** Whether a lane should be read from the store: it is low, or a delivery that was in the future is due by now. */
  wants(lane: Lane, now: number): boolean {
    return this.isLow(lane) || (lane.nextAt !== undefined && lane.nextAt <= now && lane.waiting.length === 0)
  }

  /** Whether the store may hold more due deliveries of a lane, and fewer than half of the read-ahead are in memory. */
  isLow(lane: Lane): boolean {
    return lane.more && lane.waiting.length < (this.#limits.perLane * readAhead) / 2
  }

  /** How many deliveries to read: those in memory already, the read-ahead, and one that shows whether there are more. */
  window(lane: Lane): number {
    return lane.waiting.length + lane.running + lane.unrecorded + this.#limits.perLane * readAhead + 1
  }

  /**
   * Adds what is due of a lane's first deliveries, which were read with the limit `window`. False when nothing of the
   * lane is due or in memory: its place in the store's order of lanes is wrong.
   */
  fill(lane: Lane, places: ReadonlyArray<LanePlace>, window: number, now: number): boolean {
    const untaken = places.filter(({ sequence }) => !this.#taken.has(sequence))
    const due = untaken.filter(({ nextAttemptAt }) => nextAttemptAt <= now)
    // At most `perLane` redeliveries: a lane that holds only redeliveries stays low, so that newer events are read and go
    // first.
    let room = this.#limits.perLane - lane.waiting.filter(({ isRedelivery }) => isRedelivery).length
    let taken = 0
    for (const place of due) {
      if (place.isRedelivery && room-- <= 0) continue
      taken++
      this.#taken.add(place.sequence)
      const firstRedelivery = place.isRedelivery ? -1 : lane.waiting.findIndex(({ isRedelivery }) => isRedelivery)
      lane.waiting.splice(firstRedelivery === -1 ? lane.waiting.length : firstRedelivery, 0, place)
    }
    lane.more = taken < due.length || (due.length === untaken.length && places.length === window)
    lane.nextAt = untaken[due.length]?.nextAttemptAt
    return untaken.length < places.length || due.length > 0
  }

  /** The next delivery to attempt; undefined when none is waiting or no slot is free. */
  next(): LaneSlot | undefined {
    const waiting = [...this.#accounts.values()].filter(({ hasWaiting }) => hasWaiting)
    // A stable sort: accounts with equally many attempts take turns.
    for (const account of waiting.sort((a, b) => a.running - b.running)) {
      const slot = account.next(this.allowed(account), this.#limits.concurrency)
      if (slot === undefined) continue
      this.#running++
      // To the end of the turn order.
      this.#accounts.delete(account.account)
      this.#accounts.set(account.account, account)
      return slot
    }
    return undefined
  }

  /**
   * An attempt has ended and is not recorded yet. `wasSlow` is undefined when no attempt was made, `openedAt` is set, Unix
   * milliseconds, when it had a connection of its own.
   */
  ended(slot: LaneSlot, wasSlow: boolean | undefined, openedAt?: number): void {
    this.#running--
    const account = this.of(slot.lane.account)
    account.ended(slot, wasSlow)
    if (openedAt !== undefined) account.reserve(openedAt + this.#reserve)
  }

  /** Frees reserved slots whose time is over. Returns when the next one is free, in Unix milliseconds. */
  release(now: number): number {
    const next = [...this.#accounts.values()].flatMap((account) => account.release(now, this.#reserve) ?? [])
    return Math.min(...next)
  }

  get #reserve(): number {
    return this.#limits.concurrency * reserveMillis
  }

  /** The attempt is recorded in the store. */
  recorded({ lane, sequence }: LaneSlot): void {
    lane.unrecorded--
    lane.more = true
    this.#taken.delete(sequence)
  }

  /** Deliveries were added to the store. */
  wake(): void {
    for (const lane of this.all) lane.more = true
  }

  /** Drops lanes and accounts that have nothing in memory. */
  prune(): void {
    for (const account of this.#accounts.values()) {
      account.prune()
      if (account.isEmpty) this.#accounts.delete(account.account)
    }
  }
}

/** The deliveries to one target that are in memory. */
export interface Lane {
  readonly account: string
  readonly target: string
  /** Due deliveries in the order of their attempts: redeliveries are last. */
  readonly waiting: Array<LanePlace>
  /** Attempts under way. */
  running: number
  /** Attempts that have ended and are not stored yet. */
  unrecorded: number
  /** Its last attempt took long. */
  slow: boolean
  /** The store may hold more due deliveries of this lane. */
  more: boolean
  /** When the first delivery that is not due yet will be due, in Unix milliseconds. */
  nextAt: number | undefined
}

/**
 * The health of a target. `slow`: its last attempt took long. `healthy`: it has answered quickly. `probation`: neither is
 * known since the start, or one quick answer has followed a slow one. A lane in probation has one slot until the next
 * quick answer.
 */
type Standing = "healthy" | "probation" | "slow"

/** The right to make one attempt. */
export interface LaneSlot {
  readonly lane: Lane
  readonly sequence: number
  /** The lane's standing when the attempt began. The attempt counts against that share until it ends. */
  readonly standing: Standing
}

/** Healthy targets that are kept while none of their deliveries is in memory: those that answered last. */
const healthyCapacity = 1_024

/**
 * The lanes of one account, one lane per target. Lanes take turns, and none has more than `perLane` attempts under way.
 * Of the slots that the account is allowed, slow lanes together have at most half, lanes in probation at most half, and
 * both together at most three quarters: receivers that hang, known or new, leave room for the account's healthy ones.
 */
export class AccountLanes {
  readonly account: string
  readonly #perLane: number
  /** In turn order: the lane that was served last is at the end. */
  readonly #lanes = new Map<string, Lane>()
  readonly #healthy = new Set<string>()
  readonly #running = { slow: 0, probation: 0, healthy: 0 }
  /** When each slot that is reserved after its attempt is free again, in Unix milliseconds, in this order. */
  #reserved: ReadonlyArray<number> = []

  constructor(account: string, perLane: number) {
    this.account = account
    this.#perLane = perLane
  }

  get all(): Iterable<Lane> {
    return this.#lanes.values()
  }

  get size(): number {
    return this.#lanes.size
  }

  /** Attempts under way. */
  get running(): number {
    return this.#running.slow + this.#running.probation + this.#running.healthy
  }

  get hasWaiting(): boolean {
    for (const lane of this.#lanes.values()) if (lane.waiting.length > 0) return true
    return false
  }

  /** It holds no lane and no slot, and knows no healthy target. */
  get isEmpty(): boolean {
    return this.#lanes.size + this.#healthy.size + this.#reserved.length === 0
  }

  /** Reserves a slot of an ended attempt until a time, Unix milliseconds. */
  reserve(until: number): void {
    this.#reserved = [...this.#reserved, until]
  }

  /** Frees the slots whose time is over, and all where the clock was set back. Returns when the next is free. */
  release(now: number, longest: number): number | undefined {
    this.#reserved = this.#reserved.filter((until) => until > now && until <= now + longest)
    return this.#reserved[0]
  }

  /** Healthy targets that have no lane in memory. */
  get healthyOutside(): ReadonlyArray<string> {
    return [...this.#healthy].filter((target) => !this.#lanes.has(target))
  }

  has(target: string): boolean {
    return this.#lanes.has(target)
  }

  /** How many more slow lanes, or lanes that are not slow, may be read into memory. */
  room(slow: boolean, allowed: number): number {
    return this.#roomFor((lane) => lane.slow === slow, allowed)
  }

  /** How many more healthy lanes may be read into memory while lanes in probation have used up their share. */
  healthyRoom(allowed: number): number {
    if (this.running >= allowed || this.#hasRoomFor("probation", allowed)) return 0
    return this.#roomFor((lane) => this.#standingOf(lane) === "healthy", allowed)
  }

  #roomFor(belongs: (lane: Lane) => boolean, allowed: number): number {
    let active = 0
    for (const lane of this.#lanes.values()) if (belongs(lane) && lane.waiting.length > 0) active++
    return Math.max(0, allowed - active)
  }

  open(target: string, slow: boolean): Lane {
    const { account } = this
    const lane = { account, target, waiting: [], running: 0, unrecorded: 0, slow, more: true, nextAt: undefined }
    this.#lanes.set(target, lane)
    return lane
  }

  /**
   * The next delivery to attempt; undefined when none is waiting or no allowed slot is free. `burst`: slots that may be
   * held without one being missed.
   */
  next(allowed: number, burst: number): LaneSlot | undefined {
    if (this.running + Math.max(0, this.#reserved.length - burst) >= allowed) return undefined
    for (const lane of this.#lanes.values()) {
      const standing = this.#standingOf(lane)
      if (lane.waiting.length === 0 || !this.#mayRun(lane, standing, allowed)) continue
      const place = lane.waiting.shift()
      if (place === undefined) continue
      lane.running++
      this.#running[standing]++
      // To the end of the turn order.
      this.#lanes.delete(lane.target)
      this.#lanes.set(lane.target, lane)
      return { lane, sequence: place.sequence, standing }
    }
    return undefined
  }

  /** An attempt has ended and is not recorded yet. `wasSlow` is undefined when no attempt was made. */
  ended({ lane, standing }: LaneSlot, wasSlow: boolean | undefined): void {
    lane.running--
    lane.unrecorded++
    this.#running[standing]--
    if (wasSlow === undefined) return
    // A slow lane becomes healthy in two steps, through probation; one slow attempt makes any lane slow.
    this.#healthy.delete(lane.target)
    if (!wasSlow && !lane.slow) this.#addHealthy(lane.target)
    lane.slow = wasSlow
  }

  #standingOf({ slow, target }: Lane): Standing {
    if (slow) return "slow"
    return this.#healthy.has(target) ? "healthy" : "probation"
  }

  #mayRun({ running }: Lane, standing: Standing, allowed: number): boolean {
    if (running >= (standing === "probation" ? 1 : this.#perLane)) return false
    return standing === "healthy" || this.#hasRoomFor(standing, allowed)
  }

  #hasRoomFor(standing: "slow" | "probation", allowed: number): boolean {
    const { slow, probation } = this.#running
    const half = Math.max(1, Math.floor(allowed / 2))
    return this.#running[standing] < half && slow + probation < Math.ceil((allowed * 3) / 4)
  }

  #addHealthy(target: string): void {
    const [oldest] = this.#healthy.size < healthyCapacity ? [] : this.#healthy
    if (oldest !== undefined) this.#healthy.delete(oldest)
    this.#healthy.add(target)
  }

  /** Drops the lanes that have nothing in memory. */
  prune(): void {
    for (const lane of this.#lanes.values()) {
      if (lane.waiting.length + lane.running + lane.unrecorded === 0) this.#lanes.delete(lane.target)
    }
  }
}
