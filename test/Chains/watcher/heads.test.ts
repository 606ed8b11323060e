import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { Heads } from "../../../src/Chains/providers/Heads.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import {
  address,
  alice,
  aroundSomeReal,
  health,
  second,
  upTo,
  usdc,
  watchedPayment,
  withTokens,
  withTwo
} from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { committedTo, ledger, pass, pay, paymentById, scanned, until, watch } from "../world.ts"
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

describe("a serving provider whose head moves at half the pace of the chain", () => {
  onTwo("goes into cooldown at a lag of two minutes and twice the confirmations", tenSeconds, function* (slow) {
    // The block time is 10 seconds, and the newest block is current.
    yield* pass("100 seconds")
    yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
    let tick = 0
    const mine = () => {
      slow.mine()
      if (tick++ % 2 === 0) slow.behind++
    }
    yield* minutes(3, mine)
    expect((yield* health)?.providers).toMatchObject([{ healthy: true }, { healthy: true }])
    expect((yield* scanned)?.head_number).toBe(19)
    yield* minutes(3, mine)
    expect((yield* scanned)?.head_number).toBe(slow.height)
    yield* minutes(2, mine)
    expect((yield* scanned)?.head_number).toBe(slow.height)
  })

  onTwo(
    "costs one call a minute, and none while its newest block is recent",
    { ...tenSeconds, balanceInterval: Duration.hours(1) },
    function* (slow, other) {
      const heads = () => other.batches.flat().filter(({ params: [tag] }) => tag === "latest").length
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
})

/** Empty blocks that a node invents above its chain's block `real()`, up to block `top()`, while `isOn()`. */
interface Invention {
  readonly real: () => number
  readonly top: () => number
  /** The time of a block, Unix seconds. */
  readonly timeOf: (number: number) => number
  readonly isOn: () => boolean
}

const inventing = (chain: ModelChain, { isOn, real, timeOf, top }: Invention) => {
  chain.distort = ({ method, params: [of] }, answer) => {
    if (!isOn()) return answer
    if (method === "eth_getLogs") return []
    const number = of === "latest" ? top() : Number(of)
    if (method !== "eth_getBlockByNumber" || !(number > real())) return answer
    const hashOf = (height: number) => `0x${height.toString(16).padStart(64, "e")}`
    return {
      number: `0x${number.toString(16)}`,
      hash: hashOf(number),
      parentHash: number === real() + 1 ? chain.blocks[real()]?.hash : hashOf(number - 1),
      timestamp: `0x${timeOf(number).toString(16)}`,
      transactions: []
    }
  }
}

/** The node reports a head this many blocks above the chain's, once that has some height. */
const farAbove = (chain: ModelChain, blocks: number, from: number) =>
  inventing(chain, {
    real: () => chain.height,
    top: () => chain.height + blocks,
    timeOf: () => 130,
    isOn: () => chain.height >= from
  })

it.scoped(
  "a head that a provider reports 10,000 blocks above the chain's while an address is watched is not read",
  () => {
    const liar = new ModelChain(10)
    farAbove(liar, 10_000, 12)
    return Effect.gen(function* () {
      const { id } = yield* watchedPayment(alice, { chain: "base", currency: "USDC", amount: 5n })
      liar.mine()
      yield* second
      liar.mine(token(usdc, alice, 5n))
      for (let i = 0; i < 20; i++) {
        yield* second
        liar.mine()
      }
      yield* pass("5 minutes")
      expect((yield* scanned)?.head_number).toBe(liar.height)
      expect(yield* paymentById(id)).toMatchObject({ status: "confirmed", amountReceived: 5n })
    }).pipe(aroundSomeReal([liar, liar.twin()], { ...withTokens, chain: "base" }))
  }
)

it.effect("a head that a provider raises step by step, each below the checked difference, is not believed", () =>
  Effect.gen(function* () {
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
  })
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
  farAbove(liar, 1_000_000, 0)
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

// A head too high by fewer blocks than are checked with another provider is read: it only delays payments.

const bob = address(0xb0b)
const patient = { ...withTokens, pollInterval: Duration.seconds(10) }
const tolerance = { clockTolerance: Duration.minutes(15) }
const start = 100

/** The node's invented blocks are dated up to 14 minutes ahead. */
const justAbove = (chain: ModelChain, blocks: number, isOn: () => boolean) =>
  inventing(chain, {
    real: () => start,
    top: () => start + blocks,
    timeOf: (number) => start * 10 + Math.floor(((number - start) * 840) / blocks),
    isOn
  })

const inUsdc = { currency: "USDC", amount: 5n, expiresIn: 600_000 } as const

it.scoped.each<["goes away" | "is right again" | "goes on", number, number]>([
  ["goes away", 2, 200],
  ["is right again", 2, 900],
  ["goes on", 3, 900]
])(
  "a provider that invents empty blocks and then %s, one of %s, ends no payment, and money paid meanwhile counts",
  ([what, count, blocks]) => {
    const liar = new ModelChain(start)
    const nodes = [liar, ...Array.from({ length: count - 1 }, () => liar.twin())]
    let isOver = false
    justAbove(liar, blocks, () => !isOver)
    return Effect.gen(function* () {
      yield* TestClock.setTime(start * 10_000)
      yield* Effect.forkScoped((yield* Settlement).expire)
      const before = yield* pay(alice, inUsdc)
      yield* watch
      yield* committedTo(start + blocks)
      const behind = yield* pay(bob, inUsdc)
      liar.mine(token(usdc, alice, 5n))
      liar.mine(token(usdc, bob, 5n))
      if (what === "goes away") liar.failure = "unreachable"
      isOver = what === "is right again"
      const statuses = Effect.forEach([before, behind], ({ id }) => Effect.map(paymentById(id), (one) => one?.status))
      const seen = new Set<string | undefined>()
      for (let i = 0; i < 130; i++) {
        yield* pass("10 seconds")
        liar.mine()
        for (const status of yield* statuses) seen.add(status)
      }
      // The only provider left shows the real blocks only once the chain has reached the invented height.
      if (seen.size === 1) {
        liar.mineMany(100)
        yield* pass("1500 seconds")
        for (const status of yield* statuses) seen.add(status)
      }
      expect(yield* statuses).toEqual(["confirmed", "confirmed"])
      expect([...seen].sort()).toEqual(["confirmed", "pending"])
    }).pipe(aroundSomeReal(nodes, patient, tolerance))
  }
)

it.scoped("a serving provider that keeps inventing empty blocks, one of two, is reported, and ends no payment", () => {
  const liar = new ModelChain(start)
  justAbove(liar, 900, () => true)
  return Effect.gen(function* () {
    yield* TestClock.setTime(start * 10_000)
    yield* Effect.forkScoped((yield* Settlement).expire)
    const { id } = yield* pay(alice, inUsdc)
    yield* watch
    yield* committedTo(start + 900)
    for (let i = 0; i < 130; i++) {
      yield* pass("10 seconds")
      liar.mine()
    }
    expect((yield* paymentById(id))?.status).toBe("pending")
    expect((yield* health)?.reason).toContain("disagree about the deep block")
  }).pipe(aroundSomeReal([liar, liar.twin()], patient, tolerance))
})
