import { describe, expect } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import { rows } from "../../lib/rows.ts"
import { alice, health, second } from "../around.ts"
import { stateOf, untilOver } from "../lying.ts"
import { coin, type ModelChain } from "../ModelChain.ts"
import { pass } from "../world.ts"
import { scene, seconds, servingCoins, watchedCoins } from "./scene.ts"

// One provider lies about coins and the others are honest: only what the honest ones have counts.

/** What alice's address holds at a block according to a node; undefined where the node does not respond. */
type Held = (block: number) => { readonly balance: number; readonly nonce?: number } | undefined

/** Nodes that report this state of alice's address. */
const holding = (held: Held, ...nodes: ReadonlyArray<ModelChain>) => {
  servingCoins(...nodes)
  for (const node of nodes) {
    const { distort } = node
    node.distort = (request, answer) => {
      const { method, params } = request
      const isAsked = method === "eth_getBalance" || method === "eth_getTransactionCount"
      if (answer === null || !isAsked || String(params[0]).toLowerCase() !== alice.toLowerCase()) {
        return distort(request, answer)
      }
      const state = held(node.numberOf(params[1]))
      if (state === undefined) return null
      return `0x${(method === "eth_getBalance" ? state.balance : (state.nonce ?? 0)).toString(16)}`
    }
  }
}

/** With each search before a payment ends, the liar invents more money in blocks whose states the others have pruned. */
const inventingAnew = (liar: ModelChain, others: ReadonlyArray<ModelChain>, honest: Held) => {
  let searches = 0
  holding(honest, ...others)
  holding((block) => ({ balance: liar.height < 380 ? 0 : 10 * Math.max(0, Math.min(searches, block - 200)) }), liar)
  for (const node of others) node.oldestState = 360
  // Each search begins with the logs.
  liar.intercept = (batch) => {
    if (liar.height >= 380 && batch.some(({ method }) => method === "eth_getLogs")) searches++
  }
}

/** Two hundred seconds, with a block every ten, and then as long as a payment takes. */
const toTheEnd = (chain: ModelChain) =>
  Effect.gen(function* () {
    for (let i = 0; i < 200; i++) {
      if (i % 10 === 0) chain.mine()
      yield* second
    }
    yield* untilOver(chain)
    yield* seconds(60)
  })

const corroborated = rows(
  "SELECT block_number AS block, amount FROM receipts WHERE canonical = 1 AND corroborated = 1 ORDER BY block_number"
)

const hosts = true
const everyPlace = [
  { nodes: 2, place: 0 },
  { nodes: 2, place: 1 },
  { nodes: 3, place: 0 },
  { nodes: 3, place: 1 },
  { nodes: 3, place: 2 }
]

scene(
  "coins that the serving one of three reports with a false transaction are found with the right one",
  { nodes: 3, hosts },
  function* (liar, ...others) {
    servingCoins(liar, ...others)
    const paid = coin(alice, 5n)
    const false_ = `0x${"e".repeat(64)}`
    const { distort } = liar
    liar.distort = (request, answer) => {
      const isFalse = request.params[0] === false_
      const block = { blockHash: liar.blocks[11]?.hash, blockNumber: "0xb", transactionIndex: "0x0" }
      if (isFalse && request.method === "eth_getTransactionByHash") {
        return { ...block, hash: false_, from: `0x${"9".repeat(40)}`, to: alice, value: "0x5" }
      }
      if (isFalse) return distort(request, { ...block, transactionHash: false_, status: "0x1", logs: [] })
      const distorted = distort(request, answer)
      return distorted === null ? null : JSON.parse(JSON.stringify(distorted).replaceAll(paid.hash, false_))
    }
    const { id } = yield* watchedCoins()
    liar.mine(paid)
    for (let i = 0; i < 30; i++) {
      liar.mine()
      yield* second
    }
    yield* seconds(30)
    expect(yield* stateOf(id)).toBe("confirmed 5")
  }
)

