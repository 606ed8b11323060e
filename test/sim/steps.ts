import type { Duration } from "effect"
import type { ChainName } from "../../src/Domain/Chain.ts"
import type { PaymentCurrency } from "../../src/Domain/Currency.ts"
import type { Dice } from "./Dice.ts"
import type { LieKind } from "./Place.ts"
import type { ChainPlan } from "./plans.ts"
import type { Fate } from "./SimChain.ts"
import { type FaultKind, faultKinds, lies } from "./SimProvider.ts"

/** How money comes to an address, or how it seems to. */
export const ways = [
  "plain",
  "collected",
  "severalInOne",
  "batch",
  "withOthers",
  "insideNamed",
  "insideHidden",
  "selfDestruct",
  "wrongToken",
  "lookAlike",
  "failed",
  "zero",
  "nonFungible",
  "malformed",
  "otherChain",
  "otherCurrency",
  // In stories only.
  "stateSync"
] as const
export type Way = (typeof ways)[number]

/** How much of what a payment asks for. */
export type Part = "all" | "almost" | "half" | "rest" | "more" | "dust"

/** What holds for a seed from its beginning. */
export interface Conditions {
  /** Of each chain. */
  readonly providers?: number
  /** The tag that every payment waits for. */
  readonly requires?: "safe" | "finalized"
  /** More addresses are watched than a provider picks logs for. */
  readonly crowded?: boolean
  /** Providers, by their place, that refuse to give many logs at once. */
  readonly capped?: ReadonlyArray<number>
  /** For how long other providers are waited for before one decides alone. */
  readonly patience?: Duration.Duration
  /** All providers keep the states of all blocks. */
  readonly archive?: boolean
}

/** A payment: the one that was made under this name, or by its place in their order. */
interface OfPayment {
  readonly payment: number
  readonly of?: string
}

export type Action =
  | {
      readonly does: "create"
      /** What other steps call it by. */
      readonly name?: string
      readonly chain: ChainName
      readonly currency: PaymentCurrency
      /** Base units. */
      readonly amount: number
      /** Seconds. */
      readonly expiresIn: number
      readonly ownUrl: boolean
    }
  | (OfPayment & { readonly does: "pay"; readonly way: Way; readonly part: Part; readonly other: number })
  | (OfPayment & { readonly does: "spend"; readonly all: boolean })
  | (OfPayment & { readonly does: "cancel" })
  /** Somebody notes that so much of what counts for an open payment was sent back. */
  | (OfPayment & { readonly does: "refund"; readonly part: Part })
  /** A person accepts what came for a payment. */
  | (OfPayment & { readonly does: "accept" })
  /** A person accepts an open exception, by its place among the payment's, or notes what was sent back of it. */
  | (OfPayment & {
      readonly does: "decide"
      readonly exception: number
      readonly as: "accepted" | "refunded"
      readonly part: Part
    })
  | {
      readonly does: "lie"
      readonly chain: number
      readonly provider: number
      readonly kind: LieKind
      readonly of?: string
      readonly way: Way
      readonly part: Part
      readonly size: number
      /** Seconds. */
      readonly seconds: number
    }
  | {
      /** Many transfers at once, to a payment or to unwatched addresses. */
      readonly does: "flood"
      readonly chain: number
      readonly of?: string
      readonly transfers: number
    }
  | {
      readonly does: "clock"
      /** By which the system's clock is ahead. */
      readonly hours: number
      /** Until it is right again. */
      readonly seconds: number
    }
  /** The current files are copied; later they replace newer ones. `elsewhere`: on another machine. */
  | { readonly does: "copy" }
  | { readonly does: "restore"; readonly elsewhere: boolean; readonly down: number }
  | ({ readonly does: "given" } & Conditions)
  | {
      readonly does: "reorg"
      readonly chain: number
      readonly depth: number
      readonly grows: number
      /** Of each transaction in turn, over and over. */
      readonly fates: ReadonlyArray<Fate>
    }
  | { readonly does: "mine"; readonly chain: number; readonly blocks: number }
  | {
      readonly does: "break"
      readonly chain: number
      readonly provider: number
      readonly kind: FaultKind
      readonly size: number
      /** Seconds. */
      readonly seconds: number
    }
  | { readonly does: "receive"; readonly answer: "works" | "fails" | "hangs" }
  /** The coins that came to an ended payment so many seconds ago, or earlier, are to be known. */
  | { readonly does: "look"; readonly of: string; readonly ago: number }
  | {
      readonly does: "crash"
      /** At once; before or after the commit that is so many ahead, before it is announced. */
      readonly when: "now" | "before" | "after"
      readonly commits: number
      /** Seconds until the next start. */
      readonly down: number
    }
  | { readonly does: "wait" }

/** `after`: milliseconds since the step before. */
export type Step = Action & { readonly after: number }

