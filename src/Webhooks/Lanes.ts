import type { Place } from "./LanesRepo.ts"

/** One target's deliveries that are in memory. */
export interface Lane {
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
export interface Slot {
  readonly lane: Lane
  readonly sequence: number
  /** What its lane was when it began: it counts for that to its end. */
  readonly standing: Standing
}

export interface Limits {
  /** Attempts at once. */
  readonly concurrency: number
  /** Attempts at once to one target. */
  readonly perLane: number
}

/** So many deliveries of a lane are read ahead for each of its slots: a slot is filled without waiting for the store. */
const readAhead = 4

/** Targets that are remembered as proven while nothing of theirs is in memory; those that answered last. */
const remembered = 1_024

/**
 * Which delivery is next. Lanes take turns, and none has more than its slots. Those that are slow have at most half of all
 * slots together, those that are unproven too, and both at most three quarters, so that receivers that hang, known ones or
 * new ones, leave room for the others. Holds a bounded number of deliveries: the rest of a backlog stays in the store.
 */
export class Lanes {
  readonly #limits: Limits
  readonly #half: number
  readonly #threeQuarters: number
  /** In the order of their turns. */
  readonly #lanes = new Map<string, Lane>()
  /** What the store still calls due and is in memory already. */
  readonly #taken = new Set<number>()
  readonly #proven = new Set<string>()
  readonly #running = { slow: 0, unproven: 0, proven: 0 }

  constructor(limits: Limits) {
    this.#limits = limits
    this.#half = Math.max(1, Math.floor(limits.concurrency / 2))
    this.#threeQuarters = Math.ceil((limits.concurrency * 3) / 4)
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

  /** Targets that have answered quickly, and nothing of which is in memory. */
  get provenOutside(): ReadonlyArray<string> {
    return [...this.#proven].filter((target) => !this.#lanes.has(target))
  }

  has(target: string): boolean {
    return this.#lanes.has(target)
  }

  /** Lanes of a class that may still be given deliveries. */
  room(slow: boolean): number {
    return this.#roomBeside((lane) => lane.slow === slow)
  }

  /** Those that are proven and may still be given deliveries although no other has a slot. */
  get provenRoom(): number {
    if (this.running >= this.#limits.concurrency || this.#hasRoomFor("unproven")) return 0
    return this.#roomBeside((lane) => this.#standingOf(lane) === "proven")
  }

  #roomBeside(isOfThem: (lane: Lane) => boolean): number {
    let active = 0
    for (const lane of this.#lanes.values()) if (isOfThem(lane) && lane.waiting.length > 0) active++
    return Math.max(0, this.#limits.concurrency - active)
  }

  open(target: string, slow: boolean): Lane {
    const lane = { target, waiting: [], running: 0, unrecorded: 0, slow, more: true, nextAt: undefined }
    this.#lanes.set(target, lane)
    return lane
  }

  /** Whether a look into the store may bring a lane something that it has a use for. */
  wants(lane: Lane, now: number): boolean {
    return this.isLow(lane) || (lane.nextAt !== undefined && lane.nextAt <= now && lane.waiting.length === 0)
  }

  /** Whether a lane has a use for more of its backlog. */
  isLow(lane: Lane): boolean {
    return lane.more && lane.waiting.length < (this.#limits.perLane * readAhead) / 2
  }

  /** How many deliveries to look at: as many as are taken, as many as are wanted, and one to tell whether there is more. */
  window(lane: Lane): number {
    return lane.waiting.length + lane.running + lane.unrecorded + this.#limits.perLane * readAhead + 1
  }

  /**
   * Takes what is due of a lane's first deliveries, `window` of which were asked for. False when it has nothing in memory
   * after that because nothing is due: then its place in the store's order of lanes is wrong.
   */
  fill(lane: Lane, places: ReadonlyArray<Place>, window: number, now: number): boolean {
    const untaken = places.filter(({ sequence }) => !this.#taken.has(sequence))
    const due = untaken.filter(({ nextAttemptAt }) => nextAttemptAt <= now)
    // No more than there are slots: a lane that holds nothing else is low, so that what comes before them is seen.
    let room = this.#limits.perLane - lane.waiting.filter(({ isRedelivery }) => isRedelivery).length
    let taken = 0
    for (const place of due) {
      if (place.isRedelivery && room-- <= 0) continue
      taken++
      this.#taken.add(place.sequence)
      const behind = place.isRedelivery ? -1 : lane.waiting.findIndex(({ isRedelivery }) => isRedelivery)
      lane.waiting.splice(behind === -1 ? lane.waiting.length : behind, 0, place)
    }
    lane.more = taken < due.length || (due.length === untaken.length && places.length === window)
    lane.nextAt = untaken[due.length]?.nextAttemptAt
    return untaken.length < places.length || due.length > 0
  }

  /** The next delivery to attempt; undefined while there is none, or no slot. */
  next(): Slot | undefined {
    if (this.running >= this.#limits.concurrency) return undefined
    for (const lane of this.#lanes.values()) {
      const standing = this.#standingOf(lane)
      if (!this.#mayRun(lane, standing)) continue
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
  ended({ lane, standing }: Slot, wasSlow: boolean | undefined): void {
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

  #mayRun({ running }: Lane, standing: Standing): boolean {
    if (running >= (standing === "unproven" ? 1 : this.#limits.perLane)) return false
    return standing === "proven" || this.#hasRoomFor(standing)
  }

  #hasRoomFor(standing: "slow" | "unproven"): boolean {
    const { slow, unproven } = this.#running
    return this.#running[standing] < this.#half && slow + unproven < this.#threeQuarters
  }

  #remember(target: string): void {
    const [oldest] = this.#proven.size < remembered ? [] : this.#proven
    if (oldest !== undefined) this.#proven.delete(oldest)
    this.#proven.add(target)
  }

  /** The store knows how the attempt ended. */
  recorded({ lane, sequence }: Slot): void {
    lane.unrecorded--
    lane.more = true
    this.#taken.delete(sequence)
  }

  /** Something was added to the store. */
  wake(): void {
    for (const lane of this.#lanes.values()) lane.more = true
  }

  /** Drops the lanes that have nothing in memory. */
  prune(): void {
    for (const lane of this.#lanes.values()) {
      if (lane.waiting.length + lane.running + lane.unrecorded === 0) this.#lanes.delete(lane.target)
    }
  }
}
