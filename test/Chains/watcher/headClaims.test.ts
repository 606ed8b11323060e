import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { ImplausibleHeads } from "../../../src/Chains/providers/ImplausibleHeads.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import {
  alice,
  aroundSomeReal,
  aroundTwo,
  health,
  second,
  usdc,
  watchedPayment,
  withTokens,
  withTwo
} from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { ledger, pass, paymentById, scanned, until, watch } from "../world.ts"

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
  it.scoped("goes into cooldown once it lags by more than two minutes and twice the confirmations", () => {
    const slow = new ModelChain(10)
    const other = slow.twin()
    return Effect.gen(function* () {
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
    }).pipe(aroundTwo(slow, other, tenSeconds))
  })

  it.scoped("continues serving while its newest block is recent, whatever head the other one reports", () => {
    const first = new ModelChain(10)
    const liar = first.twin()
    liar.distort = ({ method, params: [tag] }, answer) =>
      method === "eth_getBlockByNumber" && tag === "latest"
        ? { ...(answer as object), number: `0x${(first.height + 50).toString(16)}`, timestamp: "0xfff" }
        : answer
    return Effect.gen(function* () {
      yield* pass("100 seconds")
      yield* watchedPayment(alice)
      yield* minutes(5, () => void first.mine())
      expect(yield* health).toMatchObject({ head: first.height, providers: [{ healthy: true }, {}] })
    }).pipe(aroundTwo(first, liar, tenSeconds))
  })

  it.scoped("costs a call a minute to the other provider, and none while its newest block is recent", () => {
    const slow = new ModelChain(10)
    const other = slow.twin()
    const heads = () => other.batches.flat().filter(({ params: [tag] }) => tag === "latest").length
    return Effect.gen(function* () {
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
    }).pipe(aroundTwo(slow, other, { ...tenSeconds, balanceInterval: Duration.hours(1) }))
  })
})

/** The node reports a head this many blocks above the chain's, with invented headers, from a certain height on. */
const claiming = (chain: ModelChain, ahead: number, from = 12) => {
  chain.distort = ({ method, params: [of] }, answer) => {
    if (chain.height < from) return answer
    if (method === "eth_getLogs") return []
    const number = of === "latest" ? chain.height + ahead : Number(of)
    if (method !== "eth_getBlockByNumber" || !(number > chain.height)) return answer
    const hash = `0x${number.toString(16).padStart(64, "e")}`
    const parentHash = `0x${(number - 1).toString(16).padStart(64, "e")}`
    return { number: `0x${number.toString(16)}`, hash, parentHash, timestamp: "0x82", transactions: [] }
  }
}

it.scoped(
  "a head that a provider reports 10,000 blocks above the chain's while an address is watched is not read",
  () => {
    const liar = new ModelChain(10)
    claiming(liar, 10_000)
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
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
      expect((yield* paymentById(id))?.status).toBe("confirmed")
    }).pipe(aroundSomeReal([liar, liar.twin()], { ...withTokens, chain: "base" }))
  }
)

it.effect("a head that a provider raises step by step, each below the checked difference, is not believed", () =>
  Effect.gen(function* () {
    const other = new ModelChain(10)
    const { provider, providers } = someProviders(other.client, other.client)
    const farAhead = new ImplausibleHeads(providers)
    const blockAt = (number: number) => ({ number, hash: `0x${number}`, time: number })
    const check = (number: number, after: number) =>
      Effect.either(farAhead.check(provider, blockAt(number), blockAt(after)))
    expect((yield* check(910, 10))._tag).toBe("Right")
    expect(yield* check(1_810, 910)).toMatchObject({ _tag: "Left", left: { reason: "inconsistent" } })
    // If the chain really moves, another provider's head moves too.
    other.mineMany(1_500)
    expect((yield* check(1_810, 910))._tag).toBe("Right")
    expect((yield* check(2_700, 1_810))._tag).toBe("Right")
    expect((yield* check(2_900, 2_700))._tag).toBe("Left")
  })
)

it.scoped("a new chain does not start at a head far above another provider's", () => {
  const liar = new ModelChain(10)
  claiming(liar, 1_000_000, 0)
  return Effect.gen(function* () {
    yield* watch
    yield* until(scanned, (scan) => scan !== undefined)
    expect((yield* scanned)?.head_number).toBeLessThanOrEqual(liar.height)
    expect((yield* health)?.providers[0]).toMatchObject({ healthy: false })
  }).pipe(aroundTwo(liar, liar.twin()))
})