const often: Readonly<Partial<Record<Way, number>>> = {
  plain: 22,
  collected: 4,
  severalInOne: 3,
  batch: 3,
  withOthers: 2,
  insideNamed: 4,
  insideHidden: 4,
  selfDestruct: 2,
  wrongToken: 3,
  lookAlike: 3,
  failed: 3,
  zero: 1,
  nonFungible: 1,
  malformed: 1,
  otherChain: 3,
  otherCurrency: 3
}

const create = (dice: Dice, chains: ReadonlyArray<ChainPlan>): Action => {
  const { chain, currencies } = dice.pick(chains)
  return {
    does: "create",
    chain,
    currency: dice.pick(currencies),
    amount: dice.between(2, 1_000_000),
    expiresIn: dice.pick([15, 30, 45, 60]),
    ownUrl: dice.chance(0.3)
  }
}

const reorg = (dice: Dice, chains: number): Action => ({
  does: "reorg",
  chain: dice.below(chains),
  depth: dice.chance(0.1) ? dice.between(6, 14) : dice.between(1, 5),
  grows: dice.chance(0.2) ? -dice.between(1, 2) : dice.between(0, 2),
  fates: Array.from({ length: 4 }, () => dice.weighted<Fate>({ again: 5, later: 2, never: 2 }))
})

const breakdown = (dice: Dice, chains: number): Action => {
  const kind = dice.pick(faultKinds)
  // While the first provider lies the second one has to be available: what both leave out cannot be known.
  const provider = lies.has(kind) ? 0 : dice.below(2)
  return {
    does: "break",
    chain: dice.below(chains),
    provider,
    kind,
    size: dice.between(1, 6),
    seconds: dice.pick([2, 5, 10, 20, 40, 80])
  }
}

const action = (dice: Dice, chains: ReadonlyArray<ChainPlan>): Action => {
  const does = dice.weighted({
    create: 4,
    pay: 14,
    spend: 2,
    reorg: 3,
    mine: 1,
    break: 4,
    receive: 1,
    crash: 1,
    wait: 4
  })
  switch (does) {
    case "create":
      return create(dice, chains)
    case "pay": {
      const part = dice.weighted<Part>({ all: 6, half: 4, rest: 3, more: 2, dust: 1 })
      return { does, payment: dice.below(64), way: dice.weighted(often), part, other: dice.below(64) }
    }
    case "spend":
      return { does, payment: dice.below(64), all: dice.chance(0.5) }
    case "reorg":
      return reorg(dice, chains.length)
    case "mine":
      return { does, chain: dice.below(chains.length), blocks: dice.between(1, 8) }
    case "break":
      return breakdown(dice, chains.length)
    case "receive":
      return { does, answer: dice.weighted({ works: 3, fails: 2, hangs: 1 }) }
    case "crash": {
      const when = dice.pick(["now", "before", "after"] as const)
      return { does, when, commits: dice.between(1, 6), down: dice.pick([0, 1, 5, 30]) }
    }
    case "wait":
      return { does }
  }
}

/** While no payment is open, less is checked: faults may go unnoticed then. */
const quietStart = (dice: Dice, chains: ReadonlyArray<ChainPlan>): ReadonlyArray<Step> => [
  { after: 0, ...breakdown(dice, chains.length) },
  { after: 0, ...breakdown(dice, chains.length) },
  { after: dice.between(1_000, 90_000), does: "wait" }
]

const decision = (dice: Dice, of: OfPayment): Action => {
  const as = dice.weighted({ accepted: 3, refunded: 3, all: 2 })
  if (as === "all") return { ...of, does: "accept" }
  return { ...of, does: "decide", exception: dice.below(8), as, part: dice.pick(["all", "all", "half", "dust"]) }
}

/** These steps with decisions of a person among them, also right after money has come. */
export const withDecisions = (dice: Dice, steps: ReadonlyArray<Step>): ReadonlyArray<Step> =>
  steps.flatMap((step): ReadonlyArray<Step> => {
    const isDecided = dice.chance(step.does === "pay" || step.does === "mine" || step.does === "wait" ? 0.3 : 0.1)
    const payment = "payment" in step && dice.chance(0.7) ? step.payment : dice.below(64)
    const of = "of" in step && step.of !== undefined ? { of: step.of } : {}
    const decided: Step = { after: dice.pick([0, 2_000, 7_000, 20_000]), ...decision(dice, { payment, ...of }) }
    return isDecided ? [step, decided] : [step]
  })

/** What a seed does, made in advance: with steps left out, the others still do the same. */
export const stepsOf = (dice: Dice, chains: ReadonlyArray<ChainPlan>): ReadonlyArray<Step> => {
  const count = dice.between(8, 26)
  const steps = Array.from(
    { length: count },
    (): Step => ({ after: dice.chance(0.3) ? 0 : dice.between(100, 6_000), ...action(dice, chains) })
  )
  return [...(dice.chance(0.1) ? quietStart(dice, chains) : []), { after: 0, ...create(dice, chains) }, ...steps]
}
