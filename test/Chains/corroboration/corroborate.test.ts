import { describe, expect } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { waitsForSecond } from "../../../src/Chains/corroboration/corroborate.ts"
import { change, rows } from "../../lib/rows.ts"
import { alice, health, next, upTo, usdc, watchedPayment } from "../around.ts"
import { coin, type ModelChain, token } from "../ModelChain.ts"
import { Announced, nextCommit, pass, paymentById, until } from "../world.ts"
import { corroborated, openScene, scene, seconds } from "./scene.ts"

const two = { nodes: 2 }
const elsewhere = `0x${"1".repeat(64)}`

/** Mines blocks one by one, each of which is read. */
const nextOnes = (chain: ModelChain, count: number) =>
  Effect.repeatN(
    Effect.suspend(() => next(chain)),
    count - 1
  )

/** The node responds differently to requests for a transaction's receipt, and lists no logs of a single block. */
const withReceipt = (chain: ModelChain, edit: (receipt: object) => unknown) => {
  chain.distort = ({ method, params: [filter] }, answer) => {
    if (Predicate.hasProperty(filter, "blockHash")) return []
    return method === "eth_getTransactionReceipt" ? edit(answer as object) : answer
  }
}

describe("a receipt that one provider has reported", () => {
  openScene("is corroborated at its depth by another that has it, and its payment settled", two, function* (first) {
    const { id } = yield* watchedPayment(alice)
    yield* next(first, token(usdc, alice, 5n), coin(alice, 6n))
    yield* next(first)
    yield* upTo(12)
    expect(yield* corroborated).toEqual([0, 0])
    yield* next(first)
    expect((yield* nextCommit).touched).toEqual([id])
    expect(yield* corroborated).toEqual([1, 1])
    expect((yield* health)?.reason).toBeUndefined()
  })

  openScene("is corroborated by the logs of its block, where no provider has a receipt of it", two, function* (first) {
    yield* watchedPayment(alice)
    yield* next(first, { ...token(usdc, alice, 5n), isStateSync: true })
    yield* nextOnes(first, 2)
    yield* upTo(13)
    expect(yield* corroborated).toEqual([1])
    expect(yield* rows("SELECT denied_by FROM receipts")).toEqual([{ denied_by: null }])
  })

  for (const [title, lie, denies] of [
    ["does not give its transaction, and lists it", () => null, false],
    ["gives another one, and lists it", (receipt) => ({ ...receipt, transactionHash: elsewhere }), false],
    ["has it in another block", (receipt) => ({ ...receipt, blockHash: elsewhere }), true],
    ["says that it failed", (receipt) => ({ ...receipt, status: "0x0" }), true]
  ] as ReadonlyArray<readonly [string, (receipt: object) => unknown, boolean]>) {
    openScene(`waits, however deep it is, while the other ${title}`, two, function* (first, other) {
      withReceipt(other, lie)
      yield* watchedPayment(alice)
      yield* next(first, token(usdc, alice, 5n))
      yield* nextOnes(first, 4)
      yield* upTo(15)
      expect(yield* corroborated).toEqual([0])
      expect(yield* rows("SELECT denied_by FROM receipts")).toEqual([{ denied_by: denies ? "model" : null }])
      other.distort = (_, answer) => answer
      // With exponential backoff, it may take some polls until it is asked about again.
      yield* Effect.raceFirst(
        until(corroborated, ([row]) => row === 1),
        Effect.forever(next(first))
      )
    })
  }

  openScene("is corroborated by a third one where the second one lacks it", { nodes: 3 }, function* (first, other) {
    withReceipt(other, () => null)
    yield* watchedPayment(alice)
    yield* next(first, token(usdc, alice, 5n))
    yield* nextOnes(first, 4)
    yield* upTo(15)
    expect(yield* corroborated).toEqual([1])
  })

  openScene("delays no newer one while it is not corroborated, and costs less and less", two, function* (first, other) {
    // It confirms what it has invented, and only the other one denies that.
    first.distort = ({ method, params: [hash] }, answer) =>
      method === "eth_getTransactionReceipt" && Number(hash) < 300
        ? { transactionHash: hash, blockHash: elsewhere, status: "0x1", logs: [] }
        : answer
    const payment = yield* watchedPayment(alice)
    yield* change(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash,
         currency, amount, payment_id, canonical, corroborated, seen_at)
       WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 299)
       SELECT 'ethereum', 'test', ?, ?, 'call:' || i, 1, 1, printf('0x%064x', i), 'USDC', '5', ?, 1, 0, 0 FROM n`,
      ...[elsewhere, alice.toLowerCase(), payment.id]
    )
    yield* next(first, token(usdc, alice, 5n))
    yield* nextOnes(first, 2)
    yield* until(corroborated, (all) => all.at(-1) === 1)
    const calls = () => other.count("eth_getTransactionReceipt")
    let before = calls()
    const most: Array<number> = []
    for (let i = 0; i < 120; i++) {
      yield* next(first)
      yield* upTo(first.height)
      most.push(calls() - before)
      before = calls()
    }
    const sum = (counts: ReadonlyArray<number>) => counts.reduce((all, count) => all + count, 0)
    expect(Math.max(...most)).toBeLessThanOrEqual(200)
    // By then each of the 300 is asked about once a minute at most.
    expect(sum(most.slice(60))).toBeLessThanOrEqual(600)
    yield* pass("10 minutes")
    const now = yield* until(health, (state) => state?.reason !== undefined)
    expect(now).toMatchObject({ ready: true, reason: expect.stringContaining(waitsForSecond) })
    expect(sum((yield* corroborated).slice(0, -1))).toBe(0)
  })

  openScene("is asked about less and less, too, where responses are unusable", two, function* (first, other) {
    withReceipt(first, () => ({}))
    yield* watchedPayment(alice)
    other.failure = "unreachable"
    yield* next(first, token(usdc, alice, 5n))
    yield* nextOnes(first, 3)
    const before = first.count("eth_getTransactionReceipt")
    for (let i = 0; i < 60; i++) yield* pass("10 seconds")
    yield* upTo(14)
    // The interval doubles: ten requests fit into the time, where one per poll would be six hundred.
    expect(first.count("eth_getTransactionReceipt") - before).toBeLessThanOrEqual(12)
    expect(yield* corroborated).toEqual([0])
  })

  // Both providers are asked about it after its block was replaced and before the watcher has seen the reorg: their denial
  // is correct, and no provider has lied.
  scene(
    "is not refuted by a reorg between reading and asking; no provider is contradicted",
    two,
    function* (first, other) {
      const paid = token(usdc, alice, 5n)
      other.intercept = (batch) => {
        if (!batch.some(({ method }) => method === "eth_getTransactionReceipt") || first.height > 15) return
        first.rollback(first.height - 10)
        first.mine()
        first.mine(paid)
        first.mineMany(5)
      }
      const { id } = yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
      first.mine(paid)
      yield* seconds(1)
      for (let i = 0; i < 2; i++) {
        first.mine()
        yield* seconds(1)
      }
      yield* pass("20 seconds")
      expect(first.height).toBe(17)
      expect(yield* rows("SELECT 1 FROM receipts WHERE refuted = 1 OR denied_by IS NOT NULL")).toEqual([])
      expect((yield* paymentById(id))?.status).toBe("confirmed")
      expect(yield* Announced).toEqual(["detecting", "confirmed"])
      expect((yield* health)?.providers.map(({ healthy }) => healthy)).toEqual([true, true])
    }
  )
})
