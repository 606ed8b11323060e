import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { change, rows } from "../../lib/rows.ts"
import { bloomOf } from "../../sim/bloom.ts"
import { address, alice, health, next, second, upTo, usdc, watchedPayment } from "../around.ts"
import { inventing, stateOf, untilOver, watchedUsdc, withFalseFinalHashes } from "../lying.ts"
import { coin, type ModelChain, token } from "../ModelChain.ts"
import { ledger, pass, pay, paymentById, scanned } from "../world.ts"
import { scene, seconds, servingCoins, watchedCoins, withholdingLogs } from "./scene.ts"

// A single provider out of two or three cannot decide anything about a payment.

const two = { nodes: 2 }

describe("a receipt that one provider invents", () => {
  scene("is not decided by one of two that also gives false hashes of deep blocks", two, function* (liar) {
    // Only after the honest provider has appeared inconsistent several times.
    inventing(liar, 62)
    withFalseFinalHashes(liar)
    const { id } = yield* watchedUsdc()
    liar.mineMany(4)
    for (let i = 0; i < 400; i++) {
      if (i % 5 === 0) liar.mine()
      yield* second
    }
    expect(yield* stateOf(id)).toBe("detecting 5")
  })

  scene("is not decided by one of two once the other, which denied it, is silent", two, function* (liar, honest) {
    inventing(liar)
    const { id } = yield* watchedUsdc()
    liar.mineMany(5)
    yield* pass("15 minutes")
    expect(yield* stateOf(id)).toBe("detecting 5")
    honest.failure = "rate_limited"
    yield* pass("25 minutes")
    expect(yield* stateOf(id)).toBe("detecting 5")
  })

  for (const place of [0, 1, 2]) {
    scene(`is refuted by two of three, not number ${place}; real money counts`, { nodes: 3, place }, function* (liar) {
      inventing(liar)
      const { id } = yield* watchedUsdc()
      liar.mineMany(20)
      yield* seconds(40)
      expect(yield* stateOf(id)).toBe("pending")
      liar.mine(token(usdc, alice, 5n))
      liar.mineMany(3)
      yield* seconds(40)
      expect(yield* stateOf(id)).toBe("confirmed 5")
    })
  }
})

scene("a second provider that responds between failures is asked again after a second", two, function* (first, other) {
  yield* watchedPayment(alice)
  for (let round = 1; round <= 8; round++) {
    other.failure = "timeout"
    yield* next(first, token(usdc, alice, 5n))
    yield* Effect.repeatN(
      Effect.suspend(() => next(first)),
      2
    )
    other.failure = undefined
    yield* seconds(5)
    expect(yield* rows("SELECT 1 FROM receipts WHERE corroborated = 1")).toHaveLength(round)
    expect((yield* health)?.providers[1]?.healthy).toBe(true)
  }
})

/** Another payment, which was made later and ends at the same time. */
const younger = (chain: ModelChain) =>
  Effect.gen(function* () {
    chain.mineMany(9)
    yield* second
    yield* upTo(20)
    expect(yield* pay(address(2), { currency: "USDC" })).toMatchObject({ createdHead: 20 })
  })

