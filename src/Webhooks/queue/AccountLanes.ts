import type { Place } from "./LanesRepo.ts"

/** One target's deliveries that are in memory. */
export interface Lane {
  readonly account: string
  readonly target: string
  /** Due, and next in this order: what was ordered again comes behind all others. */
  readonly waiting: Array<Place>
  running: number
  /** Attempts that have ended and are not stored yet. */
  unrecorded: number
  /** Its last attempt took long. */
  slow: boolean
  /** There may be more in the store that is due. */
  more: boolean
  /** When the first delivery that is not due yet will be, in Unix milliseconds. */
  nextAt: number | undefined
}

/**
 * What is known of a target. `unproven`: it has not answered quickly since the start, or only once since it was slow.
 * Such a lane has one slot until it does.
 */
type Standing = "proven" | "unproven" | "slow"

/** One attempt's place. */
export interface LaneSlot {
  readonly lane: Lane
  readonly sequence: number
  /** What its lane was when it began: it counts for that to its end. */
  readonly standing: Standing
}

/** Targets that are remembered as proven while nothing of theirs is in memory; those that answered last. */
const remembered = 1_024

/**
 * The lanes of one account. They take turns, and none has more than its slots. Of the slots that the account is allowed,
 * those that are slow have at most half together, those that are unproven too, and both at most three quarters, so that
 * its receivers that hang, known ones or new ones, leave room for its others.
 */
export class AccountLanes {
  readonly account: string
  readonly #perLane: number
  /** In the order of their turns. */
  readonly #lanes = new Map<string, Lane>()
  readonly #proven = new Set<string>()
  readonly #running = { slow: 0, unproven: 0, proven: 0 }

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
    return this.#running.slow + this.#running.unproven + this.#running.proven
  }

  get hasWaiting(): boolean {
    for (const lane of this.#lanes.values()) if (lane.waiting.length > 0) return true
    return false
  }

  /** Nothing would be lost with it. */
  get isEmpty(): boolean {
    return this.#lanes.size + this.#proven.size === 0
  }

  /** Targets that have answered quickly, and nothing of which is in memory. */
  get provenOutside(): ReadonlyArray<string> {
    return [...this.#proven].filter((target) => !this.#lanes.has(target))
  }

  has(target: string): boolean {
    return this.#lanes.has(target)
  }

  /** Lanes of a class that may still be given deliveries. */
  room(slow: boolean, allowed: number): number {
    return this.#roomBeside((lane) => lane.slow === slow, allowed)
  }

  /** Those that are proven and may still be given deliveries although no other has a slot. */
  provenRoom(allowed: number): number {
    if (this.running >= allowed || this.#hasRoomFor("unproven", allowed)) return 0
    return this.#roomBeside((lane) => this.#standingOf(lane) === "proven", allowed)
  }

  #roomBeside(isOfThem: (lane: Lane) => boolean, allowed: number): number {
    let active = 0
    for (const lane of this.#lanes.values()) if (isOfThem(lane) && lane.waiting.length > 0) active++
    return Math.max(0, allowed - active)
  }

  open(target: string, slow: boolean): Lane {
    const { account } = this
    const lane = { account, target, waiting: [], running: 0, unrecorded: 0, slow, more: true, nextAt: undefined }
    this.#lanes.set(target, lane)
    return lane
  }

  /** The next delivery to attempt; undefined while there is none, or no slot among those that are allowed. */
  next(allowed: number): LaneSlot | undefined {
    if (this.running >= allowed) return undefined
    for (const lane of this.#lanes.values()) {
      const standing = this.#standingOf(lane)
      if (lane.waiting.length === 0 || !this.#mayRun(lane, standing, allowed)) continue
      const place = lane.waiting.shift()
      if (place === undefined) continue
      lane.running++
      this.#running[standing]++
      // To the end of the order.
      this.#lanes.delete(lane.target)
      this.#lanes.set(lane.target, lane)
      return { lane, sequence: place.sequence, standing }
    }
    return undefined
  }

  /** An attempt has ended, and is still to be recorded. `wasSlow` is undefined where none was made after all. */
  ended({ lane, standing }: LaneSlot, wasSlow: boolean | undefined): void {
    lane.running--
    lane.unrecorded++
    this.#running[standing]--
    if (wasSlow === undefined) return
    // One step up at a time, and all the way down at once.
    this.#proven.delete(lane.target)
    if (!wasSlow && !lane.slow) this.#remember(lane.target)
    lane.slow = wasSlow
  }

  #standingOf({ slow, target }: Lane): Standing {
    if (slow) return "slow"
    return this.#proven.has(target) ? "proven" : "unproven"
  }

  #mayRun({ running }: Lane, standing: Standing, allowed: number): boolean {
    if (running >= (standing === "unproven" ? 1 : this.#perLane)) return false
    return standing === "proven" || this.#hasRoomFor(standing, allowed)
  }

  #hasRoomFor(standing: "slow" | "unproven", allowed: number): boolean {
    const { slow, unproven } = this.#running
    const half = Math.max(1, Math.floor(allowed / 2))
    return this.#running[standing] < half && slow + unproven < Math.ceil((allowed * 3) / 4)
  }

  #remember(target: string): void {
    const [oldest] = this.#proven.size < remembered ? [] : this.#proven
    if (oldest !== undefined) this.#proven.delete(oldest)
    this.#proven.add(target)
  }

  /** Drops the lanes that have nothing in memory. */
  prune(): void {
    for (const lane of this.#lanes.values()) {
      if (lane.waiting.length + lane.running + lane.unrecorded === 0) this.#lanes.delete(lane.target)
    }
  }
}
