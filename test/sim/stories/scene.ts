import type { PaymentCurrency } from "../../../src/Domain/Currency.ts"
import type { Dice } from "../Dice.ts"
import type { ChainPlan } from "../plans.ts"
import type { Part, Step, Way } from "../steps.ts"

/** One telling of a story: where it happens, and what its payment is called. */
export interface Scene {
  readonly dice: Dice
  readonly chains: ReadonlyArray<ChainPlan>
  /** The place of its chain among them. */
  readonly chain: number
  readonly plan: ChainPlan
  readonly name: string
}

export type Story = (scene: Scene) => ReadonlyArray<Step>

export const plain = { payment: 0, other: 0 }
export const insideWays: ReadonlyArray<Way> = ["plain", "insideNamed", "insideHidden", "selfDestruct", "severalInOne"]

export const wait = (from: number, to: number, { dice }: Scene): Step => ({
  after: dice.between(from, to),
  does: "wait"
})

export const made = (
  { dice, name, plan }: Scene,
  {
    currency = dice.pick(plan.currencies),
    expiresIn = 60,
    as = name
  }: {
    readonly currency?: PaymentCurrency
    readonly expiresIn?: number
    readonly as?: string
  } = {}
): Step => ({
  after: 0,
  does: "create",
  name: as,
  chain: plan.chain,
  currency,
  amount: dice.between(1_000, 1_000_000),
  expiresIn,
  ownUrl: false
})

export const paid = ({ dice, name }: Scene, part: Part, ways: ReadonlyArray<Way> = insideWays, after = 0): Step => ({
  ...plain,
  after,
  does: "pay",
  of: name,
  way: dice.pick(ways),
  part,
  other: dice.below(64)
})

export const mined = ({ chain }: Scene, blocks: number, after = 0): Step => ({ after, does: "mine", chain, blocks })

export const lie = (
  { chain, name }: Scene,
  over: Pick<Step & { does: "lie" }, "kind" | "provider" | "seconds"> & Partial<Step & { does: "lie" }>
): Step => ({ after: 0, does: "lie", chain, of: name, way: "plain", part: "all", size: 0, ...over })

/** So many hours later what came to the payment an hour less ago is known. */
export const hoursLater = ({ name }: Scene, hours: number): ReadonlyArray<Step> => [
  { after: hours * 3_600_000, does: "wait" },
  { after: 0, does: "look", of: name, ago: (hours - 0.9) * 3_600 }
]

/** The one that serves as long as nothing is wrong with it, more often than another. */
export const server = ({ dice }: Scene): number => dice.pick([0, 0, 0, 1])

export const given = (over: Omit<Step & { does: "given" }, "after" | "does">): Step => ({
  after: 0,
  does: "given",
  ...over
})
export const maybeThree = ({ dice }: Scene): ReadonlyArray<Step> => (dice.chance(0.3) ? [given({ providers: 3 })] : [])

/** The chain's coin, where payments can ask for it. */
export const coinOf = ({ currencies, coin }: ChainPlan): PaymentCurrency =>
  currencies.find((one) => one === coin) ?? "USDC"
