import type { PaymentCurrency } from "../../src/Domain/Currency.ts"
import type { Dice } from "./Dice.ts"
import type { ChainPlan } from "./plans.ts"
import type { Fate } from "./SimChain.ts"
import type { Part, Step, Way } from "./steps.ts"

// Short sequences of steps, each of which leads to one rule of the daemon: by chance alone they would hardly ever come
// together. A seed mixes them with steps at random.

/** One telling of a story: where it happens, and what its payment is called. */
interface Scene {
  readonly dice: Dice
  readonly chains: ReadonlyArray<ChainPlan>
  /** The place of its chain among them. */
  readonly chain: number
  readonly plan: ChainPlan
  readonly name: string
}

type Story = (scene: Scene) => ReadonlyArray<Step>

const plain = { payment: 0, other: 0 }
const insideWays: ReadonlyArray<Way> = ["plain", "insideNamed", "insideHidden", "selfDestruct", "severalInOne"]

const wait = (from: number, to: number, { dice }: Scene): Step => ({ after: dice.between(from, to), does: "wait" })

const made = (
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

const paid = ({ dice, name }: Scene, part: Part, ways: ReadonlyArray<Way> = insideWays, after = 0): Step => ({
  ...plain,
  after,
  does: "pay",
  of: name,
  way: dice.pick(ways),
  part,
  other: dice.below(64)
})

const mined = ({ chain }: Scene, blocks: number, after = 0): Step => ({ after, does: "mine", chain, blocks })

const lie = (
  { chain, name }: Scene,
  over: Pick<Step & { does: "lie" }, "kind" | "provider" | "seconds"> & Partial<Step & { does: "lie" }>
): Step => ({ after: 0, does: "lie", chain, of: name, way: "plain", part: "all", size: 0, ...over })

/** The one that serves as long as nothing is wrong with it, more often than another. */
const server = ({ dice }: Scene): number => dice.pick([0, 0, 0, 1])

const given = (over: Omit<Step & { does: "given" }, "after" | "does">): Step => ({ after: 0, does: "given", ...over })
const maybeThree = ({ dice }: Scene): ReadonlyArray<Step> => (dice.chance(0.3) ? [given({ providers: 3 })] : [])

/** The chain's coin, where payments can ask for it. */
const coinOf = ({ currencies, coin }: ChainPlan): PaymentCurrency => currencies.find((one) => one === coin) ?? "USDC"

/** A confirmed payment in the chain's coin is undone by a reorg, paid again by it, and collected by its owner. */
const reorgedCoins: Story = (scene) => {
  const { chain, dice, plan } = scene
  return [
    made(scene, { currency: coinOf(plan) }),
    paid(scene, dice.pick(["all", "more"])),
    mined(scene, plan.confirmations + 2, dice.between(0, 4_000)),
    wait(10_000, 16_000, scene),
    {
      after: 0,
      does: "reorg",
      chain,
      depth: plan.confirmations + dice.between(4, 10),
      grows: dice.between(0, 2),
      fates: dice.pick([["again"], ["again"], ["later"]] as const)
    },
    ...(dice.chance(0.8)
      ? [{ ...plain, after: dice.between(0, 9_000), does: "spend", of: scene.name, all: true } as const]
      : []),
    mined(scene, plan.confirmations + 6, dice.between(0, 12_000)),
    wait(10_000, 12_000, scene)
  ]
}

const inventedWays: ReadonlyArray<Way> = [
  "plain",
  "plain",
  "severalInOne",
  "insideNamed",
  "wrongToken",
  "otherCurrency"
]

const invented = (scene: Scene, seconds: number): ReadonlyArray<Step> => {
  const { dice } = scene
  const part = dice.pick<Part>(["all", "all", "half", "more"])
  return [
    ...(dice.chance(0.4) ? [paid(scene, part === "half" ? "half" : dice.pick(["half", "all"]))] : []),
    lie(scene, {
      kind: "invention",
      provider: server(scene),
      seconds,
      way: dice.pick(inventedWays),
      part,
      size: dice.below(3)
    })
  ]
}

/** A provider shows a transaction that never was. */
const inventions: Story = (scene) => {
  const { dice, plan } = scene
  return [
    ...maybeThree(scene),
    made(scene, { expiresIn: dice.pick([15, 60]) }),
    wait(0, 4_000, scene),
    ...invented(scene, dice.pick([20, 60, 100])),
    mined(scene, plan.confirmations + 6, dice.between(0, 8_000)),
    wait(10_000, 40_000, scene)
  ]
}

/** Besides, its final blocks have hashes that are nobody's: who tells the truth about them looks inconsistent. */
const falseFinals: Story = (scene) => {
  const { plan, dice } = scene
  const provider = server(scene)
  return [
    made(scene, { expiresIn: dice.pick([15, 60]) }),
    wait(0, 4_000, scene),
    dice.chance(0.6)
      ? lie(scene, { kind: "invention", provider, seconds: 120, way: dice.pick(inventedWays), size: dice.below(3) })
      : lie(scene, { kind: "hidden", provider, seconds: 120, size: 0 }),
    paid(scene, "half"),
    mined(scene, plan.confirmations + 6, 2_000),
    lie(scene, { kind: "falseFinals", provider, seconds: 110 }),
    wait(32_000, 40_000, scene),
    mined(scene, plan.confirmations + 6),
    wait(32_000, 60_000, scene)
  ]
}

/** Who denied it answers no more: what is left is the provider that has invented it. */
const deniedThenGone: Story = (scene) => {
  const { chain, dice, plan } = scene
  const provider = 0
  const three = dice.chance(0.3)
  const others = three ? [1, 2] : [1]
  const gone = dice.pick([100, 300])
  return [
    ...(three ? [given({ providers: 3 })] : []),
    made(scene),
    wait(0, 4_000, scene),
    lie(scene, { kind: "invention", provider, seconds: gone + 60, way: dice.pick(inventedWays), size: 1 }),
    mined(scene, plan.confirmations + 6, 1_000),
    wait(25_000, 35_000, scene),
    ...others.map(
      (one): Step => ({ after: 0, does: "break", chain, provider: one, kind: "gone", size: 1, seconds: gone })
    ),
    mined(scene, plan.confirmations + 6),
    wait((gone - 10) * 1_000, gone * 1_000, scene)
  ]
}

/** A provider knows of more coins at an address than there are, or of less. */
const balances: Story = (scene) => {
  const { dice, plan } = scene
  const up = dice.chance(0.7)
  const both = [
    paid(scene, dice.pick(["half", "half", "dust"])),
    lie(scene, {
      kind: "shifted",
      provider: server(scene),
      seconds: dice.pick([20, 60, 100]),
      part: dice.pick(["half", "all", "all"]),
      size: up ? 1 : -1
    })
  ]
  return [
    ...maybeThree(scene),
    made(scene, { currency: coinOf(plan), expiresIn: dice.pick([15, 60]) }),
    wait(0, 4_000, scene),
    ...(dice.chance(0.5) ? both : both.toReversed()),
    mined(scene, plan.confirmations + 2, dice.between(0, 8_000)),
    wait(10_000, 30_000, scene)
  ]
}

/** A provider shows more in a real transaction than is in it. */
const multiples: Story = (scene) => {
  const { dice, plan } = scene
  return [
    ...maybeThree(scene),
    made(scene),
    lie(scene, {
      kind: "multiplied",
      provider: server(scene),
      seconds: dice.pick([20, 60]),
      size: dice.pick([2, 2, 3])
    }),
    paid(scene, dice.pick(["half", "half", "dust", "all"]), ["plain", "insideNamed", "severalInOne", "batch"]),
    mined(scene, plan.confirmations + 2, dice.between(1_000, 8_000)),
    wait(10_000, 40_000, scene)
  ]
}

/** A provider leaves out what comes to an address, until its payment's time is over. */
const withheld: Story = (scene) => {
  const { dice, plan } = scene
  return [
    ...maybeThree(scene),
    made(scene, { expiresIn: 15 }),
    wait(0, 2_000, scene),
    lie(scene, { kind: "hidden", provider: server(scene), seconds: dice.pick([60, 120]), size: dice.below(2) }),
    // Late enough, mostly, that its block is not final when the payment's time is over.
    dice.chance(0.3) ? wait(0, 4_000, scene) : wait(15_000, 28_000, scene),
    paid(scene, dice.pick(["all", "all", "more", "half"])),
    wait(10_000, 20_000, scene),
    mined(scene, plan.confirmations + 2),
    wait(10_000, 40_000, scene)
  ]
}

/** A provider has blocks that nobody else has, or a head that is too high. */
const longBranches: Story = (scene) => {
  const { chain, dice, plan } = scene
  // No higher than the chain is in the end: what was read is waited for.
  const ahead = dice.between(1, plan.confirmations + 4)
  const branch = lie(scene, {
    kind: "longBranch",
    provider: server(scene),
    seconds: dice.pick([10, 30, 60]),
    size: ahead
  })
  const once = paid(scene, "all", insideWays, dice.between(0, 6_000))
  return [
    ...maybeThree(scene),
    made(scene),
    once,
    mined(scene, 1),
    branch,
    wait(1_000, 8_000, scene),
    ...(dice.chance(0.5)
      ? [{ after: 0, does: "reorg", chain, depth: 3, grows: 1, fates: [dice.pick<Fate>(["never", "again"])] } as const]
      : []),
    wait(10_000, 30_000, scene)
  ]
}

/** A provider's block times are hours off. */
const times =
  (sign: 1 | -1): Story =>
  (scene) => {
    const { dice, plan } = scene
    const hours = sign * dice.pick([1, 3, 30])
    const pay = paid(scene, dice.pick(["all", "half"]))
    return [
      ...maybeThree(scene),
      made(scene, { expiresIn: dice.pick([15, 45, 60]) }),
      ...(dice.chance(0.5) ? [pay] : []),
      lie(scene, { kind: "times", provider: server(scene), seconds: dice.pick([10, 30, 80]), size: hours }),
      mined(scene, dice.between(1, plan.confirmations + 3), dice.between(0, 3_000)),
      wait(5_000, 15_000, scene),
      pay,
      mined(scene, plan.confirmations, dice.between(1_000, 20_000)),
      wait(5_000, 30_000, scene)
    ]
  }

/** Payments wait for a tag that a provider has at its head. */
const highTags: Story = (scene) => {
  const { dice, plan } = scene
  return [
    given({ requires: dice.pick(["safe", "finalized"]), ...(dice.chance(0.3) ? { providers: 3 } : {}) }),
    made(scene),
    paid(scene, "all"),
    lie(scene, { kind: "tags", provider: server(scene), seconds: dice.pick([20, 40, 60]) }),
    mined(scene, plan.confirmations - 1, dice.between(0, 4_000)),
    wait(5_000, 14_000, scene),
    mined(scene, plan.confirmations + 6),
    wait(10_000, 20_000, scene)
  ]
}

/** Two providers number the same logs otherwise. */
const logNumbers: Story = (scene) => {
  const { chain, dice, plan } = scene
  const tokens = plan.currencies.filter((one) => one !== plan.coin)
  const ways: ReadonlyArray<Way> = ["plain", "severalInOne", "batch", "withOthers"]
  const pay = () => paid(scene, dice.pick(["half", "half", "all"]), ways)
  const pays = Array.from({ length: dice.between(1, 3) }, pay)
  return [
    ...maybeThree(scene),
    made(scene, { currency: dice.pick(tokens) }),
    {
      after: 0,
      does: "break",
      chain,
      provider: dice.below(2),
      kind: "renumbers",
      size: dice.between(1, 8),
      seconds: dice.pick([20, 60, 120])
    },
    ...pays,
    mined(scene, plan.confirmations + 6, dice.between(0, 6_000)),
    wait(30_000, 40_000, scene)
  ]
}

/** More addresses are watched than a provider picks logs for, and a block has more logs than it gives. */
const manyLogs =
  (cut: boolean): Story =>
  (scene) => {
    const { chain, dice, plan } = scene
    const tokens = plan.currencies.filter((one) => one !== plan.coin)
    const flood: Step = { after: 0, does: "flood", chain, transfers: dice.between(1_000, 1_200) }
    const pay = paid(scene, "all", ["plain", "batch"])
    const cuts: Step = {
      after: 0,
      does: "break",
      chain,
      provider: server(scene),
      kind: "cutsLogs",
      size: 1,
      seconds: 90
    }
    return [
      given({ crowded: true, ...(cut ? {} : { capped: dice.pick([[0], [0, 1], [0, 1]]) }) }),
      made(scene, { currency: dice.pick(tokens), expiresIn: cut ? 15 : dice.pick([15, 60]) }),
      ...(cut ? [cuts] : []),
      // Late enough that its block is not final when the payment's time is over.
      ...(cut ? [wait(15_000, 28_000, scene)] : []),
      ...(dice.chance(cut ? 0.1 : 0.4) ? [pay, flood] : [flood, pay]),
      wait(10_000, 30_000, scene),
      mined(scene, plan.confirmations + 6),
      wait(10_000, 30_000, scene)
    ]
  }

/** Hundreds of transfers of next to nothing to one payment. */
const dust: Story = (scene) => {
  const { chain, dice, name, plan } = scene
  const flood = (): Step => ({ after: 0, does: "flood", chain, of: name, transfers: dice.between(100, 250) })
  return [
    made(scene, { expiresIn: dice.pick([15, 60]) }),
    ...(dice.chance(0.3) ? [flood()] : []),
    paid(scene, dice.pick(["all", "half"]), insideWays, dice.between(0, 6_000)),
    flood(),
    mined(scene, plan.confirmations + 2, dice.between(0, 10_000)),
    wait(10_000, 30_000, scene),
    ...(dice.chance(0.3)
      ? [{ after: 0, does: "reorg", chain, depth: dice.between(1, 5), grows: 1, fates: ["again", "never"] } as const]
      : [])
  ]
}

/** An old copy of the files takes the place of the newest ones. */
const restores =
  (elsewhere: boolean): Story =>
  (scene) => {
    const { dice, name } = scene
    const names = [`${name} lost 1`, `${name} lost 2`]
    return [
      made(scene),
      ...(dice.chance(0.5) ? [paid(scene, "all")] : []),
      { after: dice.between(0, 8_000), does: "copy" },
      ...(dice.chance(0.5) ? [paid(scene, "half")] : []),
      ...names.slice(dice.below(2)).map((as) => made(scene, { as })),
      ...names.map((of) => paid({ ...scene, name: of }, "all", ["plain"], dice.between(0, 4_000))),
      { after: dice.between(0, 20_000), does: "restore", elsewhere, down: dice.pick([0, 5, 20]) },
      made(scene, { as: `${name} new` }),
      paid({ ...scene, name: `${name} new` }, dice.pick(["all", "half"]), insideWays, dice.between(0, 4_000)),
      ...names.map((of) => paid({ ...scene, name: of }, "half", ["plain"], dice.between(0, 4_000))),
      wait(5_000, 30_000, scene)
    ]
  }

/** The system's clock is hours off for a while. */
const wrongClock: Story = (scene) => {
  const { dice, plan } = scene
  return [
    made(scene, { expiresIn: dice.pick([15, 60]) }),
    {
      after: dice.between(0, 4_000),
      does: "clock",
      hours: dice.pick([-30, -3, -1, 1, 3, 30]),
      seconds: dice.pick([5, 20, 60])
    },
    paid(scene, dice.pick(["all", "half"]), insideWays, dice.between(0, 6_000)),
    mined(scene, plan.confirmations + 6, dice.between(0, 20_000)),
    wait(5_000, 40_000, scene)
  ]
}

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
  wrongClock
} satisfies Readonly<Record<string, Story>>

export type Kind = keyof typeof stories
export const kinds = Object.keys(stories) as ReadonlyArray<Kind>

/** What takes a second of computing is told less often. */
const seldom: Readonly<Partial<Record<Kind, number>>> = {
  cappedLogs: 2,
  cutLogs: 2,
  dust: 3,
  restoredCopy: 1,
  restoredElsewhere: 1
}
export const weights = Object.fromEntries(kinds.map((kind) => [kind, seldom[kind] ?? 5])) as Readonly<
  Record<Kind, number>
>

/** The steps of a story; `name` is its payment's. */
export const tell = (kind: Kind, dice: Dice, chains: ReadonlyArray<ChainPlan>, name: string): ReadonlyArray<Step> => {
  const withCoin = chains.flatMap(({ coin, currencies }, i) => (currencies.some((one) => one === coin) ? [i] : []))
  const needsCoin = kind === "reorgedCoins" || kind === "balances"
  const chain = needsCoin ? dice.pick(withCoin) : dice.below(chains.length)
  const plan = chains[chain]
  if (plan === undefined) throw new Error("there is no chain")
  return stories[kind]({ dice, chains, chain, plan, name })
}
