import { Duration } from "effect"
import { quorum } from "../evidence/Ballot.ts"
import type { Provider } from "../providers/providerHealth.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import { isInternal } from "./corroborateInternal.ts"
import type { ReceiptTally } from "./receiptEvidence.ts"

/** With two providers, this many denied transactions of one within this time are not an accident. */
const denialLimit = 3
const denialWindow = Duration.toMillis("1 hour")

/** A provider whose reports others deny, and why. */
export interface Contradicted {
  readonly provider: Provider
  readonly detail: string
}

/** The providers that claim a receipt: all that have it, and the one that reported it, even if it no longer has it. */
const claimants = (
  { reportedBy }: Uncorroborated,
  { claims }: ReceiptTally,
  all: ReadonlyArray<Provider>
): ReadonlyArray<Provider> => {
  const reporters = all.filter(({ client }) => client.host === reportedBy)
  // Two endpoints on the same host cannot be distinguished.
  return [...new Set([...claims.map(({ by }) => by), ...(reporters.length === 1 ? reporters : [])])]
}

/**
 * Finds providers that report money that others deny. Two other providers that deny a receipt are enough at once. With
 * only two providers, the other one has to deny three transactions within an hour: one of the two is wrong then, and
 * the serving provider gets no benefit of the doubt. Called by `corroborate.ts` after each round.
 */
export class Contradictions {
  /** By provider index: when each denied transaction was first denied, Unix milliseconds. */
  readonly #denied = new Map<number, Map<string, number>>()

  constructor(readonly all: ReadonlyArray<Provider>) {}

  /**
   * The providers that the evidence of this round contradicts.
   *
   * @param hasTwo the chain has two providers. Of more, one that happens to be the only other to respond contradicts none
   * @param now Unix milliseconds
   */
  find(
    receipts: ReadonlyArray<readonly [Uncorroborated, ReceiptTally]>,
    hasTwo: boolean,
    now: number
  ): ReadonlyArray<Contradicted> {
    const found = new Map<number, Contradicted>()
    for (const [receipt, tally] of receipts) {
      if (tally.claims.length >= quorum) continue
      for (const provider of claimants(receipt, tally, this.all)) {
        const against = tally.denials.filter((other) => other !== provider)
        const by = against.map(({ client }) => client.host).join(" and ")
        const isRefuted = against.length >= quorum
        if (!isRefuted && !(hasTwo && against.length > 0 && this.#reachesLimit(provider, receipt, now))) continue
        const others = isRefuted ? "" : `, and ${denialLimit - 1} others within an hour,`
        found.set(provider.index, {
          provider,
          detail: `it reported transaction ${receipt.txHash}${others} that ${by} ${isRefuted ? "deny" : "denies"}`
        })
      }
    }
    return [...found.values()]
  }

  /** Counts the first denial of a receipt; whether the provider reaches the limit with it. */
  #reachesLimit({ index }: Provider, receipt: Uncorroborated, now: number): boolean {
    // Amounts moved inside contracts are derived from balances: two honest nodes can come to different results.
    if (receipt.deniedBy !== undefined || isInternal(receipt)) return false
    const recent = [...(this.#denied.get(index) ?? [])].filter(([, at]) => at <= now && now - at < denialWindow)
    const denied = new Map([...recent, [receipt.txHash, now] as const])
    this.#denied.set(index, denied)
    return denied.size >= denialLimit
  }
}
