import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { bloomOf } from "../../sim/bloom.ts"
import {
  alice,
  around,
  aroundReal,
  readTo,
  reason,
  second,
  upTo,
  usdc,
  watchedPayment,
  withReceipts,
  withTokens
} from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { Announced, ledger, pay, paymentById, until, watch } from "../world.ts"

/** A chain that is read by logs and balances, without full blocks. */
const ofLogs = { ...withTokens, chain: "base" as const }

describe("a reorg", () => {
  it.scoped("that is longer than the block range is one commit", () => {
    const chain = new ModelChain(10)
    const paid = token(usdc, alice, 100n)
    return Effect.gen(function* () {
      const payment = yield* watchedPayment(alice, { currency: "USDC" })
      const announced = yield* Announced
      chain.mine()
      chain.mine(paid)
      yield* readTo(12)
      expect(announced).toEqual(["detecting"])
      // The block range is one block from here on.
      let refused = 0
      chain.intercept = (batch) => {
        chain.failure = undefined
        const logs = batch.find(({ method }) => method === "eth_getLogs")
        const { fromBlock, toBlock } = (logs?.params[0] ?? {}) as { fromBlock?: string; toBlock?: string }
        if (refused >= 7 || fromBlock === toBlock) return
        refused++
        chain.failure = "too_large"
      }
      chain.mineMany(8)
      for (let i = 0; i < 60; i++) yield* second
      expect(refused).toBe(7)
      yield* upTo(20)
      chain.rollback(9)
      chain.mineMany(8)
      chain.mine(paid)
      chain.mine()
      for (let i = 0; i < 5; i++) yield* second
      yield* upTo(21)
      expect((yield* paymentById(payment.id))?.status).toBe("detecting")
      expect(announced).toEqual(["detecting"])
    }).pipe(aroundReal(chain, { ...withTokens, confirmations: 30 }))
  })

  it.scoped("that mines native coin again which only balances show orphans nothing", () => {
    const chain = new ModelChain(10)
    const paid = coin(alice, 100n)
    withReceipts(chain)
    return Effect.gen(function* () {
      const payment = yield* watchedPayment(alice, { chain: "base" })
      const announced = yield* Announced
      chain.mine(paid)
      for (let i = 0; i < 20; i++) yield* second
      yield* upTo(11)
      expect(announced).toEqual(["detecting"])
      chain.rollback(1)
      chain.mine()
      chain.mine(paid)
      yield* second
      yield* upTo(12)
      expect(yield* paymentById(payment.id)).toMatchObject({ status: "detecting", amountReceived: 100n })
      for (let i = 0; i < 20; i++) yield* second
      expect(announced).toEqual(["detecting"])
    }).pipe(aroundReal(chain, { ...ofLogs, confirmations: 30 }))
  })

  it.scoped("that mines native coin again below the head of the payment's creation orphans nothing either", () => {
    const chain = new ModelChain(12)
    const paid = coin(alice, 100n)
    withReceipts(chain)
    return Effect.gen(function* () {
      yield* watch
      yield* upTo(12)
      const payment = yield* pay(alice, { chain: "base" })
      const announced = yield* Announced
      chain.mine(paid)
      yield* Effect.raceFirst(upTo(13), Effect.forever(second))
      yield* Effect.raceFirst(
        until(paymentById(payment.id), (now) => now?.status === "detecting"),
        Effect.forever(second)
      )
      chain.rollback(3)
      chain.mine(paid)
      chain.mineMany(3)
      yield* Effect.raceFirst(upTo(14), Effect.forever(second))
      expect(yield* paymentById(payment.id)).toMatchObject({ status: "detecting", amountReceived: 100n })
      expect(announced).toEqual(["detecting"])
    }).pipe(aroundReal(chain, { ...ofLogs, confirmations: 30 }))
  })

  it.scoped("is not missed while a node behind the load balancer lacks the last block that was read", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { chain: "base", currency: "USDC" })
      chain.mine(token(usdc, alice, 5n))
      yield* readTo(11)
      chain.rollback(1)
      chain.mineMany(3)
      let denied = 0
      chain.distort = ({ method, params }, answer) => {
        if (method !== "eth_getBlockByNumber" || params[0] !== "0xb" || denied > 0) return answer
        denied++
        return null
      }
      for (let i = 0; i < 10; i++) yield* second
      yield* upTo(13)
      expect(denied).toBe(1)
      expect((yield* ledger).map(({ canonical }) => canonical)).toEqual([0])
    }).pipe(around(chain, ofLogs))
  })
})

