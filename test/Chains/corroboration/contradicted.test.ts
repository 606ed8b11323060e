import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { address, alice, aroundSomeReal, health, second, usdc, withTokens } from "../around.ts"
import { stateOf, watchedUsdc } from "../lying.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { pass, pay } from "../world.ts"

// The serving provider invents receipts in each block.

const bob = address(0xb0b)
const word = (value: number) => `0x${value.toString(16).padStart(64, "0")}`
const inventedHash = (block: number, i: number) => `0x${"f".repeat(32)}${word(block * 1000 + i).slice(34)}`

/** A log of an invented transfer of 5 to alice. */
const logOf = (chain: ModelChain, block: number, i: number) => ({
  address: usdc,
  topics: [transferTopic, word(0), `0x${alice.slice(2).toLowerCase().padStart(64, "0")}`],
  data: word(5),
  blockNumber: `0x${block.toString(16)}`,
  blockHash: chain.blocks[block]?.hash,
  transactionHash: inventedHash(block, i),
  logIndex: `0x${(700 + i).toString(16)}`,
  removed: false
})

/** The node invents transfers in each block above 10. `owns`: it also has them when it is asked about them again. */
const inventing = (chain: ModelChain, perBlock: number, owns: boolean) => {
  chain.distort = ({ method, params: [of] }, answer) => {
    if (method === "eth_getTransactionReceipt" && owns && String(of).startsWith(`0x${"f".repeat(32)}`)) {
      const place = Number(`0x${String(of).slice(34)}`)
      const log = logOf(chain, Math.floor(place / 1000), place % 1000)
      return { transactionHash: of, blockHash: log.blockHash, status: "0x1", logs: [log] }
    }
    if (method !== "eth_getLogs") return answer
    const { fromBlock, toBlock } = of as { fromBlock: string; toBlock: string }
    const found = [...(answer as ReadonlyArray<unknown>)]
    for (let block = Math.max(11, Number(fromBlock)); block <= Math.min(chain.height, Number(toBlock)); block++) {
      for (let i = 0; i < perBlock; i++) found.push(logOf(chain, block, i))
    }
    return found
  }
}

const mineOn = (chain: ModelChain, count: number) =>
  Effect.repeatN(
    Effect.suspend(() => {
      chain.mine()
      return second
    }),
    count - 1
  )

describe("three providers, of which the serving one invents receipts in every block", () => {
  it.scoped.each<[number, boolean]>([
    [1, true],
    [1, false],
    [200, true]
  ])("%d in each, confirmed by it later: %s. It stops serving, and the payment ends", ([perBlock, owns]) => {
    const liar = new ModelChain(10)
    // The reporting provider is identified by its host.
    Object.assign(liar.client, { host: "liar" })
    inventing(liar, perBlock, owns)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      yield* mineOn(liar, 20)
      expect((yield* health)?.providers).toMatchObject([{ healthy: false }, { healthy: true }, { healthy: true }])
      expect((yield* health)?.providers[0]?.reason).toContain("contradicted")
      for (let i = 0; i < 40; i++) {
        liar.mineMany(9)
        yield* mineOn(liar, 1)
      }
      yield* mineOn(liar, 60)
      expect(yield* stateOf(id)).toBe("expired")
    }).pipe(aroundSomeReal([liar, liar.twin(), liar.twin()]))
  })
})

describe("two providers, of which the serving one invents receipts in every block", () => {
  it.scoped("it stops serving once the other one has denied three of them, and other payments confirm", () => {
    const liar = new ModelChain(10)
    const honest = liar.twin()
    inventing(liar, 1, true)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      const other = yield* pay(bob, { currency: "USDC", amount: 7n })
      yield* mineOn(liar, 4)
      expect((yield* health)?.providers).toMatchObject([{ healthy: true }, { healthy: true }])
      yield* mineOn(liar, 6)
      expect((yield* health)?.providers).toMatchObject([{ healthy: false }, { healthy: true }])
      expect((yield* health)?.providers[0]?.reason).toContain("contradicted")
      liar.mine(token(usdc, bob, 7n))
      yield* mineOn(liar, 20)
      expect(yield* stateOf(other.id)).toBe("confirmed 7")
      // No third provider can decide which of the two lies.
      expect((yield* stateOf(id)).split(" ")[0]).toBe("detecting")
    }).pipe(aroundSomeReal([liar, honest]))
  })

  it.scoped("it decides nothing when it is the only one left, however long, and health names it", () => {
    const liar = new ModelChain(10)
    const honest = liar.twin()
    inventing(liar, 1, true)
    return Effect.gen(function* () {
      yield* watchedUsdc()
      const other = yield* pay(bob, { currency: "USDC", amount: 7n })
      yield* mineOn(liar, 10)
      honest.failure = "unreachable"
      liar.mine(token(usdc, bob, 7n))
      liar.mineMany(500)
      yield* pass("12 minutes")
      expect(yield* stateOf(other.id)).toBe("pending")
      expect(yield* health).toMatchObject({ ready: false, head: 20 })
      expect((yield* health)?.reason).toMatch(/contradicted|unreachable/)
      expect((yield* health)?.providers).toMatchObject([{ healthy: false }, { healthy: false }])
      honest.failure = undefined
      yield* pass("2 minutes")
      expect((yield* stateOf(other.id)).split(" ")[0]).toBe("confirmed")
    }).pipe(aroundSomeReal([liar, honest], { ...withTokens, pollInterval: Duration.seconds(1) }))
  })
})

it.scoped("health reports at once what the other of two providers denies, and the chain stays ready", () => {
  const liar = new ModelChain(10)
  inventing(liar, 1, true)
  Object.assign(liar.client, { host: "liar" })
  const honest = liar.twin()
  Object.assign(honest.client, { host: "honest" })
  return Effect.gen(function* () {
    yield* watchedUsdc()
    yield* mineOn(liar, 2)
    expect(yield* health).not.toHaveProperty("reason")
    yield* mineOn(liar, 1)
    expect(yield* health).toMatchObject({
      ready: true,
      reason: expect.stringMatching(
        /^honest denies receipts .* such as 0x\w{64} of pay_.* tilld payments show names them/
      )
    })
  }).pipe(aroundSomeReal([liar, honest]))
})
