/** Every so many turns a stranger comes before known people. */
const strangersTurn = 8

/** A bounded queue in which known people come before strangers, who have every eighth turn. */
export class KnownFirst<A> {
  readonly #known = new Set<A>()
  readonly #strangers = new Set<A>()
  #turns = 0

  /** @param most items of each of the two */
  constructor(readonly most: number) {}

  get size(): number {
    return this.#known.size + this.#strangers.size
  }

  [Symbol.iterator](): Iterator<A> {
    return [...this.#known, ...this.#strangers][Symbol.iterator]()
  }

  /** False where there is no room. */
  add(item: A, isKnown: boolean): boolean {
    const queue = isKnown ? this.#known : this.#strangers
    return queue.size < this.most && queue.add(item).has(item)
  }

  /** Takes the next item out. */
  next(): A | undefined {
    this.#turns += 1
    const isStrangers = this.#known.size === 0 || (this.#strangers.size > 0 && this.#turns % strangersTurn === 0)
    const [next] = isStrangers ? this.#strangers : this.#known
    if (next !== undefined) this.remove(next)
    return next
  }

  /** Takes an item out, if it is still in. */
  remove(item: A): void {
    this.#known.delete(item)
    this.#strangers.delete(item)
  }
}