describe("a block range", () => {
  it.scoped.each([
    ["logs", "base", ofLogs],
    ["full blocks", "ethereum", withTokens]
  ] as const)("of %s that were read from a branch that comes and goes is not stored", ([, chainName, settings]) => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { chain: chainName, currency: "USDC" })
      chain.mine()
      let state = "before"
      chain.intercept = (batch) => {
        if (state === "during") {
          state = "after"
          chain.returnToLastBranch()
        } else if (state === "before" && batch.some(({ method }) => method === "eth_getLogs")) {
          state = "during"
          chain.rollback(1)
          chain.mine(token(usdc, alice, 5n))
        }
      }
      for (let i = 0; i < 5; i++) yield* second
      yield* upTo(12)
      expect(state).toBe("after")
      expect((yield* ledger).filter(({ canonical }) => canonical === 1)).toEqual([])
    }).pipe(around(chain, settings))
  })

  it.scoped("of logs is not stored with a log from a block above it, which may be replaced before it is read", () => {
    const chain = new ModelChain(10)
    chain.intercept = (batch) => {
      const logs = batch.find(({ method }) => method === "eth_getLogs")
      if (logs === undefined || chain.height !== 11) return
      // This node ends every range at its head.
      chain.mine(token(usdc, alice, 5n))
      Object.assign(logs.params[0] as object, { toBlock: "0xc" })
    }
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { chain: "base", currency: "USDC" })
      chain.mine()
      yield* second
      expect(yield* Effect.raceFirst(reason, upTo(11))).toContain("a log of block 12 came for another range")
      chain.rollback(1)
      chain.mineMany(2)
      for (let i = 0; i < 5; i++) yield* second
      yield* upTo(13)
      expect(yield* ledger).toEqual([])
    }).pipe(around(chain, ofLogs))
  })

  it.scoped("of full blocks is not stored with logs of another branch, even without a payment", () => {
    const chain = new ModelChain(10)
    let elsewhere = true
    chain.distort = ({ method }, answer) =>
      method === "eth_getLogs" && elsewhere
        ? (answer as ReadonlyArray<object>).map((log) => ({
            ...log,
            blockHash: `0x${"2".repeat(64)}`,
            data: `0x${"0".repeat(64)}`
          }))
        : answer
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { currency: "USDC" })
      chain.mine(token(usdc, alice, 5n))
      yield* second
      expect(yield* Effect.raceFirst(reason, upTo(11))).toContain("came for a range that does not have it")
      elsewhere = false
      for (let i = 0; i < 5; i++) yield* second
      yield* upTo(11)
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
    }).pipe(around(chain))
  })

  it.scoped("of logs is refused if it lacks logs that its last block's bloom filter shows", () => {
    const chain = new ModelChain(10)
    let forgets = true
    chain.distort = ({ method, params }, answer) => {
      if (method === "eth_getBlockByNumber" && answer !== null) return { ...(answer as object), logsBloom: bloom }
      const isRange = method === "eth_getLogs" && !Object.hasOwn(params[0] as object, "blockHash")
      return isRange && forgets ? [] : answer
    }
    const bloom = bloomOf([usdc, transferTopic, `0x${alice.slice(2).toLowerCase().padStart(64, "0")}`])
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { chain: "base", currency: "USDC" })
      chain.mine(token(usdc, alice, 5n))
      yield* second
      expect(yield* Effect.raceFirst(reason, upTo(11))).toContain("the logs of block 11 were left out")
      forgets = false
      for (let i = 0; i < 5; i++) yield* second
      yield* upTo(11)
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
    }).pipe(around(chain, ofLogs))
  })
})

it.scoped("the stored block at a payment's deadline is of the branch that was read", () => {
  const chain = new ModelChain(10)
  return Effect.gen(function* () {
    yield* watchedPayment(alice, { chain: "base", currency: "USDC" })
    // The payment's deadline and grace period end at the time of block 366.
    chain.mineMany(370)
    let replaced = false
    chain.intercept = (batch) => {
      const [first, last] = batch.map(({ params: [number] }) => number)
      if (replaced || batch.length !== 2 || first !== "0x17a" || last !== "0x17c") return
      replaced = true
      chain.rollback(3)
      chain.mine(token(usdc, alice, 5n))
      chain.mineMany(3)
    }
    for (let i = 0; i < 10; i++) yield* second
    yield* upTo(381)
    expect(replaced).toBe(true)
    expect((yield* ledger).map(({ block_number, canonical }) => [block_number, canonical])).toEqual([[378, 1]])
  }).pipe(around(chain, ofLogs))
})
