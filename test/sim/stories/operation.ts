import type { Fate } from "../SimChain.ts"
import type { Step, Way } from "../steps.ts"
import { given, insideWays, made, mined, paid, plain, type Scene, type Story, wait } from "./scene.ts"

/** An old copy of the files takes the place of the newest ones. */
export const restores =
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
export const wrongClock: Story = (scene) => {
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

/** What came for an open payment is sent back, and more comes; or it is cancelled then. */
export const refunds: Story = (scene) => {
  const { chain, dice, name, plan } = scene
  const ways: ReadonlyArray<Way> = ["plain", "batch", "severalInOne"]
  const refund = (after: number): Step => ({
    ...plain,
    after,
    does: "refund",
    of: name,
    part: dice.pick(["half", "half", "dust"])
  })
  return [
    made(scene, { expiresIn: 60 }),
    paid(scene, "half", ways, dice.between(0, 2_000)),
    mined(scene, plan.confirmations + 2, dice.between(0, 2_000)),
    wait(6_000, 14_000, scene),
    refund(0),
    ...(dice.chance(0.3)
      ? [{ after: 0, does: "reorg", chain, depth: dice.between(4, 10), grows: 1, fates: ["again", "never"] } as const]
      : []),
    ...(dice.chance(0.4) ? [refund(dice.between(0, 3_000))] : []),
    ...(dice.chance(0.7) ? [paid(scene, dice.pick(["half", "half", "all"]), ways, dice.between(0, 6_000))] : []),
    ...(dice.chance(0.3) ? [{ ...plain, after: dice.between(0, 9_000), does: "cancel", of: name } as const] : []),
    mined(scene, plan.confirmations + 2, dice.between(0, 6_000)),
    wait(5_000, 20_000, scene)
  ]
}

/** A person decides on what came for the payment. */
const decided = (scene: Scene, after: number, as: "accept" | "accepted" | "refunded"): Step => {
  const of = { ...plain, after, of: scene.name }
  if (as === "accept") return { ...of, does: "accept" }
  return { ...of, does: "decide", exception: 0, as, part: scene.dice.pick(["all", "all", "half"]) }
}

/** Late money, or a part of what an open payment asks for. */
const forDecision = (scene: Scene): ReadonlyArray<Step> => {
  const { dice } = scene
  const isLate = dice.chance(0.7)
  return [
    made(scene, { expiresIn: isLate ? 15 : 60 }),
    ...(isLate ? [wait(50_000, 70_000, scene)] : []),
    paid(scene, isLate ? dice.pick(["all", "half", "more"]) : "half", ["plain", "severalInOne"], 0)
  ]
}

/** A person decides on money that has just come, again once it is deep, and a reorg takes it between, or after. */
export const shallowDecisions: Story = (scene) => {
  const { chain, dice, plan } = scene
  const decision = (after: number) => decided(scene, after, dice.pick(["accept", "accepted", "refunded"]))
  const fates: ReadonlyArray<Fate> = [dice.pick<Fate>(["never", "never", "later", "again"])]
  const reorg: Step = {
    after: dice.between(0, 3_000),
    does: "reorg",
    chain,
    depth: dice.between(2, 4),
    grows: 1,
    fates
  }
  const isEarly = dice.chance(0.5)
  return [
    given({ providers: dice.pick([1, 1, 2]) }),
    ...forDecision(scene),
    mined(scene, 1, 0),
    // The daemon looks every five seconds.
    decision(dice.between(1_500, 5_500)),
    ...(isEarly ? [reorg] : []),
    mined(scene, plan.confirmations, dice.between(0, 2_000)),
    decision(dice.between(5_100, 9_000)),
    ...(isEarly ? [] : [reorg]),
    mined(scene, plan.confirmations + 2, dice.between(0, 6_000)),
    decision(dice.between(5_100, 9_000)),
    wait(2_000, 20_000, scene)
  ]
}

/** What was decided is lost with the newest files, and another decision is made, or more comes first. */
export const otherDecisions: Story = (scene) => {
  const { dice, plan } = scene
  const [first, second] = dice.pick([
    ["accepted", "refunded"],
    ["refunded", "accepted"],
    ["accept", "refunded"],
    ["accept", "accept"]
  ] as const)
  const isMore = dice.chance(first === "accept" ? 0.6 : 0.2)
  return [
    ...forDecision(scene),
    mined(scene, plan.confirmations, 0),
    wait(5_100, 9_000, scene),
    { after: 0, does: "copy" },
    decided(scene, dice.between(0, 3_000), first),
    { after: dice.between(1_000, 8_000), does: "restore", elsewhere: false, down: dice.pick([0, 5]) },
    ...(isMore ? [paid(scene, "half", ["plain"], 0), mined(scene, plan.confirmations, 0)] : []),
    decided(scene, dice.between(5_100, 9_000), second),
    mined(scene, plan.confirmations + 2, dice.between(0, 6_000)),
    wait(2_000, 20_000, scene)
  ]
}

/** A payment is cancelled when its money is under way, and a reorg mines that lower than it would have been. */
export const cancellations: Story = (scene) => {
  const { chain, dice, name, plan } = scene
  const cancel = { ...plain, after: dice.between(0, 3_000), does: "cancel", of: name } as const
  const pay = paid(scene, dice.pick(["all", "half", "more"]), insideWays, dice.between(0, 2_000))
  return [
    made(scene),
    ...(dice.chance(0.5) ? [mined(scene, dice.between(1, 3), dice.between(0, 3_000))] : []),
    ...(dice.chance(0.5) ? [cancel, pay] : [pay, cancel]),
    {
      after: dice.between(0, 2_000),
      does: "reorg",
      chain,
      depth: dice.between(1, plan.confirmations + 3),
      grows: dice.between(0, 2),
      fates: [dice.pick<Fate>(["again", "later"])]
    },
    mined(scene, plan.confirmations + 2, dice.between(0, 6_000)),
    wait(2_000, 20_000, scene)
  ]
}
