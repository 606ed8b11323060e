import type { Provider } from "../providers/ProviderSlot.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"

/** So many providers must have a receipt, and so many refute it. */
export const quorum = 2

/** What one provider answers. */
export interface ProviderEvidence {
  readonly asked: ReadonlyArray<Uncorroborated>
  readonly has: ReadonlyArray<DatedReceipt>
  readonly lacks: ReadonlyArray<Uncorroborated>
  readonly unable: ReadonlyArray<Uncorroborated>
  /** Of those that it lacks, where it has another block in the place of theirs. */
  readonly replaced: ReadonlyArray<Uncorroborated>
}

/** A receipt that a provider has, and the time that its block has to it, Unix seconds. */
export type DatedReceipt = readonly [Uncorroborated, number]

/** What the providers say of receipts, counted. */
export class QuorumCount {
  /** By the time of its block: who has another one has not the same. */
  readonly #has = new Map<Uncorroborated, Map<number, ReadonlyArray<Provider>>>()
  readonly #lacks = new Map<Uncorroborated, ReadonlyArray<Provider>>()
  /** By other providers than the serving one. */
  readonly #heard = new Set<Uncorroborated>()
  readonly #asked = new Set<Uncorroborated>()
  readonly #unable = new Set<Uncorroborated>()
  readonly #replaced = new Set<Uncorroborated>()
  /** Those that have another block in the place of its. */
  readonly #elsewhere = new Map<Uncorroborated, ReadonlyArray<Provider>>()

  add(provider: Provider, serves: boolean, { asked, has, lacks, unable, replaced }: ProviderEvidence) {
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
  has(receipt: Uncorroborated): number {
    return Math.max(0, ...Array.from(this.#has.get(receipt)?.values() ?? [], ({ length }) => length))
  }

  /** Those that have it, at whatever time. */
  claimedBy(receipt: Uncorroborated): ReadonlyArray<Provider> {
    return [...(this.#has.get(receipt)?.values() ?? [])].flat()
  }

  /** The time of its block that most providers tell, Unix seconds. */
  timeOf(receipt: Uncorroborated): number | undefined {
    const most = this.has(receipt)
    return [...(this.#has.get(receipt) ?? [])].find(([, { length }]) => length === most)?.[0]
  }

  /** Those that have its height, and not it. Where two have its block, nobody who has another one can tell of it. */
  lacks(receipt: Uncorroborated): ReadonlyArray<Provider> {
    const lacking = this.#lacks.get(receipt) ?? []
    const elsewhere = this.#elsewhere.get(receipt) ?? []
    const within = lacking.filter((one) => !elsewhere.includes(one))
    return within.length + this.claimedBy(receipt).length >= quorum ? within : lacking
  }

  /** A provider was asked about it, and has answered, however badly. */
  isAsked(receipt: Uncorroborated): boolean {
    return this.#asked.has(receipt)
  }

  /** Another provider than the serving one has all but what would tell of it, and none says more. */
  isUnverifiable(receipt: Uncorroborated): boolean {
    return this.#unable.has(receipt) && !this.#heard.has(receipt) && this.lacks(receipt).length === 0
  }

  /** The serving provider, which its block was read from, has another one in its place by now. */
  isReplaced(receipt: Uncorroborated): boolean {
    return this.#replaced.has(receipt)
  }

  /** Another provider than the serving one has said something of it. */
  isHeard(receipt: Uncorroborated): boolean {
    return this.#heard.has(receipt)
  }
}
