/**
 * Whose delivery is sent next. A slot is the right to make one attempt. Slots go to accounts first, the account with the
 * fewest attempts under way before the others, and within an account to its targets in the same way. An account may use every
 * slot that the other accounts leave, and always its reserve of `perLane`: no account waits because receivers of other
 * accounts hang. Pure: `DueQueue` reads what is due, and takes slots here.
 */
import type { DueDelivery } from "./DeliveriesRepo.ts"
import type { DueLane } from "./LanesRepo.ts"

export interface SlotLimits {
  /** Attempts at once of all accounts together. */
  readonly concurrency: number
  /** Attempts at once to one target. It is also each account's reserve: slots that other accounts cannot use up. */
  readonly perLane: number
}

/**
 * A new connection, with whatever is answered over it, costs the event loop up to 20 ms where a request over a kept one
 * costs a tenth of one. Its slot is reserved so long, for each slot that there is, that an account which has all of them opens
 * 25 connections a second after a burst of as many as there are slots: a quarter of the loop, and never all of it.
 */
const reserveMillis = 80

/** From this many times `concurrency` attempts under way, each account's reserve is one slot. */
const ceilingFactor = 4

/** Healthy targets that are kept of an account while none of their attempts is under way: those that answered last. */
const healthyCapacity = 1_024

/**
 * The health of a target. `slow`: its last attempt took long. `healthy`: it has answered quickly. `probation`: neither is
 * known since the start, or one quick answer has followed a slow one. A target in probation has one slot until the next
 * quick answer.
 */
type Standing = "healthy" | "probation" | "slow"

/** The deliveries to one target, while an attempt of these is under way, or not stored yet. */
export class Lane {
  readonly account: Account
  readonly target: string
  /** Its last attempt took long. */
  slow: boolean
  /** Attempts under way. */
  running = 0
  /** Attempts under way, or not stored yet. */
  taken = 0
  /** Others that were due when the store was read, in the order of their attempts. */
  waiting: Array<number> = []
  /** When something else of it is due, in Unix milliseconds. */
  nextAt = 0

  constructor(account: Account, { slow, target }: DueLane) {
    this.account = account
    this.target = target
    this.slow = slow
  }
}

/** The right to make one attempt. */
export interface Slot {
  readonly lane: Lane
  readonly delivery: DueDelivery
  /** The target's standing when the attempt began. The attempt counts against that share until it ends. */
  readonly standing: Standing
}

/**
 * An account's targets. Of the slots that it is allowed, slow targets together have at most half, targets in probation at
 * most half, and both together at most three quarters: receivers that hang, known or new, leave room for healthy ones.
 */
class Account {
  readonly name: string
  readonly lanes = new Map<string, Lane>()
  /**
   * Deliveries whose attempt is under way, or not stored yet: the store lists them as due. Not by lane: a delivery of an
   * endpoint that is deleted meanwhile gets into the lane of its payment's own URL.
   */
  readonly taken = new Set<number>()
  readonly healthy = new Set<string>()
  readonly running = { slow: 0, probation: 0, healthy: 0 }
  /** When each slot that is reserved after its attempt is free again, in Unix milliseconds, in this order. */
  reserved: ReadonlyArray<number> = []
  /** With so many slots it had nothing to begin: infinity while nothing is due. */
  exhausted = 0
  /** What was due when the store was read, the target that has waited longest first. */
  due: ReadonlyArray<DueLane> | undefined
  /** Slots that it could have by then: with more of them there may be other targets to read. */
  dueFor = 0

  constructor(name: string) {
    this.name = name
  }

  /** Attempts under way. */
  get count(): number {
    return this.running.slow + this.running.probation + this.running.healthy
  }

  standingOf({ slow, target }: Pick<Lane, "slow" | "target">): Standing {
    if (slow) return "slow"
    return this.healthy.has(target) ? "healthy" : "probation"
  }

  hasRoomFor(standing: Standing, allowed: number): boolean {
    const { slow, probation } = this.running
    const half = Math.max(1, Math.floor(allowed / 2))
    return standing === "healthy" || (this.running[standing] < half && slow + probation < Math.ceil((allowed * 3) / 4))
  }

  addHealthy(target: string): void {
    const [oldest] = this.healthy.size < healthyCapacity ? [] : this.healthy
    if (oldest !== undefined) this.healthy.delete(oldest)
    this.healthy.add(target)
  }
}

export type { Account }

export class Slots {
  readonly #limits: SlotLimits
  /** In turn order: the account that was served last is at the end. */
  readonly #accounts = new Map<string, Account>()
  /** Attempts under way. */
  running = 0

  constructor(limits: SlotLimits) {
    this.#limits = limits
  }