describe("money that one of two providers withholds", () => {
  for (const [title, meanwhile] of [
    ["with false hashes of deep blocks", () => Effect.void],
    ["where younger payments end at the same time", younger]
  ] as const) {
    scene(`is found before the payment ends: a log ${title}`, two, function* (liar) {
      withholdingLogs(liar)
      withFalseFinalHashes(liar)
      const { id } = yield* watchedUsdc()
      liar.mine(token(usdc, alice, 5n))
      yield* meanwhile(liar)
      yield* untilOver(liar)
      yield* seconds(30)
      // One that gives another hash for the block corroborates nothing in it: the payment waits for a third, or a person.
      expect(yield* stateOf(id)).toBe("detecting 5")
    })
  }

  scene(
    "is found before the payment ends: coins, balance and all",
    { nodes: 2, settings: { chain: "base" } },
    function* (liar, honest) {
      servingCoins(honest)
      liar.distort = ({ method }, answer) => (method === "eth_getBalance" ? "0x0" : answer)
      const { id } = yield* watchedCoins(5n, { chain: "base" })
      liar.mine(coin(alice, 5n))
      yield* untilOver(liar)
      yield* seconds(60)
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }
  )

  scene("is found within one tick where a block's bloom promises the log", two, function* (liar) {
    const bloom = bloomOf([usdc, transferTopic, `0x${alice.slice(2).toLowerCase().padStart(64, "0")}`])
    liar.distort = ({ method, params: [number] }, answer) => {
      if (method === "eth_getLogs") return []
      const isPaid = Number(number) === 11 || (number === "latest" && liar.height === 11)
      if (method !== "eth_getBlockByNumber" || answer === null || !isPaid) return answer
      return { ...(answer as object), logsBloom: bloom }
    }
    const { id } = yield* watchedUsdc()
    liar.mine(token(usdc, alice, 5n))
    yield* second
    yield* upTo(11)
    expect((yield* paymentById(id))?.status).toBe("detecting")
    expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
  })
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

scene(
  "a branch and a tag of one provider undo no confirmed payment that the other one still has",
  { nodes: 2, apart: true },
  function* (liar, honest) {
    const { id } = yield* watchedUsdc()
    const paid = liar.mine(token(usdc, alice, 5n))
    liar.mineMany(2)
    honest.blocks.push(...liar.blocks.slice(11))
    yield* seconds(5)
    expect(yield* stateOf(id)).toBe("confirmed 5")
    // Another payment is still open, so that the chain is polled as often.
    yield* pay(address(2), { currency: "USDC" })
    const old = honest.blocks.slice(11)
    liar.rollback(3)
    liar.mineMany(4)
    // For a moment both are on that branch, or it would not be followed.
    honest.blocks.splice(11, 3, ...liar.blocks.slice(11))
    yield* second
    yield* upTo(14)
    honest.blocks.splice(11, 4, ...old)
    // Longer than the patience for a silent provider.
    for (let i = 0; i < 140; i++) {
      liar.mine()
      honest.mine()
      liar.finalized = liar.height - 5
      yield* pass("5 seconds")
    }
    expect((yield* scanned)?.head_hash).toBe(liar.blocks.at(-1)?.hash)
    expect((yield* ledger).map(({ block_hash, canonical }) => [block_hash, canonical])).toEqual([[paid.hash, 0]])
    expect(yield* stateOf(id)).toBe("confirmed 5")
  }
)

describe("two providers that number the logs of a block differently", () => {
  const renumbered = (chain: ModelChain, by: number, twice: boolean) => {
    const all = (logs: ReadonlyArray<{ logIndex: string }>) =>
      logs.flatMap((log) => {
        const at = (n: number) => ({ ...log, logIndex: `0x${(2 * Number(log.logIndex) + n).toString(16)}` })
        return twice ? [at(by), at(by + 1)] : [at(by)]
      })
    chain.distort = ({ method }, answer) => {
      if (method === "eth_getLogs") return all(answer as ReadonlyArray<{ logIndex: string }>)
      if (method !== "eth_getTransactionReceipt" || answer === null) return answer
      const receipt = answer as { logs: ReadonlyArray<{ logIndex: string }> }
      return { ...receipt, logs: all(receipt.logs) }
    }
  }

  for (const [title, twice, received] of [
    ["one log is one transfer", false, 5n],
    ["two equal logs of one transaction are two transfers", true, 10n]
  ] as const) {
    scene(`${title}, also when the verification pass has read both`, two, function* (first, other) {
      renumbered(first, 0, twice)
      renumbered(other, 7, twice)
      const { id } = yield* watchedUsdc(received)
      first.mine(token(usdc, alice, 5n))
      first.mineMany(31)
      yield* seconds(80)
      expect(yield* stateOf(id)).toBe(`confirmed ${received}`)
      expect(yield* ledger).toHaveLength(twice ? 2 : 1)
      expect(yield* rows("SELECT kind FROM exceptions")).toEqual([])
    })
  }
})
