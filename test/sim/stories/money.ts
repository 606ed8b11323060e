import type { Step, Way } from "../steps.ts"
import {
  coinOf,
  given,
  hoursLater,
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

/** A provider reports more coins at an address than there are, or fewer. */
export const balances: Story = (scene) => {
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
export const multiples: Story = (scene) => {
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

/** A provider reports the money of an address under another transaction. */
export const otherHashes: Story = (scene) => {
  const { dice, plan } = scene
  return [
    ...(dice.chance(0.6) ? [given({ providers: 3 })] : []),
    made(scene),
    lie(scene, { kind: "renamed", provider: server(scene), seconds: dice.pick([10, 30, 60]) }),
    paid(scene, dice.pick(["all", "half"])),
    mined(scene, plan.confirmations + 2, dice.between(1_000, 8_000)),
    wait(10_000, 40_000, scene)
  ]
}

/** A provider knows of coins at an address only when its payment is to end. */
export const lateBalances: Story = (scene) => {
  const { dice, plan } = scene
  return [
    ...maybeThree(scene),
    made(scene, { currency: coinOf(plan), expiresIn: 15 }),
    mined(scene, plan.confirmations + 2, dice.between(1_000, 12_000)),
    ...(dice.chance(0.3) ? [paid(scene, "half")] : []),
    wait(10_000, 16_000, scene),
    lie(scene, {
      kind: "shifted",
      provider: dice.below(2),
      seconds: dice.pick([60, 100]),
      part: dice.pick(["half", "all", "dust"]),
      size: 1
    }),
    mined(scene, plan.confirmations + 2, dice.between(0, 2_000)),
    wait(20_000, 40_000, scene)
  ]
}

/** Coins come and are collected before balances are compared, while their payment is open or hours after its end. */
export const collectedCoins: Story = (scene) => {
  const { dice, name, plan } = scene
  const isLate = dice.chance(0.6)
  const ways: ReadonlyArray<Way> = ["plain", "insideNamed"]
  const collected = (after = 0): ReadonlyArray<Step> => [
    paid(scene, dice.pick(["half", "all", "more"]), ways, after),
    mined(scene, 1, dice.between(0, 1_000)),
    { ...plain, after: 0, does: "spend", of: name, all: true },
    mined(scene, 1)
  ]
  return [
    ...maybeThree(scene),
    given({ archive: true }),
    made(scene, { currency: coinOf(plan), expiresIn: isLate ? 15 : 60 }),
    ...(isLate && dice.chance(0.6) ? [] : collected(dice.between(0, 8_000))),
    wait(60_000, 100_000, scene),
    ...(isLate ? [...collected(dice.pick([0, 600_000])), ...hoursLater(scene, 7)] : [])
  ]
}

/** One of three providers, the serving one mostly, hides coins that come after their payment's end. */
export const hiddenLate: Story = (scene) => {
  const { dice, plan } = scene
  return [
    given({ providers: 3, archive: true }),
    made(scene, { currency: coinOf(plan), expiresIn: 15 }),
    wait(60_000, 80_000, scene),
    lie(scene, { kind: "hidden", provider: server(scene), seconds: 5 * 3_600, size: dice.below(2) }),
    paid(scene, dice.pick(["half", "all", "more"]), ["plain", "insideNamed"], dice.pick([0, 600_000])),
    mined(scene, plan.confirmations + 2),
    // One who pays more than an hour after the end waits for two hourly sweeps.
    ...hoursLater(scene, 3.2)
  ]
}

/** A provider leaves out what comes to an address, until its payment's time is over. */
export const withheld: Story = (scene) => {
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

/** Coin comes for a token: before the payment's end or after it, and before tokens or after them. */
export const coinForToken: Story = (scene) => {
  const { dice, name, plan } = scene
  const currency = dice.pick(plan.currencies.filter((one) => one !== plan.coin))
  const others = plan.tokens.filter((one) => one !== currency)
  const after = dice.pick([0, dice.between(30_000, 50_000)])
  const coin = { ...plain, after, does: "pay", of: name, way: "otherCurrency", part: "all" } as const
  return [
    made(scene, { currency, expiresIn: 15 }),
    ...(dice.chance(0.7) ? [paid(scene, dice.pick(["half", "all"]), ["plain"])] : []),
    ...(dice.chance(0.3) ? [{ ...plain, after: dice.between(0, 3_000), does: "cancel", of: name } as const] : []),
    // One more than there are others: the coin.
    { ...coin, other: others.length },
    ...(dice.chance(0.5) ? [paid(scene, "rest", ["plain"], dice.between(0, 20_000))] : []),
    mined(scene, plan.confirmations + 2, dice.between(0, 6_000)),
    wait(2_000, 20_000, scene)
  ]
}
