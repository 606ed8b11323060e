import { describe, expect } from "@effect/vitest"
import { change, rows } from "../../lib/rows.ts"
import { alice, upTo } from "../around.ts"
import { stateOf, untilOver } from "../lying.ts"
import { coin, type ModelChain } from "../ModelChain.ts"
import { ledger } from "../world.ts"
import { scene, seconds, servingCoins, watchedCoins } from "./scene.ts"

// One provider lies about coins on a chain that stands still, or the ledger has a row that no provider brings it to: what
// the stories of test/sim/tales/coins.test.ts cannot tell.

/** Nodes that report this balance of alice's address, by block. */
const holding = (held: (block: number) => number, ...nodes: ReadonlyArray<ModelChain>) => {
  servingCoins(...nodes)
  for (const node of nodes) {
    const { distort } = node
    node.distort = (request, answer) => {
      const { method, params } = request
      const isAsked = method === "eth_getBalance" && String(params[0]).toLowerCase() === alice.toLowerCase()
      return isAsked && answer !== null ? `0x${held(node.numberOf(params[1])).toString(16)}` : distort(request, answer)
    }
  }
}

/** With each search before a payment ends, the liar invents more money in blocks whose states the other one has pruned. */
const inventingAnew = (liar: ModelChain, other: ModelChain, honest: (block: number) => number) => {
  let searches = 0
  holding(honest, other)
  holding((block) => (liar.height < 380 ? 0 : 10 * Math.max(0, Math.min(searches, block - 200))), liar)
  other.oldestState = 360
  // Each search begins with the logs.
  liar.intercept = (batch) => {
    if (liar.height >= 380 && batch.some(({ method }) => method === "eth_getLogs")) searches++
  }
}

const corroborated = rows(
  "SELECT block_number AS block, amount FROM receipts WHERE canonical = 1 AND corroborated = 1 ORDER BY block_number"
)

describe("coins without a transaction", () => {
  for (const place of [0, 1]) {
    scene(
      `are waited for where one of two, at ${place}, denies them and invents others with each search`,
      { nodes: 2, place, hosts: true },
      function* (liar, honest) {
        inventingAnew(liar, honest, (block) => (block >= 365 ? 3_000 : 0))
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

    scene(
      `keep no payment open where one of two, at ${place}, invents more with each search, in blocks without states`,
      { nodes: 2, place, hosts: true },
      function* (liar, other) {
        inventingAnew(liar, other, () => 0)
        const { id } = yield* watchedCoins(5_000n)
        yield* untilOver(liar)
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe("expired")
      }
    )
  }
})

scene(
  "coins without a transaction that the ledger has above the searched blocks are not counted twice",
  { nodes: 2, settings: { chain: "base" } },
  function* (first, other) {
    servingCoins(first, other)
    const { id } = yield* watchedCoins(5n, { chain: "base" })
    first.mine(coin(alice, 3n))
    first.mineMany(380 - first.height)
    // As with a node without old states: stored at the head, where its balance was read.
    yield* change(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, currency, amount,
         payment_id, canonical, corroborated, seen_at)
       VALUES ('base', 'test', ?, ?, 'unattributed', 380, 3800, 'ETH', '3', ?, 1, 1, 0)`,
      ...[first.blocks[380]?.hash ?? "", alice.toLowerCase(), id]
    )
    yield* seconds(30)
    yield* upTo(380)
    const counted = (yield* ledger).filter((row) => row.canonical === 1)
    expect(counted.reduce((all, { amount }) => all + BigInt(amount), 0n)).toBe(3n)
  }
)
