/**
 * A bounded queue that many owners share fairly. They take turns, and when it is full the owner with the most entries loses the
 * newest of it: an owner with nothing in the queue always gets in. What must not be lost once it has been added is added
 * only while `size` is below `total`.
 */
export class FairQueue<A> {
  /** The most items of all owners together. */
  readonly total: number
  /** In the order of their turns; none is empty. */
  readonly #lanes = new Map<string, Array<A>>()
  #size = 0

  constructor(total: number) {
    this.total = total
  }

  get size(): number {
    return this.#size
  }

  /** How many items of an owner are in the queue. */
  countOf(owner: string): number {
    return this.#lanes.get(owner)?.length ?? 0
  }

  /** How many items have their turn before one that is added now, at most, unless further owners come. */
  turnsBefore(owner: string): number {
    const own = this.countOf(owner)
    let turns = own
    for (const [other, lane] of this.#lanes) if (other !== owner) turns += Math.min(lane.length, own + 1)
    return turns
  }

  /** Whether `add` would accept an item of the owner. */
  hasRoomFor(owner: string): boolean {
    return this.#size < this.total || this.countOf(owner) < (this.#longest()?.[1].length ?? 0)
  }

  /** Adds an item for which there is room. Returns the one that is dropped for it, if any. */
  add(owner: string, item: A): A | undefined {
    const longest = this.#size < this.total ? undefined : this.#longest()
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

  /** Takes an item of an owner out, unless it is out already. Whether it was in. */
  remove(owner: string, item: A): boolean {
    const lane = this.#lanes.get(owner) ?? []
    const at = lane.lastIndexOf(item)
    if (at === -1) return false
    lane.splice(at, 1)
    this.#size -= 1
    if (lane.length === 0) this.#lanes.delete(owner)
    return true
  }

  #longest(): readonly [owner: string, lane: Array<A>] | undefined {
    let longest: readonly [string, Array<A>] | undefined
    for (const entry of this.#lanes) if (entry[1].length > (longest?.[1].length ?? 0)) longest = entry
    return longest
  }
}
