import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { PaymentId } from "../../../src/Domain/Ids.ts"
import { alice, aroundSomeReal, health, second, usdc, withTokens } from "../around.ts"
import { watchedUsdc } from "../lying.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { pass, pay, paymentById } from "../world.ts"

// Issue 14 row 7: a single provider does not determine time and depth.

const strict = { clockTolerance: Duration.minutes(15) }
const inUsdc = { currency: "USDC", amount: 5n } as const
const statusOf = (id: PaymentId) => Effect.map(paymentById(id), (payment) => payment?.status)

/** The node dates every block above the tenth this many seconds ahead. */
const dating = (chain: ModelChain, ahead: number) => {
  chain.distort = ({ method }, answer) => {
    const block = answer as { number: string; timestamp: string } | null
    if (method !== "eth_getBlockByNumber" || block === null || Number(block.number) <= 10) return answer
    return { ...block, timestamp: `0x${(Number(block.timestamp) + ahead).toString(16)}` }
  }
}

const day = 86_400

describe("block times a day ahead", () => {
  it.scoped.each<[string, number]>([
    ["a chain's only provider", 1],
    ["the serving one of two", 2],
    ["the serving one of three", 3]
  ])("of %s end no payment", ([, providers]) => {
    const liar = new ModelChain(10)
    dating(liar, day)
    const nodes = [liar, ...Array.from({ length: providers - 1 }, () => liar.twin())]
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      for (let i = 0; i < 60; i++) {
        liar.mine()
        yield* second
      }
      expect(yield* statusOf(id)).toBe("pending")
      // The chain is read from another provider, or not at all without one; the reason names both possible causes.
      const now = yield* health
      expect(now?.ready).toBe(providers > 1)
      if (providers > 1) expect(now?.head).toBeGreaterThan(60)
      else expect(now?.reason).toMatch(/ahead of this machine's clock: one of the two is wrong. Remedy: let chrony/)
    }).pipe(aroundSomeReal(nodes, withTokens, strict))
  })

  it.scoped("of every provider show that this machine's clock is behind: payments confirm, and do not end", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    for (const node of [first, other]) dating(node, day)
    return Effect.gen(function* () {
      const unpaid = yield* watchedUsdc()
      first.mine(token(usdc, alice, 5n))
      first.mineMany(3)
      for (let i = 0; i < 5; i++) yield* second
      expect((yield* health)?.reason).toMatch(/this machine's clock is .* behind the chain's: payments do not end/)
      for (let i = 0; i < 20; i++) {
        first.mine()
        yield* second
      }
      // Made before the clock was known to be wrong: its money is late by the chain's time, and the payment does not end by it.
      expect(yield* statusOf(unpaid.id)).toBe("pending")
    }).pipe(aroundSomeReal([first, other], withTokens, strict))
  })

  it.scoped("before which a payment was made count for its time: it is paid in time, and confirmed", () => {
    const chain = new ModelChain(10)
    const other = chain.twin()
    for (const node of [chain, other]) dating(node, day)
    return Effect.gen(function* () {
      yield* watchedUsdc()
      chain.mineMany(3)
      for (let i = 0; i < 5; i++) yield* second
      const bob = "0x00000000000000000000000000000000000B0b01"
      const late = yield* pay(bob, inUsdc)
      chain.mine(token(usdc, bob, 5n))
      chain.mineMany(3)
      for (let i = 0; i < 5; i++) yield* second
      expect(yield* statusOf(late.id)).toBe("confirmed")
    }).pipe(aroundSomeReal([chain, other], withTokens, strict))
  })
})

