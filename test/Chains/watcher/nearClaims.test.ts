import { expect, it } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { address, alice, aroundSomeReal, health, usdc, withTokens } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { committedTo, pass, pay, paymentById, watch } from "../world.ts"

// A head too high by fewer blocks than are checked with another provider is read: it only delays payments.

const bob = address(0xb0b)
const patient = { ...withTokens, pollInterval: Duration.seconds(10) }
const tolerance = { clockTolerance: Duration.minutes(15) }
const start = 100

/** Until `isOver`, the node invents this many empty blocks above its chain, dated up to 14 minutes ahead. */
const claiming = (chain: ModelChain, blocks: number, isOver: () => boolean) => {
  const real = start
  const top = real + blocks
  chain.distort = ({ method, params: [of] }, answer) => {
    if (isOver()) return answer
    if (method === "eth_getLogs") return []
    const number = of === "latest" ? top : Number(of)
    if (method !== "eth_getBlockByNumber" || !(number > real)) return answer
    const hash = `0x${number.toString(16).padStart(64, "e")}`
    const parentHash =
      number === real + 1 ? chain.blocks[real]?.hash : `0x${(number - 1).toString(16).padStart(64, "e")}`
    const time = real * 10 + Math.floor(((number - real) * 840) / blocks)
    return {
      number: `0x${number.toString(16)}`,
      hash,
      parentHash,
      timestamp: `0x${time.toString(16)}`,
      transactions: []
    }
  }
}

const inUsdc = { currency: "USDC", amount: 5n, expiresIn: 600_000 } as const

it.scoped.each<["goes away" | "is right again" | "goes on", number, number]>([
  ["goes away", 2, 200],
  ["goes away", 3, 900],
  ["is right again", 2, 900],
  ["is right again", 3, 900],
  ["goes on", 3, 900]
])(
  "a provider that invents empty blocks and then %s, one of %s, ends no payment, and money paid meanwhile counts",
  ([what, count, blocks]) => {
    const liar = new ModelChain(start)
    const nodes = [liar, ...Array.from({ length: count - 1 }, () => liar.twin())]
    let isOver = false
    claiming(liar, blocks, () => isOver)
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
  claiming(liar, 900, () => false)
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
    expect((yield* health)?.reason).toContain("disagree about the final block")
  }).pipe(aroundSomeReal([liar, liar.twin()], patient, tolerance))
})