describe("coins without a transaction", () => {
  for (const nodes of [2, 3]) {
    scene(
      `that one of ${nodes} reported while the others lagged are not corroborated by itself once another one serves`,
      { nodes, hosts },
      function* (liar, ...others) {
        holding((block) => ({ balance: block >= 30 ? 3 : 0 }), liar)
        holding(() => ({ balance: 0 }), ...others)
        const { id } = yield* watchedCoins()
        for (const node of others) node.behind = 1
        liar.mineMany(20)
        yield* seconds(40)
        expect(yield* stateOf(id)).toBe("detecting 3")
        for (const node of others) node.behind = 0
        liar.failure = "rate_limited"
        yield* seconds(3)
        liar.failure = undefined
        yield* toTheEnd(liar)
        expect(yield* stateOf(id)).toBe(nodes === 2 ? "detecting 3" : "expired")
        expect(yield* corroborated).toEqual([])
      }
    )

    scene(
      `are not counted twice because of an intermediate state that one of ${nodes} invented`,
      { nodes, hosts },
      function* (liar, ...others) {
        let lies = false
        let low = 1_000_000
        const honest: Held = (block) => ({ balance: block >= 12 ? 2 : 0 })
        holding(honest, ...others)
        holding((block) => {
          if (lies && block === liar.height) low = Math.min(low, block)
          return block === low ? { balance: 0, nonce: 1 } : honest(block)
        }, liar)
        const { id } = yield* watchedCoins()
        liar.mineMany(20)
        yield* seconds(60)
        lies = true
        liar.mine()
        yield* seconds(60)
        lies = false
        liar.failure = "rate_limited"
        yield* seconds(3)
        liar.mineMany(3)
        yield* seconds(3)
        liar.failure = undefined
        yield* toTheEnd(liar)
        // With two providers, money that one reports when the payment is about to end keeps it open.
        expect(yield* stateOf(id)).toBe(nodes === 2 ? "detecting 4" : "failed insufficient_amount 2")
        expect(yield* corroborated).toEqual([{ block: 12, amount: "2" }])
      }
    )
  }

  scene(
    "are shown by the serving provider and the second other one where the first other one has no states",
    { nodes: 3, hosts },
    function* (serving, other, third) {
      // They were collected before another provider could be asked.
      holding(
        (block) => (block < 100 ? { balance: block >= 30 ? 3 : 0 } : { balance: 0, nonce: 1 }),
        serving,
        other,
        third
      )
      for (const node of [other, third]) node.oldestState = 1_000
      const { id } = yield* watchedCoins()
      yield* untilOver(serving)
      other.oldestState = 360
      third.oldestState = 0
      yield* seconds(60)
      expect(yield* stateOf(id)).toBe("failed insufficient_amount 3")
    }
  )

  for (const place of [0, 1]) {
    scene(
      `do not grow where one of two, at ${place}, reports more when payments end`,
      { nodes: 2, place, hosts },
      function* (liar, honest) {
        holding((block) => ({ balance: block >= 365 ? 3 : 0 }), honest)
        holding((block) => {
          if (liar.height < 380) return block === 364 ? undefined : { balance: block >= 365 ? 3 : 0 }
          return { balance: block >= 365 ? 4 : 0 }
        }, liar)
        const { id } = yield* watchedCoins()
        yield* untilOver(liar)
        yield* seconds(120)
        expect(yield* stateOf(id)).toBe("detecting 4")
        expect(yield* corroborated).toEqual([])
      }
    )

    scene(
      `are waited for where one of two, at ${place}, denies them and invents others with each search`,
      { nodes: 2, place, hosts },
      function* (liar, honest) {
        inventingAnew(liar, [honest], (block) => ({ balance: block >= 365 ? 3_000 : 0 }))
        const { id } = yield* watchedCoins(5_000n)
        yield* untilOver(liar)
        const calls = () => honest.count("eth_getBalance") + honest.count("eth_getBlockByNumber")
        yield* seconds(60)
        const before = calls()
        yield* seconds(120)
        expect(yield* stateOf(id)).toContain("detecting")
        expect(yield* corroborated).toEqual([])
        // The honest provider is asked less and less, however much the other one invents: two searches in two minutes.
        expect(calls() - before).toBeLessThan(1_200)
      }
    )
  }

  for (const cast of everyPlace) {
    scene(
      `keep no payment open where one of ${cast.nodes}, at ${cast.place}, invents more with each search, in blocks without states`,
      { ...cast, hosts },
      function* (liar, ...others) {
        inventingAnew(liar, others, () => ({ balance: 0 }))
        const { id } = yield* watchedCoins(5_000n)
        yield* untilOver(liar)
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe("expired")
      }
    )
  }
})

