export interface QueueLimits {
  /** The most items of all owners together. */
  readonly total: number
  /** The most of one owner; `total` unless given. */
  readonly perOwner?: number
}

/**
 * A bounded queue that many owners share fairly. They take turns, and when it is full whoever has most in it loses the
 * newest of it: an owner with nothing in the queue always gets in. Of owners with as many, the one whose turn is next gives
 * way, so that what is let in stays long enough to be reached.
 */
export class FairQueue<A> {
  readonly #limits: QueueLimits
  /** In the order of their turns; none is empty. */
  readonly #lanes = new Map<string, Array<A>>()
  #size = 0

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#size
  }

  /** How many items of an owner are in the queue. */
  countOf(owner: string): number {
    return this.#lanes.get(owner)?.length ?? 0
  }

  /** Whether `add` would accept an item of the owner. */
  hasRoomFor(owner: string): boolean {
    const own = this.countOf(owner)
    if (own >= (this.#limits.perOwner ?? this.#limits.total)) return false
    return this.#size < this.#limits.total || own < (this.#longest()?.[1].length ?? 0)
  }

  /** Adds an item for which there is room. Returns the one that is dropped for it, if any. */
  add(owner: string, item: A): A | undefined {
    const longest = this.#size < this.#limits.total ? undefined : this.#longest()
    const dropped = longest?.[1].at(-1)
    if (longest !== undefined && dropped !== undefined) this.remove(longest[0], dropped)
    const lane = this.#lanes.get(owner)
    if (lane === undefined) this.#lanes.set(owner, [item])
    else lane.push(item)
    this.#size += 1
    return dropped
  }

  /** Takes the next item out. */
  next(): A | undefined {
    const [first] = this.#lanes
    if (first === undefined) return undefined
    const [owner, lane] = first
    const [item] = lane.splice(0, 1)
    this.#size -= 1
    this.#lanes.delete(owner)
    if (lane.length > 0) this.#lanes.set(owner, lane)
    return item
  }

  /** Takes an item of an owner out, unless it is out already. */
  remove(owner: string, item: A): void {
    const lane = this.#lanes.get(owner) ?? []
    const at = lane.lastIndexOf(item)
    if (at === -1) return
    lane.splice(at, 1)
    this.#size -= 1
    if (lane.length === 0) this.#lanes.delete(owner)
  }

  #longest(): readonly [owner: string, lane: Array<A>] | undefined {
    let longest: readonly [string, Array<A>] | undefined
    for (const entry of this.#lanes) if (entry[1].length > (longest?.[1].length ?? 0)) longest = entry
    return longest
  }
}
