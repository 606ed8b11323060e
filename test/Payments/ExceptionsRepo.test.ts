import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { YieldWrap } from "effect/Utils"
import type { ExceptionContent, PaymentException } from "../../src/Domain/Exception.ts"
import { newRefundId } from "../../src/Domain/Ids.ts"
import * as ExceptionLists from "../../src/Payments/ExceptionsRepo.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Refunds from "../../src/Payments/RefundsRepo.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { tempStore } from "../lib/store.ts"

const network = { chain: "base", mode: "test" } as const
const place = { address: `0x${"a".repeat(40)}`, mode: "test", payment: undefined } as const
const found: ExceptionContent = {
  kind: "unknown_payment",
  chain: "base",
  txHash: "0xt1",
  currency: "USDC",
  amount: 5n,
  block: undefined,
  key: "unknown_payment:base:0xt1:USDC"
}

/** A test in one transaction of a new store. */
const test = (title: string, body: () => Generator<YieldWrap<Effect.Effect<unknown, unknown, Tx>>, unknown, never>) =>
  it.scoped(title, () =>
    Effect.flatMap(Writer, (writer) => writer.write(Effect.gen(body))).pipe(Effect.provide(tempStore))
  )

const stored = Effect.flatMap(Tx, (tx) => Exceptions.unknownAt(tx, network, place.address))
const sync = (exceptionOf: ReadonlyArray<ExceptionContent>, at: number) =>
  Effect.flatMap(stored, (before) => Exceptions.sync(place, before, exceptionOf, at))

test("an accepted exception stays closed for its money or less of it, and is open for more", function* () {
  expect(yield* sync([found], 1)).toHaveLength(1)
  expect(yield* sync([found], 2)).toHaveLength(0)
  for (const { id } of yield* stored) yield* Exceptions.accept(id, 3)
  expect(yield* sync([found], 4)).toHaveLength(0)
  expect(yield* sync([{ ...found, amount: 4n }], 5)).toHaveLength(0)
  expect(yield* stored).toMatchObject([{ status: "accepted", amount: 5n }])
  expect(yield* sync([{ ...found, amount: 6n }], 6)).toHaveLength(1)
  expect(yield* stored).toMatchObject([{ status: "open", amount: 6n }])
})

test("an exception whose money was removed and has come back is open again", function* () {
  yield* sync([found], 1)
  yield* sync([], 2)
  expect(yield* stored).toMatchObject([{ status: "gone" }])
  expect(yield* sync([found], 3)).toHaveLength(1)
  expect(yield* stored).toMatchObject([{ status: "open", amount: 5n }])
})

/** Records a refund of an exception, and what it leaves of its money. */
const sendBack = Effect.fnUntraced(function* (one: PaymentException, amount: bigint, rest: bigint, txHash?: string) {
  yield* Refunds.put(
    {
      ...{ id: newRefundId(), payment: undefined, account: undefined, mode: place.mode, address: place.address },
      ...{ chain: one.chain, currency: one.currency, amount, to: undefined, status: "noted", txHash },
      ...{ from: undefined, note: undefined, problem: undefined, plan: undefined, createdAt: 2, changedAt: 2 },
      parts: [
        {
          ...{ exception: one.id, openedAt: undefined, txHash: "0xa", block: undefined, amount },
          ...{ ofTwo: true, ofConfirmed: false }
        }
      ]
    },
    undefined
  )
  yield* sync(rest === 0n ? [] : [{ ...found, amount: rest }], 3)
})

test("money found beyond the refunded amount opens the exception again", function* () {
  const [open = expect.unreachable()] = yield* Effect.zipRight(sync([found], 1), stored)
  yield* sendBack(open, 2n, 3n)
  expect(yield* stored).toMatchObject([{ amount: 3n, sentBack: 2n, status: "open" }])
  yield* sendBack(open, 3n, 0n)
  expect(yield* stored).toMatchObject([{ amount: 5n, sentBack: 5n, status: "refunded" }])
  expect(yield* sync([], 4)).toHaveLength(0)
  expect(yield* stored).toMatchObject([{ amount: 5n, sentBack: 5n, status: "refunded" }])
  expect(yield* sync([{ ...found, amount: 4n }], 5)).toHaveLength(1)
  expect(yield* stored).toMatchObject([{ amount: 4n, sentBack: 5n, status: "open" }])
})

test("an exception that was sent back in part, and whose rest a reorg took, is gone", function* () {
  const [open = expect.unreachable()] = yield* Effect.zipRight(sync([found], 1), stored)
  yield* sendBack(open, 2n, 3n)
  yield* sync([], 4)
  expect(yield* stored).toMatchObject([{ amount: 3n, sentBack: 2n, status: "gone" }])
})

test("an open exception whose money grows gets the new amount, keeps its age, and is not reported as opened", function* () {
  yield* sync([found], 1)
  expect(yield* sync([{ ...found, amount: 9n }], 2)).toHaveLength(0)
  expect(yield* stored).toMatchObject([{ amount: 9n, openedAt: 1, status: "open" }])
})

test("the transaction named by an acceptance is cleared when the exception opens again; a refund's stays", function* () {
  yield* sync([found], 1)
  const [open = expect.unreachable()] = yield* stored
  yield* Exceptions.accept(open.id, 2, { note: "fine", txHash: "0xa" })
  yield* sync([{ ...found, amount: 6n }], 3)
  expect(yield* stored).toMatchObject([{ status: "open", note: undefined, decisionTx: undefined }])
  yield* sendBack(open, 6n, 0n, "0xb")
  yield* sync([{ ...found, amount: 1n }], 5)
  expect(yield* stored).toMatchObject([{ status: "open", sentBack: 6n, decisionTx: "0xb" }])
})

test("open exceptions are listed oldest first, up to the limit", function* () {
  const keys = ["c", "a", "d", "b"]
  for (const [at, key] of keys.entries()) {
    const before = yield* stored
    yield* Exceptions.sync(place, before, [...before, { ...found, key }], at)
  }
  const [oldest] = yield* stored
  yield* Exceptions.accept(oldest?.id ?? "", 9)
  const open = yield* ExceptionLists.open(yield* Tx, { limit: 2 })
  expect(open.map(({ key }) => key)).toEqual(keys.filter((key) => key !== oldest?.key).slice(0, 2))
})

test("what is listed page by page begins with found_late and reorged, and a decision between loses no page", function* () {
  const tx = yield* Tx
  const late = Array.from({ length: 5 }, (_, i): ExceptionContent => ({ ...found, kind: "late", key: `late ${i}` }))
  yield* sync(late, 1)
  const pressing: ReadonlyArray<ExceptionContent> = [
    { ...found, kind: "found_late", key: "found" },
    { ...found, kind: "reorged", key: "reorged" }
  ]
  yield* sync([...late, ...pressing], 2)
  const first = yield* ExceptionLists.open(tx, { limit: 2 })
  expect(new Set(first.map(({ kind }) => kind))).toEqual(new Set(["found_late", "reorged"]))
  yield* Exceptions.accept(first[1]?.id ?? "", 3)
  const second = yield* ExceptionLists.open(tx, { limit: 3, after: first[1]?.id })
  const last = yield* ExceptionLists.open(tx, { limit: 3, after: second[2]?.id })
  expect([...second, ...last].map(({ key }) => key).sort()).toEqual(late.map(({ key }) => key))
  expect(yield* ExceptionLists.open(tx, { limit: 9, payment: "pay_other" })).toEqual([])
})
