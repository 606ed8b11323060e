import type { Block } from "./Block.ts"
import type { ChainPlan } from "./plans.ts"
import type { SimChain } from "./SimChain.ts"

/** The daemon and the chains do not agree. */
export class Violation extends Error {}

/** Whether a check finds nothing wrong. */
export const isRight = (check: () => void): boolean => {
  try {
    check()
    return true
  } catch (error) {
    if (error instanceof Violation) return false
    throw error
  }
}

/** A chain as the ledger looks at it. */
export interface Watched {
  readonly plan: ChainPlan
  readonly chain: SimChain
  /** The blocks that providers have shown last as the chain's head. */
  readonly shown: () => ReadonlyArray<Block>
  /** Headers whose hashes belong to no block were handed out. */
  readonly isGarbled: () => boolean
  /** Logs of these transactions were left out of some response. */
  readonly withheld: (txHash: string) => boolean
  /** A provider has reported something false about this address. */
  readonly isLiedAbout: (address: string) => boolean
  /** Two providers can report what moved inside contracts in old blocks. */
  readonly tellsInside: boolean
  /** Two providers keep the states of old blocks. */
  readonly keepsStates: boolean
  /** Blocks had times that are not theirs, and may be taken for them in the end. */
  readonly areTimesWrong: () => boolean
  /** Blocks had times that are not theirs: what is provisional may go by one provider's. */
  readonly isOneTimeWrong: () => boolean
  /** How many providers corroborate something: two, where it has that many. */
  readonly quorum: number
  /** How many providers have returned a block's logs. */
  readonly readers: (number: number) => number
  /** One provider was left, for long enough to decide alone. */
  readonly isLeftToOne: () => boolean
}

/** Additional requirements for the daemon, not all of which it meets yet. */
export interface Strictness {
  /** Nothing ends unpaid because one provider has left out its money. */
  silence: boolean
  /** No payment fails for a part, or for a wrong token, that one provider has invented. */
  endings: boolean
  /** What was invented is gone in the end, and holds no payment open. */
  leftovers: boolean
  /** Nor does money hold one open that moved inside a contract, and that no second provider can report. */
  inside: boolean
}

export const usualStrictness: Readonly<Strictness> = { silence: true, endings: true, leftovers: false, inside: false }
