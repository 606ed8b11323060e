import type { Step, Way } from "../steps.ts"
import { given, insideWays, made, maybeThree, mined, paid, type Story, server, wait } from "./scene.ts"

/** One of three providers leaves out logs, and another one fails, or refuses logs alone; or one of two does. */
export const twoImpaired: Story = (scene) => {
  const { chain, dice, plan } = scene
  const tokens = plan.currencies.filter((one) => one !== plan.coin)
  const liar = dice.below(2)
  const isLiedTo = dice.chance(0.6)
  const seconds = dice.pick([20, 60, 120])
  const impaired: Step = {
    after: dice.between(0, 20_000),
    does: "break",
    chain,
    provider: 1 - liar,
    kind: dice.pick(["down", "hang", "tooMany", "rangeLimit", "refusesLogs", "refusesLogs"]),
    size: dice.between(1, 3),
    seconds
  }
  const withholds: Step = {
    after: 0,
    does: "break",
    chain,
    provider: liar,
    kind: dice.pick(["emptyLogs", "partialLogs"]),
    size: 1,
    seconds: 2 * seconds
  }
  return [
    ...(isLiedTo ? [given({ providers: 3 })] : []),
    made(scene, { currency: dice.pick(tokens), expiresIn: dice.pick([15, 60]) }),
    ...(isLiedTo ? [withholds] : []),
    impaired,
    paid(scene, dice.pick(["all", "half"]), ["plain", "batch"], dice.between(0, 10_000)),
    mined(scene, plan.confirmations + 6, dice.between(0, 6_000)),
    wait(20_000, 130_000, scene)
  ]
}

/** Two providers number the same logs differently. */
export const logNumbers: Story = (scene) => {
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
export const manyLogs =
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

/** Hundreds of transfers of next to nothing to one payment, which may lack no more than a small one. */
export const dust: Story = (scene) => {
  const { chain, dice, name, plan } = scene
  const flood = (): Step => ({ after: 0, does: "flood", chain, of: name, transfers: dice.between(100, 250) })
  return [
    made(scene, { expiresIn: dice.pick([15, 60]) }),
    ...(dice.chance(0.3) ? [flood()] : []),
    paid(scene, dice.pick(["all", "almost", "half"]), insideWays, dice.between(0, 6_000)),
    flood(),
    ...(dice.chance(0.5) ? [paid(scene, "rest", ["plain"], dice.between(0, 6_000))] : []),
    mined(scene, plan.confirmations + 2, dice.between(0, 10_000)),
    wait(10_000, 30_000, scene),
    ...(dice.chance(0.3)
      ? [{ after: 0, does: "reorg", chain, depth: dice.between(1, 5), grows: 1, fates: ["again", "never"] } as const]
      : [])
  ]
}

/** Providers take no batches, or refuse calls of them, and a log has no receipt. */
export const shyProviders: Story = (scene) => {
  const { chain, dice, plan } = scene
  const shy = (provider: number): Step => ({
    after: 0,
    does: "break",
    chain,
    provider,
    kind: dice.pick(["noBatches", "noBatches", "callRates"]),
    size: dice.below(4),
    seconds: dice.pick([60, 300])
  })
  return [
    ...maybeThree(scene),
    shy(0),
    ...(dice.chance(0.7) ? [shy(1)] : []),
    made(scene, { expiresIn: dice.pick([30, 60]) }),
    paid(scene, dice.pick(["half", "all"]), ["plain", "stateSync", "insideNamed"], dice.between(0, 10_000)),
    paid(scene, "rest", ["plain", "stateSync"], dice.between(0, 10_000)),
    mined(scene, plan.confirmations + 6, dice.between(0, 6_000)),
    wait(20_000, 60_000, scene)
  ]
}
