import { createHash } from "node:crypto"

/** A stream of numbers that its seed fixes: sfc32 on the words of a hash, http://pracrand.sourceforge.net. */
export class Dice {
  readonly #state: Uint32Array

  constructor(seed: string) {
    const bytes = createHash("sha256").update(seed).digest()
    this.#state = Uint32Array.from([0, 4, 8, 12], (at) => bytes.readUInt32LE(at))
  }

  #next(): number {
    const [a = 0, b = 0, c = 0, counter = 0] = this.#state
    const result = (a + b + counter) >>> 0
    this.#state.set([b ^ (b >>> 9), c + (c << 3), ((c << 21) | (c >>> 11)) + result, counter + 1])
    return result
  }

  /** From 0 up to `below`, which is not reached. */
  below(below: number): number {
    return Math.floor((this.#next() / 2 ** 32) * below)
  }

  /** Both ends included. */
  between(from: number, to: number): number {
    return from + this.below(to - from + 1)
  }

  chance(probability: number): boolean {
    return this.#next() / 2 ** 32 < probability
  }

  pick<A>(from: ReadonlyArray<A>): A {
    const picked = from[this.below(from.length)]
    if (picked === undefined) throw new Error("nothing to pick from")
    return picked
  }

  /** One of the names, each as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Partial<Record<Name, number>>>): Name {
    const entries = Object.entries(weights) as Array<[Name, number]>
    let left = this.below(entries.reduce((sum, [, weight]) => sum + weight, 0))
    for (const [name, weight] of entries) {
      if (left < weight) return name
      left -= weight
    }
    throw new Error("nothing to pick from")
  }
}
