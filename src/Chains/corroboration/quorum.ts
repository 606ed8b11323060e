import type { Provider } from "../providers/providerHealth.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"

/**
 * Counts the evidence that providers give about receipts in one round of corroboration. Two providers corroborate a
 * receipt: both have it, in the same block and with the same block time. Two providers refute it: both have its block
 * height with enough confirmations, and both lack it. `corroborate.ts` fills one count per round and decides by it.
 *
 * Evidence of the serving provider (the one that the watcher reads blocks from) is marked as such: it reported most of
 * the receipts itself.
 */

/** How many providers must have a receipt to corroborate it, or lack it to refute it. */
export const quorum = 2

/** The evidence of one provider about the receipts that it was asked about. */
export interface ProviderEvidence {
  readonly asked: ReadonlyArray<Uncorroborated>
  readonly has: ReadonlyArray<DatedReceipt>
  readonly lacks: ReadonlyArray<Uncorroborated>
  /** It can check these neither by states nor by a trace. */
  readonly unable: ReadonlyArray<Uncorroborated>
  /** The subset of `lacks` where the provider has another block at the receipt's height. */
  readonly replaced: ReadonlyArray<Uncorroborated>
}

/** A receipt that a provider has, with the provider's time of its block, Unix seconds, and who sent it, as it reports. */
export type DatedReceipt = readonly [Uncorroborated, time: number, sender?: string | undefined]

/** The evidence of all providers asked in one round. */
export class QuorumCount {
  /** Providers by block time: providers that report different block times do not corroborate each other. */
  readonly #has = new Map<Uncorroborated, Map<number, ReadonlyArray<Provider>>>()
  readonly #senders = new Map<Uncorroborated, ReadonlySet<string | undefined>>()
  readonly #lacks = new Map<Uncorroborated, ReadonlyArray<Provider>>()
  /** Receipts that a provider other than the serving one has or lacks. */
  readonly #hasOtherEvidence = new Set<Uncorroborated>()
  readonly #asked = new Set<Uncorroborated>()
  /** Receipts that a provider other than the serving one cannot check. */
  readonly #unable = new Set<Uncorroborated>()
  /** Receipts whose block the serving provider has replaced. */
  readonly #replaced = new Set<Uncorroborated>()
  /** Providers that have another block at the receipt's height. */
  readonly #onOtherBlock = new Map<Uncorroborated, ReadonlyArray<Provider>>()

  add(provider: Provider, serves: boolean, { asked, has, lacks, unable, replaced }: ProviderEvidence) {
    for (const receipt of asked) this.#asked.add(receipt)
    for (const [receipt, time, sender] of has) {
      this.#senders.set(receipt, new Set([...(this.#senders.get(receipt) ?? []), sender]))
      const times = this.#has.get(receipt) ?? new Map<number, ReadonlyArray<Provider>>()
      this.#has.set(receipt, times.set(time, [...(times.get(time) ?? []), provider]))
    }
    for (const receipt of lacks) this.#lacks.set(receipt, [...(this.#lacks.get(receipt) ?? []), provider])
    if (!serves) for (const receipt of unable) this.#unable.add(receipt)
    if (serves) for (const receipt of replaced) this.#replaced.add(receipt)
    for (const receipt of replaced) {
      this.#onOtherBlock.set(receipt, [...(this.#onOtherBlock.get(receipt) ?? []), provider])
    }
    if (!serves) for (const receipt of [...has.map(([known]) => known), ...lacks]) this.#hasOtherEvidence.add(receipt)
  }

  /** How many providers have it with the same block time. Where block times differ, the largest such number. */
  has(receipt: Uncorroborated): number {
    return Math.max(0, ...Array.from(this.#has.get(receipt)?.values() ?? [], ({ length }) => length))
  }

  /** All providers that have it, at any block time. */
  claimedBy(receipt: Uncorroborated): ReadonlyArray<Provider> {
    return [...(this.#has.get(receipt)?.values() ?? [])].flat()
  }

  /** The block time that most providers report, Unix seconds. */
  timeOf(receipt: Uncorroborated): number | undefined {
    const most = this.has(receipt)
    return [...(this.#has.get(receipt) ?? [])].find(([, { length }]) => length === most)?.[0]
  }

  /** Who sent it; undefined where the providers that have it differ. */
  senderOf(receipt: Uncorroborated): string | undefined {
    const [sender, ...others] = this.#senders.get(receipt) ?? []
    return others.length === 0 ? sender : undefined
  }

  /**
   * Providers that have its block height and lack the receipt. Once two providers have its block, providers with
   * another block at that height no longer count: they cannot know what is in it.
   */
  lacks(receipt: Uncorroborated): ReadonlyArray<Provider> {
    const lacking = this.#lacks.get(receipt) ?? []
    const onOtherBlock = this.#onOtherBlock.get(receipt) ?? []
    const onItsBlock = lacking.filter((provider) => !onOtherBlock.includes(provider))
    return onItsBlock.length + this.claimedBy(receipt).length >= quorum ? onItsBlock : lacking
  }

  /** At least one provider was asked about it and responded, even if with an unusable response. */
  isAsked(receipt: Uncorroborated): boolean {
    return this.#asked.has(receipt)
  }

  /**
   * Another provider than the serving one has its transaction but cannot check its amount, and no other evidence
   * exists.
   */
  isUnverifiable(receipt: Uncorroborated): boolean {
    return this.#unable.has(receipt) && !this.#hasOtherEvidence.has(receipt) && this.lacks(receipt).length === 0
  }

  /** The serving provider, which the receipt's block was read from, now has another block at that height. */
  isReplaced(receipt: Uncorroborated): boolean {
    return this.#replaced.has(receipt)
  }

  /** A provider other than the serving one has or lacks it. */
  hasOtherEvidence(receipt: Uncorroborated): boolean {
    return this.#hasOtherEvidence.has(receipt)
  }
}
