import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { decidesAlone, waitsForOthers, waitsForSecond } from "../../../src/Chains/corroboration/corroborate.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { alice, aroundTwo, health, next, second, upTo, usdc, watchedPayment } from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { nextCommit, pass, until } from "../world.ts"

const corroborated = Effect.flatMap(Reader, (reader) =>
  Effect.map(
    reader.all<{ position: string; corroborated: number }>(
      "SELECT position, corroborated FROM receipts ORDER BY block_number"
    ),
    (rows) => rows.map((row) => row.corroborated)
  )
)

describe("a receipt that one provider has reported", () => {
  it.scoped(
    "is corroborated once it has its confirmations and another provider has its transaction in the same block",
    () => {
      const first = new ModelChain(10)
      return Effect.gen(function* () {
        yield* watchedPayment(alice)
        yield* next(first, token(usdc, alice, 5n), coin(alice, 6n))
        yield* next(first)
        yield* upTo(12)
        expect(yield* corroborated).toEqual([0, 0])
        yield* next(first)
        expect(yield* until(corroborated, (rows) => rows.every((one) => one === 1))).toEqual([1, 1])
        expect((yield* health)?.reason).toBeUndefined()
      }).pipe(aroundTwo(first, first.twin()))
    }
  )

  it.scoped("has its payment settled again once another provider has its transaction: its exceptions open then", () => {
    const first = new ModelChain(10)
    return Effect.gen(function* () {
      const { id } = yield* watchedPayment(alice)
      yield* next(first, token(usdc, alice, 5n))
      for (let i = 0; i < 2; i++) yield* next(first)
      expect((yield* nextCommit).touched).toEqual([id])
    }).pipe(aroundTwo(first, first.twin()))
  })

  it.scoped.each<[string, (receipt: object) => unknown, boolean]>([
    ["does not give its transaction, and lists it", () => null, false],
    ["gives another one, and lists it", (receipt) => ({ ...receipt, transactionHash: `0x${"1".repeat(64)}` }), false],
    ["has it in another block", (receipt) => ({ ...receipt, blockHash: `0x${"1".repeat(64)}` }), true],
    ["says that it failed", (receipt) => ({ ...receipt, status: "0x0" }), true]
  ])("waits, however deep it is, while the other %s", ([, lie, denies]) => {
    const first = new ModelChain(10)
    const other = first.twin()
    other.distort = ({ method }, answer) => (method === "eth_getTransactionReceipt" ? lie(answer as object) : answer)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* next(first, token(usdc, alice, 5n))
      for (let i = 0; i < 4; i++) yield* next(first)
      yield* upTo(15)
      expect(yield* corroborated).toEqual([0])
      const reader = yield* Reader
      expect(yield* reader.all("SELECT denied_by FROM receipts")).toEqual([{ denied_by: denies ? "model" : null }])
      other.distort = (_, answer) => answer
      // With exponential backoff, it may take some polls until it is asked about again.
      yield* Effect.raceFirst(
        until(corroborated, ([row]) => row === 1),
        Effect.forever(next(first))
      )
    }).pipe(aroundTwo(first, other))
  })

  it.scoped(
    "that no provider will ever corroborate delays no newer one, costs less and less, and is shown by health",
    () => {
      const first = new ModelChain(10)
      const other = first.twin()
      const invented = `0x${"1".repeat(64)}`
      // It confirms what it has invented, and only the other one denies that.
      first.distort = ({ method, params: [hash] }, answer) =>
        method === "eth_getTransactionReceipt" && Number(hash) < 700
          ? { transactionHash: hash, blockHash: invented, status: "0x1", logs: [] }
          : answer
      return Effect.gen(function* () {
        const payment = yield* watchedPayment(alice)
        const writer = yield* Writer
        yield* writer.write(
          Effect.flatMap(Tx, (tx) =>
            tx.run(
              `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash,
               currency, amount, payment_id, canonical, corroborated, seen_at)
             WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 699)
             SELECT 'ethereum', 'test', ?, ?, 'call:' || i, 1, 1, printf('0x%064x', i), 'USDC', '5', ?, 1, 0, 0 FROM n`,
              [invented, alice.toLowerCase(), payment.id]
            )
          )
        )
        yield* next(first, token(usdc, alice, 5n))
        for (let i = 0; i < 2; i++) yield* next(first)
        const paid = Effect.map(corroborated, (rows) => rows.at(-1))
        expect(yield* until(paid, (row) => row === 1)).toBe(1)
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
        // By then each of the 700 is asked about once a minute at most.
        expect(sum(most.slice(60))).toBeLessThanOrEqual(1400)
        yield* pass("10 minutes")
        const now = yield* until(health, (state) => state?.reason !== undefined)
        expect(now).toMatchObject({ ready: true, reason: expect.stringContaining(waitsForSecond) })
        expect(sum((yield* corroborated).slice(0, -1))).toBe(0)
      }).pipe(aroundTwo(first, other))
    }
  )

  it.scoped("is asked about less and less, too, where the only healthy provider gives unusable responses", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    first.distort = ({ method }, answer) => (method === "eth_getTransactionReceipt" ? {} : answer)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      other.failure = "unreachable"
      yield* next(first, token(usdc, alice, 5n))
      for (let i = 0; i < 3; i++) yield* next(first)
      const before = first.count("eth_getTransactionReceipt")
      for (let i = 0; i < 60; i++) {
        yield* pass("10 seconds")
      }
      yield* upTo(14)
      // The interval doubles: ten requests fit into the time, where one per poll would be six hundred.
      expect(first.count("eth_getTransactionReceipt") - before).toBeLessThanOrEqual(12)
      expect(yield* corroborated).toEqual([0])
    }).pipe(aroundTwo(first, other))
  })

  it.scoped(
    "is decided by a sole provider once the others have been silent for ten minutes, and health says so",
    () => {
      const first = new ModelChain(10)
      const other = first.twin()
      return Effect.gen(function* () {
        yield* watchedPayment(alice)
        other.failure = "unreachable"
        yield* next(first, token(usdc, alice, 5n))
        for (let i = 0; i < 4; i++) yield* next(first)
        yield* pass("9 minutes")
        expect(yield* corroborated).toEqual([0])
        expect((yield* health)?.reason).toContain(waitsForOthers)
        yield* pass("2 minutes")
        expect(yield* corroborated).toEqual([1])
        const now = yield* health
        expect(now?.reason).toContain(decidesAlone)
        expect(now?.providers).toEqual([
          { host: "model", healthy: true },
          { host: "model", healthy: false, reason: expect.stringContaining("unreachable") }
        ])
        other.failure = undefined
        yield* next(first, token(usdc, alice, 5n))
        for (let i = 0; i < 20; i++) yield* next(first)
        expect(yield* corroborated).toEqual([1, 1])
        expect((yield* health)?.reason).toBeUndefined()
      }).pipe(aroundTwo(first, other))
    }
  )
})

