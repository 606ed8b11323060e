import { BoundedMap } from "../lib/BoundedMap.ts"

/** The share of the event loop's time for all owners together, in addition to its idle time. */
const share = 0.25
/** Burst: milliseconds of it that they may save up. */
const burst = 50
/** Requests that may wait, of all owners together. */
const capacity = 4_096
/** Owners in memory. */
const ownersKept = 10_000
/** A request's cost beyond its measured time: its bytes are parsed before, and written after it. */
const overhead = 0.1
/** A request's fixed cost in the order of turns: its time is not known before it has run. */
const expected = 1
/** Head start: what an owner may use beyond others and still precede them, a page with its style and scripts. */
const headStart = 10
/** Maximum wait of a request, milliseconds. */
const longestWait = 5_000

/** Whose a request is. */
export interface Sharer {
  readonly name: string
  /** Its weight: the multiple of another owner's share that it may use. */
  readonly weight: number
}

/** A request that waits for its turn. */
export interface Waiting<A> {
  readonly item: A
  readonly owner: Sharer
  /** Its place in the order: its owner's use before it beyond the head start, on the scale of `#turn`. */
  readonly tag: number
  /** Tie-break of equal tags, the lower rank first: known owners, then those that have used less. */
  readonly rank: number
  readonly since: number
}

/**
 * Divides a share of the event loop's time among the owners of requests. Over any period they use at most a quarter of
 * it, plus the loop's idle time, a burst of 50 ms, and the rest of the running request. A request beyond that waits,
 * and the owner that has used least goes first (start-time fair queueing, Goyal et al. 1996): the one request of an
 * owner overtakes the many of another, and so do the few that make up a page. Where too many wait, the last in that
 * order is dropped, the newest of the owner with most requests, as is what has waited for five seconds. A pure data
 * structure: `withoutKey.ts` measures, and lets requests run. Times in milliseconds.
 *
 * Requests are measured to their ends, so that strangers may use up the share of the next seconds in advance: many that
 * were held back resume at once. Known owners therefore have a second share, also a quarter, for when the first is used
 * up.
 */
export class LoopShare<A> {
  /** In reverse order, so that the next one is popped off the end. */
  readonly #waiting: Array<Waiting<A>> = []
  /** The same, longest waiting first. */
  readonly #bySince = new Set<Waiting<A>>()
  /** By owner, the tag of its next request. A tag up to `#turn` equals none. */
  readonly #tags = new BoundedMap<string, number>(ownersKept)
  readonly #capacity: number
  /** The tag of the request that ran last. */
  #turn = 0
  /** Milliseconds that they may use; at zero or below, they wait. */
  #saved = burst
  /** The second share, of known owners: as much again, however many sessions they have. */
  #reserved = burst
  #now: number
  #idle: number

  /** @param idle total time for which the event loop has been idle */
  constructor(now: number, idle: number, most = capacity) {
    this.#now = now
    this.#idle = idle
    this.#capacity = most
  }

  get size(): number {
    return this.#waiting.length
  }

  /**
   * Whether a request may run now: the next one that waits, or one of `comes` where none does. A known owner does not
   * wait for what others have used up, unless they have used more than others, by their weight, and the head start.
   */
  mayRun(now: number, idle: number, comes?: Sharer): boolean {
    // Even if the clock was set, the loop was not idle for longer than the elapsed time.
    const passed = Math.max(0, now - this.#now)
    const idled = Math.min(passed, Math.max(0, idle - this.#idle))
    this.#saved = Math.min(burst, this.#saved + share * passed + idled)
    this.#reserved = Math.min(burst, this.#reserved + share * passed)
    this.#now = now
    this.#idle = idle
    return (
      this.#saved > 0 || this.#isOwed(this.#waiting.at(-1) ?? (comes && { owner: comes, ...this.#placeFor(comes) }))
    )
  }

  /** After how long `mayRun` is true again, at the latest. */
  get due(): number {
    return Math.max(0, -this.#saved / share)
  }

  /** Counts a request that runs without waiting. */
  start(owner: Sharer): void {
    this.#begin(this.#book(owner).tag)
  }

  /** Adds a request to those that wait. The one that is dropped for it may be itself. */
  add(owner: Sharer, item: A, now: number): { readonly added: Waiting<A>; readonly dropped: Waiting<A> | undefined } {
    const added = { item, owner, ...this.#book(owner), since: now }
    this.#waiting.splice(this.#placeOf(added), 0, added)
    this.#bySince.add(added)
    const dropped = this.size > this.#capacity ? this.#waiting[0] : undefined
    if (dropped !== undefined) this.remove(dropped)
    return { added, dropped }
  }

  /** Takes out the next one that waits, to run it. */
  next(): A | undefined {
    const next = this.#waiting.pop()
    if (next === undefined) return undefined
    this.#bySince.delete(next)
    this.#begin(next.tag)
    return next.item
  }

  /** Removes one that no longer waits, unless it is removed already. */
  remove(one: Waiting<A>): void {
    const at = this.#waiting.indexOf(one, this.#placeOf(one))
    if (at === -1) return
    this.#waiting.splice(at, 1)
    this.#bySince.delete(one)
    // What did not run is not charged: an owner with many refusals does not wait longer for that.
    const { name, weight } = one.owner
    this.#tags.set(name, (this.#tags.get(name) ?? 0) - expected / weight)
  }

  /** Takes out those that have waited too long, `most` of them. */
  expire(now: number, most: number): ReadonlyArray<A> {
    const late: Array<A> = []
    for (const one of this.#bySince) {
      // A clock that was set back makes none of them wait longer.
      if (late.length === most || Math.abs(now - one.since) < longestWait) break
      this.remove(one)
      late.push(one.item)
    }
    return late
  }

  /** Counts time that a request of the owner has used. */
  spent({ name, weight }: Sharer, time: number): void {
    this.#saved -= time
    if (weight > 1) this.#reserved -= time
    this.#tags.set(name, this.#hadBy(name) + time / weight)
  }

  #hadBy(name: string): number {
    return Math.max(this.#turn, this.#tags.get(name) ?? 0)
  }

  #isOwed(next: Pick<Waiting<A>, "owner" | "tag"> | undefined): boolean {
    return next !== undefined && this.#reserved > 0 && next.owner.weight > 1 && next.tag <= this.#turn
  }

  #placeFor({ name, weight }: Sharer): Pick<Waiting<A>, "rank" | "tag"> {
    const had = this.#hadBy(name)
    return { tag: Math.max(this.#turn, had - headStart), rank: had - weight }
  }

  #book(owner: Sharer): Pick<Waiting<A>, "rank" | "tag"> {
    const place = this.#placeFor(owner)
    this.#tags.set(owner.name, this.#hadBy(owner.name) + expected / owner.weight)
    return place
  }

  #begin(tag: number): void {
    this.#turn = tag
    this.#saved -= overhead
  }

  /** Its insert position: after those that are equal to it. */
  #placeOf({ rank, tag }: Pick<Waiting<A>, "rank" | "tag">): number {
    let [from, to] = [0, this.#waiting.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      const other = this.#waiting[middle]
      const isLater = other !== undefined && (other.tag > tag || (other.tag === tag && other.rank > rank))
      if (isLater) from = middle + 1
      else to = middle
    }
    return from
  }
}
