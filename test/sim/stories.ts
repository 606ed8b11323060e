import type { Dice } from "./Dice.ts"
import type { ChainPlan } from "./plans.ts"
import type { Step } from "./steps.ts"
import { earlyHeads, highTags, longBranches, offTimes, reorgedCoins, times } from "./stories/chain.ts"
import { deniedThenGone, elsewhereDown, falseFinals, inventedElsewhere, inventions } from "./stories/inventions.ts"
import { dust, logNumbers, manyLogs, shyProviders, twoImpaired } from "./stories/logs.ts"
import {
  balances,
  coinForToken,
  collectedCoins,
  hiddenLate,
  lateBalances,
  multiples,
  otherHashes,
  withheld
} from "./stories/money.ts"
import { cancellations, otherDecisions, refunds, restores, shallowDecisions, wrongClock } from "./stories/operation.ts"
import type { Story } from "./stories/scene.ts"

// Short sequences of steps, each of which leads to one rule of the daemon: by chance alone they would hardly ever come
// together. A seed mixes them with steps at random.

export const stories = {
  reorgedCoins,
  inventions,
  falseFinals,
  deniedThenGone,
  balances,
  multiples,
  withheld,
  longBranches,
  futureTimes: times(1),
  pastTimes: times(-1),
  highTags,
  logNumbers,
  cappedLogs: manyLogs(false),
  cutLogs: manyLogs(true),
  dust,
  restoredCopy: restores(false),
  restoredElsewhere: restores(true),
  wrongClock,
  otherHashes,
  lateBalances,
  cancellations,
  coinForToken,
  inventedElsewhere,
  collectedCoins,
  offTimes,
  earlyHeads: earlyHeads(3),
  earlyHeadsOfTwo: earlyHeads(2),
  hiddenLate,
  twoImpaired,
  elsewhereDown,
  refunds,
  shyProviders,
  shallowDecisions,
  otherDecisions
} satisfies Readonly<Record<string, Story>>

export type Kind = keyof typeof stories
export const kinds = Object.keys(stories) as ReadonlyArray<Kind>

/** Kinds of one age, the name of their dice, and the share of seeds that play one of them in addition. */
interface Generation {
  readonly dice: string
  readonly chance: number
  readonly kinds: ReadonlyArray<Kind>
}

/** Younger than the seeds that once failed, which have to stay as they were. */
const younger: ReadonlyArray<Generation> = [
  { dice: "younger kinds", chance: 0.1, kinds: ["otherHashes", "lateBalances", "cancellations", "coinForToken"] },
  { dice: "youngest kinds", chance: 0.03, kinds: ["inventedElsewhere"] }
]

/** The seeds that failed first are played without these. */
export const newer: Generation = {
  dice: "newest kinds",
  chance: 0.2,
  kinds: [
    "collectedCoins",
    "offTimes",
    "earlyHeads",
    "earlyHeadsOfTwo",
    "hiddenLate",
    "twoImpaired",
    "elsewhereDown",
    "refunds",
    "shyProviders"
  ]
}

/** New ones come here: all seeds that once failed are played without. */
export const newest: Generation = { dice: "deciding kinds", chance: 0.1, kinds: ["shallowDecisions", "otherDecisions"] }

export const generations: ReadonlyArray<Generation> = [...younger, newer, newest]

/** Kinds that take a second to compute are played less often. */
const seldom: Readonly<Partial<Record<Kind, number>>> = {
  cappedLogs: 2,
  cutLogs: 2,
  dust: 3,
  restoredCopy: 1,
  restoredElsewhere: 1
}
export const weights = Object.fromEntries(
  kinds.filter((kind) => !generations.some((one) => one.kinds.includes(kind))).map((kind) => [kind, seldom[kind] ?? 5])
) as Readonly<Partial<Record<Kind, number>>>

/** What happens on a chain whose coin payments can ask for. */
const inCoin: ReadonlyArray<Kind> = ["reorgedCoins", "balances", "lateBalances", "collectedCoins", "hiddenLate"]

/** The steps of a story; `name` is its payment's. */
export const tell = (kind: Kind, dice: Dice, chains: ReadonlyArray<ChainPlan>, name: string): ReadonlyArray<Step> => {
  const withCoin = chains.flatMap(({ coin, currencies }, i) => (currencies.some((one) => one === coin) ? [i] : []))
  const chain = inCoin.includes(kind) ? dice.pick(withCoin) : dice.below(chains.length)
  const plan = chains[chain]
  if (plan === undefined) throw new Error("there is no chain")
  return stories[kind]({ dice, chains, chain, plan, name })
}
