import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { Reader } from "../../../src/Sql.ts"
import { alice, aroundSomeReal, second, usdc, watchedPayment, withReceipts, withTokens } from "../around.ts"
import { stateOf, untilOver, watchedUsdc } from "../lying.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { pass } from "../world.ts"

// One provider lies and the others are honest: the payment ends by what the honest ones have.

const seconds = (count: number) => Effect.repeatN(second, count - 1)

/** For tests that wait for longer than an hour: a tick each second would be most of what they do. */
const polledRarely = { ...withTokens, pollInterval: Duration.seconds(10) }

/** A copy of a chain at another node, which mines a branch of its own from here on. */
const forkOf = (chain: ModelChain) => {
  const fork = new ModelChain(-1, [...chain.blocks])
  fork.rollback(0)
  return fork
}

/** Repeats `count` times: mines a block on each chain, and lets a second pass. */
const mineOn = (chains: ReadonlyArray<ModelChain>, count: number) =>
  Effect.repeatN(
    Effect.suspend(() => {
      for (const chain of chains) chain.mine()
      return second
    }),
    count - 1
  )

/** The node reports a false time for the block. */
const misdating = (chain: ModelChain, block: number, time: number) => {
  chain.distort = ({ method, params: [of] }, answer) =>
    method === "eth_getBlockByNumber" && of === `0x${block.toString(16)}` && answer !== null
      ? { ...(answer as object), timestamp: `0x${time.toString(16)}` }
      : answer
}

describe("block times", () => {
  it.scoped.each([2, 3])("with %d providers, a false block time of one does not make its money be in time", (count) => {
    const liar = new ModelChain(10)
    misdating(liar, 11, 100_000)
    const nodes = [liar, ...Array.from({ length: count - 1 }, () => liar.twin())]
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      liar.mine(token(usdc, alice, 5n))
      yield* mineOn([liar], count === 2 ? 400 : 20)
      yield* seconds(60)
      expect(yield* stateOf(id)).toBe(count === 2 ? "pending" : "confirmed 5")
    }).pipe(aroundSomeReal(nodes))
  })
})

describe("silence", () => {
  it.scoped.each([2, 3])(
    "with %d providers, blocks that the liar read are not searched by it alone before a payment ends",
    (count) => {
      const liar = new ModelChain(10)
      liar.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
      const nodes = [liar, ...Array.from({ length: count - 1 }, () => liar.twin())]
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        yield* mineOn([liar], 350)
        liar.mine()
        liar.mine(token(usdc, alice, 5n))
        yield* mineOn([liar], 4)
        liar.failure = "rate_limited"
        yield* seconds(2)
        liar.failure = undefined
        yield* seconds(15)
        liar.mineMany(3)
        yield* seconds(30)
        yield* mineOn([liar], 1)
        yield* seconds(30)
        yield* mineOn([liar], 40)
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe("confirmed 5")
      }).pipe(aroundSomeReal(nodes))
    }
  )
})

describe("branches", () => {
  it.scoped.each([0, 1, 2])(
    "where provider %d of three has a branch of its own, deeper than the confirmations, the others decide",
    (place) => {
      const liar = new ModelChain(10)
      const honest = forkOf(liar)
      const nodes = [honest, honest.twin()]
      nodes.splice(place, 0, liar)
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        liar.mine()
        honest.mine(token(usdc, alice, 5n))
        yield* mineOn([liar, honest], 200)
        expect(yield* stateOf(id)).toBe("confirmed 5")
      }).pipe(aroundSomeReal(nodes))
    }
  )

  it.scoped("an invented branch of 900 blocks is dropped once two others have newer heads below it", () => {
    const liar = new ModelChain(10)
    const honest = forkOf(liar)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      liar.mineMany(900)
      // The branch's blocks take no time.
      liar.distort = ({ method }, answer) =>
        method === "eth_getBlockByNumber" && answer !== null && Number((answer as { number: string }).number) > 11
          ? { ...(answer as object), timestamp: "0x6e" }
          : answer
      honest.mine(token(usdc, alice, 5n))
      yield* mineOn([honest], 20)
      liar.failure = "rate_limited"
      yield* mineOn([honest], 300)
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }).pipe(aroundSomeReal([liar, honest, honest.twin()]))
  })

  it.scoped(
    "money that a liar denies, and for a while also an honest provider on another branch, counts in the end",
    () => {
      const first = new ModelChain(10)
      const other = forkOf(first)
      const liar = first.twin()
      liar.distort = ({ method, params: [of] }, answer) => {
        if (method === "eth_getLogs") return []
        if (method === "eth_getTransactionReceipt") return null
        return of === "0xb" && answer !== null ? { ...(answer as object), transactions: [] } : answer
      }
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        first.mine(token(usdc, alice, 5n))
        other.mine()
        yield* mineOn([first, other], 4)
        other.blocks.splice(11, 1000, ...first.blocks.slice(11))
        for (let i = 0; i < 60; i++) {
          other.blocks.push(first.mine())
          yield* second
        }
        expect(yield* stateOf(id)).toBe("confirmed 5")
      }).pipe(aroundSomeReal([first, other, liar]))
    }
  )
})

