import type { Part, Step, Way } from "../steps.ts"
import { given, lie, made, maybeThree, mined, paid, type Scene, type Story, server, wait } from "./scene.ts"

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
export const inventions: Story = (scene) => {
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

/** Also, its final blocks have hashes of no branch: an honest provider looks inconsistent. */
export const falseFinals: Story = (scene) => {
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

/** The provider that denied it no longer responds: only the one that has invented it is left. */
export const deniedThenGone: Story = (scene) => {
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

/** Money comes on another chain than the payment's, whose providers are down or leave it out when the payment ends. */
export const elsewhereDown: Story = (scene) => {
  const { chain, chains, dice, name } = scene
  const others = chains.flatMap((_, place) => (place === chain ? [] : [place]))
  const there = dice.below(others.length)
  const at = { ...scene, chain: others[there] ?? chain }
  const other = [0, 1, 2].map((turn) => there + turn * others.length).find((one) => one % 3 !== 0) ?? there
  const down = (provider: number): Step => ({
    after: 0,
    does: "break",
    chain: at.chain,
    provider,
    kind: dice.pick(["down", "hang"]),
    size: 1,
    seconds: dice.pick([60, 500])
  })
  return [
    made(scene, { expiresIn: 15 }),
    ...(dice.chance(0.5)
      ? [down(0), down(1)]
      : [lie(at, { kind: "hidden", provider: server(scene), seconds: 80, size: dice.below(2), way: "otherChain" })]),
    { after: dice.between(0, 20_000), does: "pay", payment: 0, of: name, way: "otherChain", part: "all", other },
    mined(at, 5, dice.between(0, 8_000)),
    // For longer than a payment waits for another chain.
    wait(300_000, 360_000, scene)
  ]
}

/** A provider of another chain invents money for the payment; the one that denies it there may be gone too. */
export const inventedElsewhere: Story = (scene) => {
  const { chain, chains, dice, plan } = scene
  const others = chains.flatMap((_, place) => (place === chain ? [] : [place]))
  const there = dice.below(others.length)
  const at = { ...scene, chain: others[there] ?? chain }
  // The place of that chain among the others, and of a token: every third one is a coin.
  const size = [0, 1, 2].map((turn) => there + turn * others.length).find((one) => one % 3 !== 0) ?? there
  const provider = server(scene)
  return [
    made(scene, { expiresIn: dice.pick([15, 60]) }),
    wait(0, 4_000, scene),
    ...(dice.chance(0.4) ? [paid(scene, dice.pick(["half", "all"]))] : []),
    lie(at, { kind: "invention", provider, seconds: 500, way: "otherChain", size }),
    mined(at, 5, dice.between(0, 8_000)),
    ...(dice.chance(0.5)
      ? [
          {
            after: 0,
            does: "break",
            chain: at.chain,
            provider: 1 - provider,
            kind: "gone",
            size: 1,
            seconds: 200
          } as const
        ]
      : []),
    mined(scene, plan.confirmations + 6, dice.between(0, 8_000)),
    // For longer than a payment waits for another chain.
    wait(300_000, 360_000, scene)
  ]
}
