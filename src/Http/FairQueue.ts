/** A queue that many owners share fairly: they take turns. */
export class FairQueue<A> {
  /** In the order of their turns; none is empty. */
  readonly #lanes = new Map<string, Set<A>>()

  get isEmpty(): boolean {
    return this.#lanes.size === 0
  }

  add(owner: string, item: A): void {
    const lane = this.#lanes.get(owner)
    if (lane === undefined) this.#lanes.set(owner, new Set([item]))
    else lane.add(item)
  }

  /** Takes the next item out. */
  next(): A | undefined {
    const [first] = this.#lanes
    if (first === undefined) return undefined
    const [owner, lane] = first
    const [item] = lane
    this.#lanes.delete(owner)
    if (item !== undefined) lane.delete(item)
    if (lane.size > 0) this.#lanes.set(owner, lane)
    return item
  }

  /** Takes an item of an owner out, if it is still in. */
  remove(owner: string, item: A): void {
    const lane = this.#lanes.get(owner)
    lane?.delete(item)
    if (lane?.size === 0) this.#lanes.delete(owner)
  }
}
