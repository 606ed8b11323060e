/** One value of a family. `suffix` is what a histogram's parts have behind the family's name. */
export interface Sample {
  readonly suffix?: "_bucket" | "_sum" | "_count"
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Everything that is known under one name. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: "counter" | "gauge" | "histogram"
  readonly samples: ReadonlyArray<Sample>
}

/** What a family is called and is about, and the names of its labels. */
export interface Described {
  readonly name: string
  readonly help: string
  readonly labels?: ReadonlyArray<string>
}

// Labels are written by this program and hold no such character.
const separator = "\0"

/** The values of a family by those of their labels, which are given in the order of their names. */
class ByLabels<A> {
  readonly #names: ReadonlyArray<string>
  readonly #make: () => A
  readonly #found = new Map<string, { readonly labels: Sample["labels"]; readonly value: A }>()

  constructor(names: ReadonlyArray<string>, make: () => A) {
    this.#names = names
    this.#make = make
    // Without labels there is one value, and it is there from the start.
    if (names.length === 0) this.at([])
  }

  at(values: ReadonlyArray<string>): A {
    const key = values.join(separator)
    const found = this.#found.get(key)
    if (found !== undefined) return found.value
    const value = this.#make()
    this.#found.set(key, { labels: Object.fromEntries(this.#names.map((name, i) => [name, values[i] ?? ""])), value })
    return value
  }

  get all(): Iterable<{ readonly labels: Sample["labels"]; readonly value: A }> {
    return this.#found.values()
  }
}

/**
 * Counts from the start of the process on. Effect's own counters take 3 µs where they have labels, 20 times this, and each
 * request makes two updates.
 */
export class Counter {
  readonly #described: Described
  readonly #counts: ByLabels<{ count: number }>

  constructor(described: Described) {
    this.#described = described
    this.#counts = new ByLabels(described.labels ?? [], () => ({ count: 0 }))
  }

  /** `values` of the labels: of each there are few. Adding 0 makes a count be there before anything has happened. */
  add(values: ReadonlyArray<string> = [], count = 1): void {
    this.#counts.at(values).count += count
  }

  get family(): Family {
    const samples = Array.from(this.#counts.all, ({ labels, value }) => ({ labels, value: value.count }))
    return { ...this.#described, type: "counter", samples }
  }
}

interface Distribution {
  /** One for each bound, not cumulative, and one for what is above all of them. */
  readonly counts: Array<number>
  sum: number
}

/** How often a value was how large. */
export class Histogram {
  readonly #described: Described
  readonly #bounds: ReadonlyArray<number>
  readonly #distributions: ByLabels<Distribution>

  /** `bounds` in ascending order, each belonging to its bucket. */
  constructor(described: Described, bounds: ReadonlyArray<number>) {
    this.#described = described
    this.#bounds = bounds
    this.#distributions = new ByLabels(described.labels ?? [], () => ({
      counts: Array.from({ length: bounds.length + 1 }, () => 0),
      sum: 0
    }))
  }

  observe(value: number, values: ReadonlyArray<string> = []): void {
    const distribution = this.#distributions.at(values)
    const bucket = this.#bounds.findIndex((bound) => value <= bound)
    const at = bucket === -1 ? this.#bounds.length : bucket
    distribution.counts[at] = (distribution.counts[at] ?? 0) + 1
    distribution.sum += value
  }

  get family(): Family {
    const samples = Array.from(this.#distributions.all, ({ labels, value }) => this.#samplesOf(labels, value)).flat()
    return { ...this.#described, type: "histogram", samples }
  }

  #samplesOf(labels: Sample["labels"], { counts, sum }: Distribution): ReadonlyArray<Sample> {
    let count = 0
    const buckets = counts.map((inBucket, i): Sample => {
      count += inBucket
      const bound = this.#bounds[i]
      return {
        suffix: "_bucket",
        labels: { ...labels, le: bound === undefined ? "+Inf" : String(bound) },
        value: count
      }
    })
    return [...buckets, { suffix: "_sum", labels, value: sum }, { suffix: "_count", labels, value: count }]
  }
}