/** Nodes of one chain that serve all calls of balance reconciliation; one of them lies. */
const withLiar = (liar: ModelChain, count: number, place: number) => {
  const nodes = Array.from({ length: count - 1 }, () => liar.twin())
  nodes.splice(place, 0, liar)
  for (const [i, node] of nodes.entries()) {
    node.host = `node-${i}`
    withReceipts(node)
    const { distort } = node
    node.distort = (request, answer) => (answer === null ? null : distort(request, answer))
  }
  return nodes
}

const watchedCoins = Effect.gen(function* () {
  yield* Effect.forkScoped((yield* Settlement).expire)
  return yield* watchedPayment(alice, { amount: 5n })
})

describe("coins", () => {
  it.scoped("that the serving one of three reports with a false transaction are found with the right one", () => {
    const liar = new ModelChain(10)
    const nodes = withLiar(liar, 3, 0)
    const paid = coin(alice, 5n)
    const false_ = `0x${"e".repeat(64)}`
    const { distort } = liar
    liar.distort = (request, answer) => {
      const { method } = request
      const isFalse = request.params[0] === false_
      const block = { blockHash: liar.blocks[11]?.hash, blockNumber: "0xb", transactionIndex: "0x0" }
      if (isFalse && method === "eth_getTransactionByHash") {
        return { ...block, hash: false_, from: `0x${"9".repeat(40)}`, to: alice, value: "0x5" }
      }
      if (isFalse) return distort(request, { ...block, transactionHash: false_, status: "0x1", logs: [] })
      const distorted = distort(request, answer)
      return distorted === null ? null : JSON.parse(JSON.stringify(distorted).replaceAll(paid.hash, false_))
    }
    return Effect.gen(function* () {
      const { id } = yield* watchedCoins
      liar.mine(paid)
      yield* mineOn([liar], 30)
      yield* seconds(30)
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }).pipe(aroundSomeReal(nodes))
  })

  /** The node shows three wei for alice in the block in which payments end. */
  const showing = (liar: ModelChain) => {
    const { distort } = liar
    liar.distort = (request, answer) => {
      const [of, at] = request.params
      const isLie = request.method === "eth_getBalance" && liar.height >= 380 && String(of).toLowerCase() === lower
      if (!isLie) return distort(request, answer)
      return liar.numberOf(at) >= 371 ? "0x3" : answer
    }
  }
  const lower = alice.toLowerCase()

  /** A payment that waits, long after its time, for money that this node alone shows. */
  const shownToTheEnd = Effect.fnUntraced(function* (liar: ModelChain) {
    showing(liar)
    const { id } = yield* watchedCoins
    yield* untilOver(liar)
    yield* seconds(10)
    expect(yield* stateOf(id)).toBe("detecting 3")
    liar.mineMany(20)
    return id
  })

  it.scoped.each([
    [2, 0],
    [2, 1],
    [3, 0],
    [3, 1],
    [3, 2]
  ] as const)(
    "without a transaction that one of %d, at %d, shows before a payment ends do not end it",
    ([count, place]) => {
      const liar = new ModelChain(10)
      const nodes = withLiar(liar, count, place)
      showing(liar)
      return Effect.gen(function* () {
        const { id } = yield* watchedCoins
        yield* untilOver(liar)
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe(count === 2 ? "detecting 3" : "expired")
        const reader = yield* Reader
        const corroborated = yield* reader.all("SELECT 1 FROM receipts WHERE corroborated = 1")
        expect(corroborated).toEqual([])
      }).pipe(aroundSomeReal(nodes))
    }
  )

  it.scoped.each([0, 1])(
    "without a transaction that one of two, at %d, shows do not count once the other has pruned those states",
    (place) => {
      const liar = new ModelChain(10)
      const nodes = withLiar(liar, 2, place)
      return Effect.gen(function* () {
        const id = yield* shownToTheEnd(liar)
        for (const node of nodes) node.oldestState = node === liar ? 0 : 380
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe("expired")
        const reader = yield* Reader
        const exceptions = yield* reader.all("SELECT kind, amount FROM exceptions")
        expect(exceptions).toEqual([{ kind: "unattributed", amount: "3" }])
      }).pipe(aroundSomeReal(nodes))
    }
  )

  it.scoped.each([0, 1])(
    "without a transaction that one of two, at %d, showed do not count by the other alone, which has pruned those states",
    (place) => {
      const liar = new ModelChain(10)
      const nodes = withLiar(liar, 2, place)
      return Effect.gen(function* () {
        const id = yield* shownToTheEnd(liar)
        for (const node of nodes) {
          if (node === liar) node.failure = "unreachable"
          else node.oldestState = 380
        }
        // The clock is behind the block times, since blocks take no time here.
        yield* TestClock.setTime(4_000_000)
        yield* pass("12 minutes")
        expect(yield* stateOf(id)).toBe("expired")
      }).pipe(aroundSomeReal(nodes, polledRarely))
    }
  )
})