describe("depth", () => {
  it.scoped("is measured from the lower of two heads: twenty blocks that one provider claims confirm nothing", () => {
    const liar = new ModelChain(10)
    return Effect.gen(function* () {
      const honest = new ModelChain(-1, [...liar.blocks])
      yield* Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        const paid = liar.mine(token(usdc, alice, 5n))
        honest.blocks.push(paid)
        liar.mineMany(20)
        for (let i = 0; i < 20; i++) yield* second
        expect(yield* statusOf(id)).toBe("detecting")
        honest.blocks.push(...liar.blocks.slice(12, 14))
        for (let i = 0; i < 60; i++) yield* second
        expect(yield* statusOf(id)).toBe("confirmed")
      }).pipe(aroundSomeReal([liar, honest]))
    })
  })

  it.scoped("is measured from the lower of two heads: no payment ends by blocks that one provider claims", () => {
    const liar = new ModelChain(10)
    const honest = new ModelChain(-1, [...liar.blocks])
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      for (let i = 0; i < 60; i++) {
        // Its time, and its grace, end with block 376: the chain is 100 s ahead of the clock.
        for (let k = 0; k < 10 && liar.height < 377; k++) honest.blocks.push(liar.mine())
        yield* second
      }
      liar.mineMany(2)
      for (let i = 0; i < 60; i++) yield* second
      expect(yield* statusOf(id)).toBe("pending")
      honest.blocks.push(...liar.blocks.slice(378))
      for (let i = 0; i < 20; i++) yield* second
      expect(yield* statusOf(id)).toBe("expired")
    }).pipe(aroundSomeReal([liar, honest]))
  })

  it.scoped("is waited for, however long another provider that follows the chain lags", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      for (let i = 0; i < 32; i++) {
        first.mineMany(10)
        yield* second
      }
      yield* pass("61 minutes")
      // Its time, and its grace, end with block 376.
      other.behind = 60
      first.mineMany(60)
      for (let i = 0; i < 40; i++) {
        // It also fails now and then: ten minutes between the first and the last failure are no silence of ten minutes.
        other.failure = i % 4 === 3 ? "unreachable" : undefined
        first.mine()
        yield* pass("30 seconds")
      }
      other.failure = undefined
      expect(yield* statusOf(id)).toBe("pending")
      other.behind = 0
      for (let i = 0; i < 4; i++) yield* pass("30 seconds")
      expect(yield* statusOf(id)).toBe("expired")
    }).pipe(aroundSomeReal([first, other], { ...withTokens, pollInterval: Duration.seconds(30) }))
  })

  it.scoped(
    "is counted for each provider: a third one that has the block without its confirmations does not complete the quorum",
    () => {
      const first = new ModelChain(10)
      const nodes = [first, first.twin(), first.twin()] as const
      const [, failing, behind] = nodes
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        while (first.height < 370) {
          first.mineMany(10)
          yield* second
        }
        failing.intercept = (batch) => {
          failing.failure = batch.some(({ method }) => method === "eth_getLogs") ? "timeout" : undefined
        }
        behind.behind = 2
        // The payment's time ends with the last but two of these blocks, which the lagging provider does not confirm yet.
        first.mineMany(9)
        for (let i = 0; i < 10; i++) yield* second
        expect(yield* statusOf(id)).toBe("pending")
        behind.behind = 0
        for (let i = 0; i < 20; i++) yield* second
        expect(yield* statusOf(id)).toBe("expired")
      }).pipe(aroundSomeReal(nodes))
    }
  )

  it.scoped("a tag that a policy requires counts at the lower of two: one provider's tag does not confirm", () => {
    const liar = new ModelChain(10)
    const honest = liar.twin()
    const policies = [{ aboveUsd: "0", require: "finalized" as const }]
    honest.finalized = 8
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      liar.mine(token(usdc, alice, 5n))
      liar.mineMany(5)
      liar.finalized = 16
      for (let i = 0; i < 60; i++) yield* second
      expect(yield* statusOf(id)).toBe("detecting")
      honest.finalized = 11
      for (let i = 0; i < 20; i++) yield* second
      liar.mine()
      for (let i = 0; i < 5; i++) yield* second
      expect(yield* statusOf(id)).toBe("confirmed")
    }).pipe(aroundSomeReal([liar, honest], { ...withTokens, policies }))
  })

  it.scoped("a tag of a sole provider counts after payments.sole_provider_patience", () => {
    const liar = new ModelChain(10)
    const honest = liar.twin()
    const policies = [{ aboveUsd: "0", require: "finalized" as const }]
    liar.finalized = 16
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      honest.failure = "unreachable"
      liar.mine(token(usdc, alice, 5n))
      liar.mineMany(5)
      yield* pass("9 minutes")
      expect(yield* statusOf(id)).toBe("detecting")
      yield* pass("3 minutes")
      // A payment that a tag makes final is confirmed with the next block.
      liar.mine()
      yield* second
      expect(yield* statusOf(id)).toBe("confirmed")
    }).pipe(aroundSomeReal([liar, honest], { ...withTokens, policies }))
  })
})
