import { Duration } from "effect"
import type { Provider } from "../providers/ProviderSlot.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import { isInternal } from "./corroborateInternal.ts"
import { type QuorumCount, quorum } from "./QuorumCount.ts"

/** So many transactions that the only other provider denies, within this time, are no mishap. */
const denials = 3
const memory = Duration.toMillis("1 hour")

/** A provider that has reported what others deny. */
export interface Contradicted {
  readonly provider: Provider
  readonly detail: string
}

/** Those that stand for a receipt: who has it, and who reported it, whether or not that one still has it. */
const claimants = (
  receipt: Uncorroborated,
  votes: QuorumCount,
  all: ReadonlyArray<Provider>
): ReadonlyArray<Provider> => {
  const reporters = all.filter(({ client }) => client.host === receipt.reportedBy)
  // Two endpoints of one company have one name: nobody knows which of them it was.
  return [...new Set([...votes.claimedBy(receipt), ...(reporters.length === 1 ? reporters : [])])]
}

/**
 * Tells which providers report money that is not there: at once by two others' word, and by the only other one's where that
 * denies three transactions within an hour. One of the two is wrong then, and the one that serves is not believed more.
 */
export class Contradictions {
  /** By provider, when transactions were first denied, Unix milliseconds. */
  readonly #denied = new Map<number, Map<string, number>>()

  constructor(readonly all: ReadonlyArray<Provider>) {}

  /**
   * @param hasTwo only two providers can be asked, the serving one among them
   */
  find(
    receipts: ReadonlyArray<Uncorroborated>,
    votes: QuorumCount,
    hasTwo: boolean,
    now: number
  ): ReadonlyArray<Contradicted> {
    const found = new Map<number, Contradicted>()
    for (const receipt of receipts) {
      const claimed = claimants(receipt, votes, this.all)
      if (votes.claimedBy(receipt).length >= quorum) continue
      for (const provider of claimed) {
        const against = votes.lacks(receipt).filter((one) => one !== provider)
        const by = against.map(({ client }) => client.host).join(" and ")
        const isRefuted = against.length >= quorum
        if (!isRefuted && !(hasTwo && against.length > 0 && this.#isTooMany(provider, receipt, now))) continue
        const others = isRefuted ? "" : `, and ${denials - 1} others within an hour,`
        found.set(provider.index, {
          provider,
          detail: `it reported transaction ${receipt.txHash}${others} that ${by} ${isRefuted ? "deny" : "denies"}`
        })
      }
    }
    return [...found.values()]
  }

  /** Whether the denial of this one, which has not been denied before, is one too many. */
  #isTooMany({ index }: Provider, receipt: Uncorroborated, now: number): boolean {
    // How much came inside contracts is worked out from balances: two honest nodes may come to different ends.
    if (receipt.deniedBy !== undefined || isInternal(receipt)) return false
    const recent = [...(this.#denied.get(index) ?? [])].filter(([, at]) => at <= now && now - at < memory)
    const denied = new Map([...recent, [receipt.txHash, now] as const])
    this.#denied.set(index, denied)
    return denied.size >= denials
  }
}
