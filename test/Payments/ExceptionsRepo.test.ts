import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { YieldWrap } from "effect/Utils"
import type { ExceptionContent } from "../../src/Domain/Exception.ts"
import * as ExceptionLists from "../../src/Payments/ExceptionListRepo.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
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
  for (const { id } of yield* stored) yield* Exceptions.close(id, "accepted", 3)
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

test("money found beyond the refunded amount opens the exception again", function* () {
  const [open] = yield* Effect.zipRight(sync([found], 1), stored)
  if (open === undefined) return expect.unreachable()
  yield* Exceptions.sendBack(open, 2n, 2)
  expect(yield* stored).toMatchObject([{ amount: 3n, sentBack: 2n, status: "open" }])
  const [rest = expect.unreachable()] = yield* stored
  yield* Exceptions.sendBack(rest, 3n, 3)
  expect(yield* stored).toMatchObject([{ amount: 5n, sentBack: 5n, status: "refunded" }])
  expect(yield* sync([], 4)).toHaveLength(0)
  expect(yield* stored).toMatchObject([{ amount: 5n, sentBack: 5n, status: "refunded" }])
  expect(yield* sync([{ ...found, amount: 4n }], 5)).toHaveLength(1)
  expect(yield* stored).toMatchObject([{ amount: 4n, sentBack: 5n, status: "open" }])
})

test("an exception without transaction and block is open for what was found less what was refunded", function* () {
  const sum: ExceptionContent = { ...found, txHash: undefined, key: "sum" }
  const [open] = yield* Effect.zipRight(sync([sum], 1), stored)
  if (open === undefined) return expect.unreachable()
  yield* Exceptions.sendBack(open, 5n, 2)
  expect(yield* sync([sum], 3)).toHaveLength(0)
  expect(yield* stored).toMatchObject([{ amount: 5n, status: "refunded" }])
  expect(yield* sync([{ ...sum, amount: 9n }], 4)).toHaveLength(1)
  expect(yield* stored).toMatchObject([{ amount: 4n, sentBack: 5n, status: "open" }])
})

test("an open exception whose money grows gets the new amount, keeps its age, and is not reported as opened", function* () {
  yield* sync([found], 1)
  expect(yield* sync([{ ...found, amount: 9n }], 2)).toHaveLength(0)
  expect(yield* stored).toMatchObject([{ amount: 9n, openedAt: 1, status: "open" }])
})

test("the sender stays as corroborated receipts reported it, whatever one provider reports meanwhile", function* () {
  yield* sync([{ ...found, sender: "0xpayer" }], 1)
  const reported = [{ ...found, amount: 3n, sender: "0xthief" }]
  yield* Exceptions.sync(place, yield* stored, [], 2, reported)
  expect(yield* stored).toMatchObject([{ status: "open", amount: 3n, sender: "0xpayer" }])
  yield* sync([{ ...found, sender: "0xother" }], 3)
  expect(yield* stored).toMatchObject([{ amount: 5n, sender: "0xother" }])
})

test("the transaction named by a decision is cleared when the exception opens again, except for refunded money", function* () {
  yield* sync([found], 1)
  const [{ id } = expect.unreachable()] = yield* stored
  yield* Exceptions.close(id, "accepted", 2, { note: "fine", txHash: "0xa" })
  yield* sync([{ ...found, amount: 6n }], 3)
  expect(yield* stored).toMatchObject([{ status: "open", note: undefined, decisionTx: undefined }])
  const [open = expect.unreachable()] = yield* stored
  yield* Exceptions.sendBack(open, 6n, 4, { note: "sent", txHash: "0xb" })
  yield* sync([{ ...found, amount: 1n }], 5)
  expect(yield* stored).toMatchObject([{ status: "open", sentBack: 6n, note: "sent", decisionTx: "0xb" }])
})

test("open exceptions are listed oldest first, up to the limit", function* () {
  const keys = ["c", "a", "d", "b"]
  for (const [at, key] of keys.entries()) {
    const before = yield* stored
    yield* Exceptions.sync(place, before, [...before, { ...found, key }], at)
  }
  const [oldest] = yield* stored
  yield* Exceptions.close(oldest?.id ?? "", "accepted", 9)
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
  yield* Exceptions.close(first[1]?.id ?? "", "accepted", 3)
  const second = yield* ExceptionLists.open(tx, { limit: 3, after: first[1]?.id })
  const last = yield* ExceptionLists.open(tx, { limit: 3, after: second[2]?.id })
  expect([...second, ...last].map(({ key }) => key).sort()).toEqual(late.map(({ key }) => key))
  expect(yield* ExceptionLists.open(tx, { limit: 9, payment: "pay_other" })).toEqual([])
})