  /** These accounts have something due: what has been read of their targets says nothing any more. */
  due(accounts: ReadonlyArray<string>): void {
    for (const name of accounts) {
      const account = this.#accounts.get(name) ?? new Account(name)
      this.#accounts.set(name, account)
      account.exhausted = 0
      account.due = undefined
      for (const lane of account.lanes.values()) lane.nextAt = 0
    }
  }

  /** Slots that an account may have now, beyond those that it has: all that others leave, but at least its reserve. */
  free(account: Account): number {
    const { concurrency } = this.#limits
    const missed = Math.max(0, account.reserved.length - concurrency)
    return Math.max(0, this.#allowed(account) - account.count - missed)
  }

  #allowed(account: Account): number {
    const { concurrency, perLane } = this.#limits
    const reserve = this.running < concurrency * ceilingFactor ? Math.min(perLane, concurrency) : 1
    return Math.max(concurrency - (this.running - account.count), reserve)
  }

  /** The account that has the fewest attempts under way, of those with a free slot and perhaps something due. */
  next(): Account | undefined {
    let next: Account | undefined
    for (const account of this.#accounts.values()) {
      if (account.exhausted >= this.#allowed(account) || this.free(account) === 0) continue
      if (next === undefined || account.count < next.count) next = account
    }
    return next
  }

  /**
   * The target that has the fewest attempts under way, of those of an account that may have one more; undefined when there is
   * none.
   */
  choose(account: Account, now: number): Lane | undefined {
    const allowed = this.#allowed(account)
    let next: Lane | undefined
    let isBlocked = false
    for (const one of account.due ?? []) {
      const lane = account.lanes.get(one.target) ?? new Lane(account, one)
      if (lane.nextAt > now || (next !== undefined && lane.running >= next.running)) continue
      const standing = account.standingOf(lane)
      const most = standing === "probation" ? 1 : this.#limits.perLane
      if (lane.running < most && account.hasRoomFor(standing, allowed)) next = lane
      else isBlocked = true
    }
    if (next === undefined) account.exhausted = isBlocked ? allowed : Number.POSITIVE_INFINITY
    else account.lanes.set(next.target, next)
    return next
  }

  begin(lane: Lane, delivery: DueDelivery): Slot {
    const { account } = lane
    const standing = account.standingOf(lane)
    account.taken.add(delivery.sequence)
    lane.taken++
    lane.running++
    account.running[standing]++
    this.running++
    // To the end of the turn order.
    this.#accounts.delete(account.name)
    this.#accounts.set(account.name, account)
    return { lane, delivery, standing }
  }

  /**
   * An attempt has ended and is not stored yet. `openedAt`, in Unix milliseconds, is set when it had a connection of its own.
   */
  ended({ lane, standing }: Slot, wasSlow: boolean, openedAt?: number): void {
    const { account, target } = lane
    lane.running--
    account.running[standing]--
    this.running--
    account.exhausted = 0
    if (openedAt !== undefined) account.reserved = [...account.reserved, openedAt + this.#reserve].sort((a, b) => a - b)
    // A slow target becomes healthy in two steps, through probation; one slow attempt makes any target slow.
    account.healthy.delete(target)
    if (!wasSlow && !lane.slow) account.addHealthy(target)
    lane.slow = wasSlow
  }

  /** A delivery's attempt is stored, or a target's place in the store's order is corrected. */
  stored(lane: Lane, sequence?: number): void {
    const { account } = lane
    if (sequence !== undefined) {
      account.taken.delete(sequence)
      lane.taken--
    }
    lane.nextAt = 0
    account.exhausted = 0
    account.due = undefined
    // Also those whose deliveries were taken in another lane: they are read again.
    for (const [target, { taken }] of account.lanes) if (taken === 0) account.lanes.delete(target)
  }

  /** Frees reserved slots whose time is over, and all where the clock was set back; forgets accounts with nothing left. */
  release(now: number): void {
    for (const account of this.#accounts.values()) {
      account.reserved = account.reserved.filter((until) => until > now && until <= now + this.#reserve)
      const { exhausted, healthy, lanes, name, reserved } = account
      const isLeft = Number.isFinite(exhausted) || lanes.size + healthy.size + reserved.length > 0
      if (!isLeft) this.#accounts.delete(name)
    }
  }

  /** When a reserved slot is free, or a target has something else due, in Unix milliseconds; infinity for never. */
  nextAt(now: number): number {
    let next = Number.POSITIVE_INFINITY
    for (const { lanes, reserved } of this.#accounts.values()) {
      next = Math.min(next, reserved[0] ?? next)
      for (const { nextAt } of lanes.values()) if (nextAt > now) next = Math.min(next, nextAt)
    }
    return next
  }

  get #reserve(): number {
    return this.#limits.concurrency * reserveMillis
  }
}
