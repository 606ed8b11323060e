import type { Fate } from "../SimChain.ts"
import type { Step, Way } from "../steps.ts"
import { insideWays, made, mined, paid, plain, type Story, wait } from "./scene.ts"

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