describe("a second provider whose node has stopped following the chain", () => {
  it.scoped.each<[string, number]>([
    ["below the receipt's block", 10],
    ["at the receipt's block, which is no depth", 11]
  ])("%s gets a cooldown, also each time that it comes back, and delays no receipt forever", ([, height]) => {
    const first = new ModelChain(10)
    const stopped = new ModelChain(-1, [...first.blocks])
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* next(first, token(usdc, alice, 5n))
      stopped.blocks.push(...first.blocks.slice(11, height + 1))
      for (let i = 0; i < 3; i++) yield* next(first)
      yield* Effect.raceFirst(
        until(health, (state) => state?.providers[1]?.reason?.includes("behind") === true),
        Effect.forever(second)
      )
      expect(yield* corroborated).toEqual([0])
      // The receipt is in backoff: its wait doubles each time.
      yield* pass("20 minutes")
      expect(yield* corroborated).toEqual([1])
    }).pipe(aroundTwo(first, stopped))
  })
})

describe("the verification pass", () => {
  const rows = Effect.flatMap(Reader, (reader) =>
    reader.all<{ block_number: number; amount: string }>("SELECT block_number, amount FROM receipts ORDER BY amount")
  )
  /** A node that leaves logs out, under the right hash. */
  const forgetful = (chain: ModelChain, keep: (index: number) => boolean) => {
    chain.distort = ({ method }, answer) =>
      method === "eth_getLogs" ? (answer as ReadonlyArray<unknown>).filter((_, i) => keep(i)) : answer
  }

  it.scoped.each<[string, (index: number) => boolean, number]>([
    ["none", () => false, 0],
    ["some", (index) => index === 0, 1]
  ])("finds what a provider left out that returned %s of the logs under the right hash", ([, keep, kept]) => {
    const first = new ModelChain(10)
    const other = first.twin()
    forgetful(first, keep)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      const { head } = yield* next(first, token(usdc, alice, 5n), token(usdc, alice, 7n))
      expect(yield* rows).toHaveLength(kept)
      // The model has no tags: a block four times as deep as the confirmations is final. Maintenance runs at its own interval.
      for (let i = 0; i < 64; i++) yield* next(first)
      expect(yield* until(rows, (found) => found.length === 2)).toEqual([
        { block_number: head.number, amount: "5" },
        { block_number: head.number, amount: "7" }
      ])
    }).pipe(aroundTwo(first, other))
  })

  it.scoped("stores nothing of a block that the first provider does not have", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    other.distort = ({ method, params }, answer) => {
      if (method === "eth_getLogs") {
        const { fromBlock } = params[0] as { fromBlock: string }
        const stranger = {
          blockHash: `0x${"2".repeat(64)}`,
          blockNumber: fromBlock,
          transactionHash: `0x${"3".repeat(64)}`
        }
        return [
          ...(answer as ReadonlyArray<object>),
          ...(answer as ReadonlyArray<object>).map((log) => ({ ...log, ...stranger }))
        ]
      }
      return answer
    }
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* next(first, token(usdc, alice, 5n))
      for (let i = 0; i < 64; i++) yield* next(first)
      expect(yield* rows).toHaveLength(1)
      const verified = yield* Effect.flatMap(Reader, (reader) =>
        reader.get<{ number: number }>("SELECT verified_number AS number FROM scans")
      )
      // Blocks that were final when the test began have no transfers; the range with the foreign block is not passed.
      expect(verified?.number).toBeLessThan(11)
    }).pipe(aroundTwo(first, other))
  })
})
