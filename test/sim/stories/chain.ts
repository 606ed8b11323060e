import type { Fate } from "../SimChain.ts"
import {
  coinOf,
  given,
  insideWays,
  lie,
  made,
  maybeThree,
  mined,
  paid,
  plain,
  type Story,
  server,
  wait
} from "./scene.ts"

/** A confirmed payment in the chain's coin is undone by a reorg, paid again by it, and collected by its owner. */
export const reorgedCoins: Story = (scene) => {
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

/** A provider has blocks that no one else has, or a head that is too high. */
export const longBranches: Story = (scene) => {
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
export const times =
  (sign: 1 | -1): Story =>
  (scene) => {
    const { dice, plan } = scene
    const hours = sign * dice.pick([1, 3, 30])
    const pay = paid(scene, dice.pick(["all", "half"]))
    return [
      ...maybeThree(scene),
      made(scene, { expiresIn: dice.pick([15, 45, 60]) }),
      ...(dice.chance(0.5) ? [pay] : []),
      lie(scene, { kind: "times", provider: server(scene), seconds: dice.pick([10, 30, 80]), size: hours * 3_600 }),
      mined(scene, dice.between(1, plan.confirmations + 3), dice.between(0, 3_000)),
      wait(5_000, 15_000, scene),
      pay,
      mined(scene, plan.confirmations, dice.between(1_000, 20_000)),
      wait(5_000, 30_000, scene)
    ]
  }

/** One of three providers has block times that are a little off, for as long as payments live. */
export const offTimes: Story = (scene) => {
  const { dice, plan } = scene
  const pay = (after = 0) => [paid(scene, dice.pick(["all", "half"]), insideWays, after), mined(scene, 1)]
  return [
    given({ providers: 3 }),
    made(scene, { expiresIn: 15 }),
    lie(scene, { kind: "times", provider: server(scene), seconds: 400, size: dice.pick([-1, 1, 600, 600]) }),
    ...(dice.chance(0.5) ? pay(dice.between(0, 10_000)) : []),
    // About when the time is over, with the grace.
    ...pay(dice.between(10_000, 36_000)),
    mined(scene, plan.confirmations + 2, dice.between(0, 8_000)),
    wait(40_000, 90_000, scene)
  ]
}

/** A provider's heads are minutes ahead of the clock, when payments are made. */
export const earlyHeads =
  (providers: 2 | 3): Story =>
  (scene) => {
    const { dice, plan } = scene
    const seconds = dice.pick([60, 300])
    return [
      given({ providers }),
      lie(scene, { kind: "heads", provider: server(scene), seconds, size: dice.between(20, 840) }),
      mined(scene, 1, dice.between(0, 2_000)),
      wait(0, 15_000, scene),
      made(scene, { expiresIn: dice.pick([15, 60]) }),
      ...(dice.chance(0.7) ? [paid(scene, dice.pick(["all", "half"]), insideWays, dice.between(0, 40_000))] : []),
      mined(scene, plan.confirmations + 2, dice.between(0, 8_000)),
      wait(10_000, 60_000, scene)
    ]
  }

/** Payments wait for a tag that a provider has at its head. */
export const highTags: Story = (scene) => {
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