describe("coins without a transaction that one provider shows in the block in which payments end", () => {
  /** A payment that is over, with three wei that the node alone shows from block 371 on. */
  const shownToTheEnd = Effect.fnUntraced(function* (liar: ModelChain, ...others: ReadonlyArray<ModelChain>) {
    holding((block) => ({ balance: liar.height >= 380 && block >= 371 ? 3 : 0 }), liar)
    holding(() => ({ balance: 0 }), ...others)
    const { id } = yield* watchedCoins()
    yield* untilOver(liar)
    return id
  })

  for (const cast of everyPlace) {
    scene(`do not end it: one of ${cast.nodes}, at ${cast.place}`, { ...cast, hosts }, function* (liar, ...others) {
      const id = yield* shownToTheEnd(liar, ...others)
      yield* seconds(60)
      expect(yield* stateOf(id)).toBe(cast.nodes === 2 ? "detecting 3" : "expired")
      expect(yield* corroborated).toEqual([])
    })
  }

  for (const place of [0, 1]) {
    const cast = { nodes: 2, place, hosts }
    scene(`do not count once the other of two has pruned those states: ${place}`, cast, function* (liar, other) {
      const id = yield* shownToTheEnd(liar, other)
      yield* seconds(10)
      expect(yield* stateOf(id)).toBe("detecting 3")
      liar.mineMany(20)
      other.oldestState = 380
      yield* seconds(60)
      expect(yield* stateOf(id)).toBe("expired")
      expect(yield* rows("SELECT kind, amount FROM exceptions")).toEqual([{ kind: "unattributed", amount: "3" }])
    })

    // For tests that wait for longer than an hour: a tick each second would be most of what they do.
    const settings = { pollInterval: Duration.seconds(10) }
    scene(
      `do not count by the other of two alone, which has pruned those states: ${place}`,
      { ...cast, settings },
      function* (liar, other) {
        const id = yield* shownToTheEnd(liar, other)
        yield* seconds(10)
        expect(yield* stateOf(id)).toBe("detecting 3")
        liar.mineMany(20)
        liar.failure = "unreachable"
        other.oldestState = 380
        // The clock is behind the block times, since blocks take no time here.
        yield* TestClock.setTime(4_000_000)
        yield* pass("12 minutes")
        expect(yield* stateOf(id)).toBe("expired")
      }
    )
  }
})

for (const place of [0, 1, 2]) {
  scene(
    `coins that come after the end are in an exception though provider ${place} of three hides them`,
    { nodes: 3, place, hosts },
    function* (liar, ...others) {
      holding(() => ({ balance: 0 }), liar)
      holding((block) => ({ balance: block >= 400 ? 3 : 0 }), ...others)
      const { id } = yield* watchedCoins()
      yield* untilOver(liar)
      yield* seconds(60)
      expect(yield* stateOf(id)).toBe("expired")
      liar.mineMany(40)
      for (let i = 0; i < 40; i++) {
        liar.mine()
        yield* pass("1 minute")
      }
      expect(yield* rows("SELECT kind, amount FROM exceptions")).toEqual([{ kind: "late", amount: "3" }])
    }
  )
}

describe("coins that are collected at once", () => {
  /** Three wei from one block on, collected in the next one. */
  const collectedAt = (paid: number) => (block: number) => ({
    balance: block === paid ? 3 : 0,
    nonce: block > paid ? 1 : 0
  })

  for (const nodes of [1, 2, 3]) {
    scene(`late, are in an exception, of ${nodes}`, { nodes, hosts }, function* (...chains) {
      holding(collectedAt(400), ...chains)
      const [first] = chains
      const { id } = yield* watchedCoins()
      yield* untilOver(first)
      yield* seconds(60)
      expect(yield* stateOf(id)).toBe("expired")
      first.mineMany(40)
      for (let i = 0; i < 365; i++) {
        first.mine()
        yield* pass("1 minute")
      }
      expect(yield* rows("SELECT kind, amount FROM exceptions")).toEqual([{ kind: "late", amount: "3" }])
    })

    scene(`while the payment is open, show within two minutes, of ${nodes}`, { nodes, hosts }, function* (...all) {
      holding(collectedAt(20), ...all)
      const { id } = yield* watchedCoins(3n)
      all[0].mineMany(20)
      yield* seconds(120)
      expect(yield* stateOf(id)).toBe("detecting 3")
    })
  }
})

scene(
  "a serving provider whose balance two others deny is no longer trusted, and the real amount is found",
  { nodes: 3, hosts },
  function* (liar, ...others) {
    holding((block) => ({ balance: block >= 20 ? 10 : 0 }), liar)
    holding((block) => ({ balance: block >= 20 ? 3 : 0 }), ...others)
    const { id } = yield* watchedCoins()
    liar.mineMany(20)
    yield* seconds(60)
    expect(yield* stateOf(id)).toBe("detecting 3")
    expect((yield* health)?.providers[0]?.reason).toContain("its balance of")
  }
)
