import { AccountLanes, type Lane, type LaneSlot } from "./AccountLanes.ts"
import type { Place } from "./LanesRepo.ts"

export interface LaneLimits {
  /** Attempts at once that accounts share. */
  readonly concurrency: number
  /** Attempts at once to one target, and those that every account may have whatever the others do. */
  readonly perLane: number
}

/** So many deliveries of a lane are read ahead for each of its slots: a slot is filled without waiting for the store. */
const readAhead = 4

/** From so many times `concurrency` attempts on, an account that has none is still given one, and no more. */
const ceilingFactor = 4

/**
 * Which delivery is next. Slots go to accounts first, the one with the fewest attempts under way before the others, and
 * within an account to its lanes. An account may have what the others leave of all slots, and its reserve of `perLane` in
 * any case: however many receivers of other accounts hang, no account waits for them. Holds a bounded number of deliveries
 * of each account: the rest of a backlog stays in the store.
 */
export class Lanes {
  readonly #limits: LaneLimits
  /** In the order of their turns. */
  readonly #accounts = new Map<string, AccountLanes>()
  /** What the store still calls due and is in memory already. */
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

  /** Attempts that an account may have under way now: what the others leave, and its reserve. */
  allowed(account: AccountLanes): number {
    const { concurrency, perLane } = this.#limits
    const reserve = this.#running < concurrency * ceilingFactor ? Math.min(perLane, concurrency) : 1
    return Math.max(concurrency - (this.#running - account.running), reserve)
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
  next(): LaneSlot | undefined {
    const waiting = [...this.#accounts.values()].filter(({ hasWaiting }) => hasWaiting)
    // A stable sort: those with as many take turns.
    for (const account of waiting.sort((a, b) => a.running - b.running)) {
      const slot = account.next(this.allowed(account))
      if (slot === undefined) continue
      this.#running++
      // To the end of the order.
      this.#accounts.delete(account.account)
      this.#accounts.set(account.account, account)
      return slot
    }
    return undefined
  }

  /** An attempt has ended, and is still to be recorded. `wasSlow` is undefined where none was made after all. */
  ended(slot: LaneSlot, wasSlow: boolean | undefined): void {
    this.#running--
    this.of(slot.lane.account).ended(slot, wasSlow)
  }

  /** The store knows how the attempt ended. */
  recorded({ lane, sequence }: LaneSlot): void {
    lane.unrecorded--
    lane.more = true
    this.#taken.delete(sequence)
  }

  /** Something was added to the store. */
  wake(): void {
    for (const lane of this.all) lane.more = true
  }

  /** Drops what has nothing in memory. */
  prune(): void {
    for (const account of this.#accounts.values()) {
      account.prune()
      if (account.isEmpty) this.#accounts.delete(account.account)
    }
  }
}