describe("dust", () => {
  it.scoped.each([
    [2, 0],
    [2, 1],
    [3, 1],
    [3, 2]
  ] as const)("that one of %d, at %d, makes up anew whenever it is asked keeps no payment open", ([count, place]) => {
    const liar = new ModelChain(10)
    const nodes = Array.from({ length: count - 1 }, () => liar.twin())
    nodes.splice(place, 0, liar)
    let made = 0
    liar.distort = ({ method, params: [of] }, answer) => {
      if (method !== "eth_getLogs" || liar.height < 380) return answer
      const { fromBlock, toBlock } = of as { readonly fromBlock: string; readonly toBlock: string }
      if (Number(fromBlock) > 371 || Number(toBlock) < 371) return answer
      const log = {
        address: usdc,
        topics: [transferTopic, `0x${"0".repeat(64)}`, `0x${alice.slice(2).toLowerCase().padStart(64, "0")}`],
        data: `0x${"1".padStart(64, "0")}`,
        blockNumber: "0x173",
        blockHash: liar.blocks[371]?.hash,
        transactionHash: `0x${(++made).toString(16).padStart(64, "f")}`,
        logIndex: "0x7"
      }
      return [...(answer as ReadonlyArray<unknown>), log]
    }
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc(5_000n)
      yield* untilOver(liar)
      yield* seconds(30)
      expect(yield* stateOf(id)).toBe("expired")
    }).pipe(aroundSomeReal(nodes))
  })
})

describe("a block with money", () => {
  it.scoped.each([
    [2, 0],
    [3, 0],
    [3, 1]
  ] as const)("that one of %d, at %d, has four blocks lower is no deeper for it", ([count, place]) => {
    const honest = new ModelChain(10)
    const liar = forkOf(honest)
    const nodes = [honest, ...Array.from({ length: count - 2 }, () => honest.twin())]
    nodes.splice(place, 0, liar)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      honest.mineMany(4)
      const paid = honest.mine(token(usdc, alice, 5n))
      liar.blocks.push({ ...paid, number: 11, parentHash: liar.blocks[10]?.hash ?? "" })
      liar.mineMany(4)
      yield* seconds(60)
      expect(yield* stateOf(id)).toBe("detecting 5")
      if (count === 2) return
      yield* mineOn([honest, liar], 90)
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }).pipe(aroundSomeReal(nodes))
  })
})

describe("a chain that stands still", () => {
  it.scoped.each([0, 1, 2])("while provider %d of three goes on: the others do not count as silent", (place) => {
    const honest = new ModelChain(10)
    const liar = forkOf(honest)
    const nodes = [honest, honest.twin()]
    nodes.splice(place, 0, liar)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      yield* seconds(20)
      liar.mine(token(usdc, alice, 5n))
      for (let i = 0; i < 130; i++) {
        liar.mine()
        yield* pass("10 seconds")
      }
      expect(yield* stateOf(id)).not.toContain("confirmed")
    }).pipe(aroundSomeReal(nodes, polledRarely))
  })
})
