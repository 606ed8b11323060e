import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Tx, Writer } from "../../../src/Sql.ts"
import { direct, inside } from "./BalanceModel.ts"
import { alice, depsOf, inStore, owing, round, told, toldOfAny } from "./reconcileWorld.ts"

/** The payment asks for so much that a thousandth of it is 1,000 wei. */
const asking = (over = "expires_at") =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(Effect.flatMap(Tx, (tx) => tx.run(`UPDATE payments SET amount = '1000000', expires_at = ${over}`)))
  )

it.scoped("dust: coins below the floor are not searched for, in however many blocks", () =>
  Effect.gen(function* () {
    const model = yield* owing("dust", alice)
    yield* asking()
    for (let i = 0; i < 244; i++) {
      model.mine([inside(alice, 1n)])
      if (i % 61 === 60) yield* round(depsOf(model.client), model.head)
    }
    expect(model.calls.map(({ method }) => method)).toEqual(Array.from({ length: 4 }, () => "eth_call"))
    expect(yield* told(alice)).toEqual([])
  }).pipe(inStore)
)

it.scoped("dust: once it adds up to the floor it becomes one unattributed receipt, for a few calls", () =>
  Effect.gen(function* () {
    const model = yield* owing("much dust", alice)
    yield* asking()
    for (let i = 0; i < 244; i++) model.mine([inside(alice, 5n)])
    const { reading } = yield* round(depsOf(model.client), model.head)
    expect(reading.transfers).toHaveLength(1)
    expect(yield* told(alice)).toEqual(["244 unattributed 1220"])
    expect(model.calls.length).toBeLessThan(16)
    model.calls.splice(0)
    model.mine([inside(alice, 5n)])
    yield* round(depsOf(model.client), model.head)
    expect(model.calls.filter(({ method }) => method !== "eth_call").length).toBeLessThan(16)
    expect(yield* told(alice)).toEqual(["244 unattributed 1220"])
  }).pipe(inStore)
)

it.scoped("dust: a payment among it is still found, and the rest is one unattributed receipt", () =>
  Effect.gen(function* () {
    const model = yield* owing("amidst", alice)
    yield* asking()
    for (let i = 0; i < 100; i++) model.mine([inside(alice, 2n)])
    model.mine([direct(alice, 1_000_000n)])
    for (let i = 0; i < 100; i++) model.mine([inside(alice, 2n)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* toldOfAny(alice)).toEqual(["101 tx:0 1000000", "201 unattributed 400"])
    expect(model.calls.length).toBeLessThan(60)
  }).pipe(inStore)
)

it.scoped("dust: a small last part of a payment is searched for, whatever its amount", () =>
  Effect.gen(function* () {
    const model = yield* owing("short", alice)
    yield* asking()
    model.mine([direct(alice, 999_500n)])
    yield* round(depsOf(model.client), model.head)
    const writer = yield* Writer
    yield* writer.write(
      Effect.flatMap(Tx, (tx) => tx.run("UPDATE payments SET status = 'detecting', amount_received = '999500'"))
    )
    model.mine([direct(alice, 500n)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* toldOfAny(alice)).toEqual(["1 tx:0 999500", "2 tx:0 500"])
  }).pipe(inStore)
)

it.scoped("dust: at the payment's deadline it is recorded without a search", () =>
  Effect.gen(function* () {
    const model = yield* owing("end", alice)
    yield* asking()
    for (let i = 0; i < 40; i++) model.mine([inside(alice, 2n)])
    yield* round(depsOf(model.client), model.head)
    expect(yield* told(alice)).toEqual([])
    const { time } = model.head
    yield* asking(`${time * 1000}`)
    model.calls.splice(0)
    model.mine([], time + 200)
    yield* round(depsOf(model.client), model.head)
    expect(yield* told(alice)).toEqual(["41 unattributed 80"])
    expect(model.calls.length).toBeLessThan(16)
  }).pipe(inStore)
)
