/**
 * Decides which delivery is sent next. A lane holds the deliveries to one target; a slot is the right to make one
 * attempt. Slots go to accounts first, the account with the fewest attempts under way before the others, and within an
 * account to its lanes. An account may use every slot that the other accounts leave, and always its reserve of `perLane`:
 * no account waits because receivers of other accounts hang. Memory holds a bounded number of deliveries of each account;
 * the rest of a backlog stays in the store. A pure data structure: `DueQueue` fills it from the store and takes slots
 * from it.
 */
import { AccountLanes, type Lane, type LaneSlot } from "./AccountLanes.ts"
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
