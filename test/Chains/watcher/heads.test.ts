import { expect, it } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import { Heads } from "../../../src/Chains/providers/Heads.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { headerOf } from "../../sim/shapes.ts"
import { alice, health, second, upTo, watchedPayment, withTwo } from "../around.ts"
import { coin, ModelChain } from "../ModelChain.ts"
import { committedTo, ledger, pass, pay, scanned, until, watch } from "../world.ts"
import { onChain, onTwo } from "./onChain.ts"

// Wrong heads that a serving provider can report.

const tenSeconds = { ...withTwo, pollInterval: Duration.seconds(10) }
const minutes = (count: number, work: () => void) =>
  Effect.repeatN(
    Effect.suspend(() => {
      work()
      return pass("10 seconds")
    }),
    6 * count - 1
  )

onTwo(
  "a serving provider's head costs one call a minute of another one, and none while its newest block is recent",
  { ...tenSeconds, balanceInterval: Duration.hours(1) },
  function* (slow, other) {
    // The looks that each standby gets ask for its chain too.
    const compared = () => other.batches.filter((calls) => calls.every(({ method }) => method !== "eth_chainId"))
    const heads = () =>
      compared()
        .flat()
        .filter(({ params: [tag] }) => tag === "latest").length
    yield* pass("100 seconds")
    yield* watchedPayment(alice)
    const before = heads()
    yield* minutes(5, () => void slow.mine())
    expect(heads() - before).toBe(0)
    // The chain itself is late: no provider is ahead.
    yield* pass("5 minutes")
    const late = heads()
    yield* minutes(10, () => void slow.mine())
    expect(heads() - late).toBeLessThanOrEqual(11)
    expect(heads() - late).toBeGreaterThanOrEqual(9)
  }
)

clockTest(
  "a head that a provider raises step by step, each below the checked difference, is not believed",
  function* () {
    const other = new ModelChain(10)
    const { provider, providers } = someProviders(other.client, other.client)
    const heads = new Heads(providers, 3)
    const blockAt = (number: number) => ({ number, hash: `0x${number}`, time: number })
    const check = (number: number, after: number) =>
      Effect.either(heads.checkPlausible(provider, blockAt(number), blockAt(after)))
    expect((yield* check(910, 10))._tag).toBe("Right")
    expect(yield* check(1_810, 910)).toMatchObject({ _tag: "Left", left: { reason: "inconsistent" } })
    // If the chain really moves, another provider's head moves too.
    other.mineMany(1_500)
    expect((yield* check(1_810, 910))._tag).toBe("Right")
    expect((yield* check(2_700, 1_810))._tag).toBe("Right")
    expect((yield* check(2_900, 2_700))._tag).toBe("Left")
  }
)

it.effect.each([
  ["recent", 0, "Left"],
  ["older than two minutes", 121_000, "Right"]
] as const)("another provider's head that is %s, far below, is evidence or not: %s ms later", ([, later, verdict]) =>
  Effect.gen(function* () {
    const [own, other] = [new ModelChain(2_000), new ModelChain(10)]
    const { provider, providers } = someProviders(own.client, other.client)
    yield* TestClock.setTime((other.blocks.at(-1)?.time ?? 0) * 1000 + later)
    const head = own.blocks.at(-1)
    if (head === undefined) return expect.unreachable()
    const checked = new Heads(providers, 3).checkPlausible(provider, head, { number: 10, hash: "", time: 0 })
    expect((yield* Effect.either(checked))._tag).toBe(verdict)
  })
)

/** A node whose head is that block. */
const headedBy = (number: number, time: number) => {
  const chain = new ModelChain(0)
  chain.distort = ({ method }, answer) =>
    method === "eth_getBlockByNumber" ? { ...(answer as object), ...blockOf(number, time) } : answer
  return chain.client
}
const blockOf = (number: number, time: number) => ({
  number: `0x${number.toString(16)}`,
  timestamp: `0x${time.toString(16)}`
})

it.effect.each([
  ["lower and later too", true, 90, 2_000],
  ["higher and later", false, 110, 2_000],
  ["of the same number and later", false, 100, 2_000],
  ["lower and earlier", false, 90, 900]
] as const)(
  "a last block above a provider's later head is invented or not: another one's head is %s: %s",
  ([, isUnknown, number, time]) =>
    Effect.gen(function* () {
      const { provider, providers } = someProviders(headedBy(95, 1_900), headedBy(number, time))
      const last = { number: 100, hash: "0x1", time: 1_000 }
      const head = { number: 95, hash: "0x2", time: 1_900 }
      expect(yield* new Heads(providers, 3).areBelow(provider, head, last)).toBe(isUnknown)
    })
)

onTwo("a new chain does not start at a head far above another provider's", function* (liar) {
  const hashOf = (number: number) => `0x${number.toString(16).padStart(64, "e")}`
  liar.distort = ({ method, params: [of] }, answer) => {
    const number = of === "latest" ? 1_000_010 : Number(of)
    if (method !== "eth_getBlockByNumber" || !(number > 10)) return answer
    return headerOf({ number, hash: hashOf(number), time: 130 }, hashOf(number - 1))
  }
  yield* watch
  yield* until(scanned, (scan) => scan !== undefined)
  expect((yield* scanned)?.head_number).toBeLessThanOrEqual(liar.height)
  expect((yield* health)?.providers[0]).toMatchObject({ healthy: false })
})

onChain("a single head far above the chain's does not make all later heads lag behind it", function* (chain) {
  let heads = 0
  chain.distort = ({ method, params: [tag] }, answer) =>
    // Reading starts from the first head.
    method === "eth_getBlockByNumber" && tag === "latest" && ++heads === 3
      ? { ...(answer as object), number: "0x3b9aca00" }
      : answer
  yield* watch
  yield* committedTo(10)
  yield* Effect.repeatN(second, 69)
  yield* pay(alice)
  chain.mine(coin(alice, 5n))
  chain.mineMany(5)
  yield* Effect.raceFirst(upTo(16), Effect.forever(second))
  expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
})
