import type { Provider } from "../providers/slots.ts"
import type { Unagreed } from "./AgreementRepo.ts"

/** So many providers must have a receipt, and so many refute it. */
export const quorum = 2

/** What one provider answers. */
export interface Answer {
  readonly asked: ReadonlyArray<Unagreed>
  readonly has: ReadonlyArray<Dated>
  readonly lacks: ReadonlyArray<Unagreed>
  readonly unable: ReadonlyArray<Unagreed>
  /** Of those that it lacks, where it has another block in the place of theirs. */
  readonly replaced: ReadonlyArray<Unagreed>
}

/** A receipt that a provider has, and the time that its block has to it, Unix seconds. */
export type Dated = readonly [Unagreed, number]

/** What the providers say of receipts, counted. */
export class Votes {
  /** By the time of its block: who has another one has not the same. */
  readonly #has = new Map<Unagreed, Map<number, ReadonlyArray<Provider>>>()
  readonly #lacks = new Map<Unagreed, ReadonlyArray<Provider>>()
  /** By other providers than the serving one. */
  readonly #heard = new Set<Unagreed>()
  readonly #asked = new Set<Unagreed>()
  readonly #unable = new Set<Unagreed>()
  readonly #replaced = new Set<Unagreed>()
  /** Those that have another block in the place of its. */
  readonly #elsewhere = new Map<Unagreed, ReadonlyArray<Provider>>()

  add(provider: Provider, serves: boolean, { asked, has, lacks, unable, replaced }: Answer) {
    for (const one of asked) this.#asked.add(one)
    for (const [one, time] of has) {
      const times = this.#has.get(one) ?? new Map<number, ReadonlyArray<Provider>>()
      this.#has.set(one, times.set(time, [...(times.get(time) ?? []), provider]))
    }
    for (const one of lacks) this.#lacks.set(one, [...(this.#lacks.get(one) ?? []), provider])
    if (!serves) for (const one of unable) this.#unable.add(one)
    if (serves) for (const one of replaced) this.#replaced.add(one)
    for (const one of replaced) this.#elsewhere.set(one, [...(this.#elsewhere.get(one) ?? []), provider])
    if (!serves) for (const one of [...has.map(([receipt]) => receipt), ...lacks]) this.#heard.add(one)
  }

  /** How many providers have it, at the time that most of them tell. */
  has(receipt: Unagreed): number {
    return Math.max(0, ...Array.from(this.#has.get(receipt)?.values() ?? [], ({ length }) => length))
  }

  /** Those that have it, at whatever time. */
  claimedBy(receipt: Unagreed): ReadonlyArray<Provider> {
    return [...(this.#has.get(receipt)?.values() ?? [])].flat()
  }

  /** The time of its block that most providers tell, Unix seconds. */
  timeOf(receipt: Unagreed): number | undefined {
    const most = this.has(receipt)
    return [...(this.#has.get(receipt) ?? [])].find(([, { length }]) => length === most)?.[0]
  }

  /** Those that have its height, and not it. Where two have its block, nobody who has another one can tell of it. */
  lacks(receipt: Unagreed): ReadonlyArray<Provider> {
    const lacking = this.#lacks.get(receipt) ?? []
    const elsewhere = this.#elsewhere.get(receipt) ?? []
    const within = lacking.filter((one) => !elsewhere.includes(one))
    return within.length + this.claimedBy(receipt).length >= quorum ? within : lacking
  }

  /** A provider was asked about it, and has answered, however badly. */
  isAsked(receipt: Unagreed): boolean {
    return this.#asked.has(receipt)
  }

  /** Another provider than the serving one has all but what would tell of it, and none says more. */
  isUnverifiable(receipt: Unagreed): boolean {
    return this.#unable.has(receipt) && !this.#heard.has(receipt) && this.lacks(receipt).length === 0
  }

  /** The serving provider, which its block was read from, has another one in its place by now. */
  isReplaced(receipt: Unagreed): boolean {
    return this.#replaced.has(receipt)
  }

  /** Another provider than the serving one has said something of it. */
  isHeard(receipt: Unagreed): boolean {
    return this.#heard.has(receipt)
  }
}
