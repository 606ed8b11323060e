/**
 * The lanes of one account, one lane per target. Lanes take turns, and none has more than `perLane` attempts under way.
 * Of the slots that the account is allowed, slow lanes together have at most half, lanes in probation at most half, and
 * both together at most three quarters: receivers that hang, known or new, leave room for the account's healthy ones.
 * `Lanes` holds one of these for each account with deliveries in memory, and says how many slots it is allowed.
 */
import type { LanePlace } from "./LanesRepo.ts"

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
