import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { WatchedAddresses } from "../../src/Chains/ledger/WatchedAddresses.ts"
import type { PaymentId } from "../../src/Domain/Ids.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import { accept } from "../../src/Payments/operatorDecisions.ts"
import { refunded } from "../../src/Payments/refunds.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { end, layer, look, start, untold } from "./deciding.ts"
import { address, scanTo, startWith, tick, transfer, usdcElsewhere } from "./settling.ts"

const none = { exceptions: [], amount: undefined }

/** The id of the exception of so much. */
const idOf = (id: PaymentId, amount: bigint) =>
  Effect.gen(function* () {
    const all = yield* Exceptions.ofPayment(yield* Reader, id)
    return all.find((one) => one.amount === amount)?.id ?? expect.unreachable()
  })

/** An expired payment with 7 and 8 that came late. */
const withTwo = Effect.gen(function* () {
  const { id } = yield* start
  yield* scanTo(end)
  yield* scanTo(end + 9, transfer(end + 5, 7n), transfer(end + 6, 8n))
  return id
})

it.scoped("refunded: where several are open it needs names, closes those, and leaves the others open", () =>
  Effect.gen(function* () {
    const id = yield* withTwo
    const before = yield* look(id)
    expect(yield* Effect.flip(refunded(id, none))).toMatchObject({
      _tag: "RefundUnclear",
      message: expect.stringMatching(
        /2 open exceptions: exc_.* \(late, 7 base units of ETH, 0xt.*\), exc_.*--exception/
      )
    })
    expect(yield* look(id)).toEqual(before)
    const seven = yield* idOf(id, 7n)
    const result = yield* refunded(id, { exceptions: [seven], amount: undefined })
    expect(result?.closed).toMatchObject([
      { id: seven, kind: "late", amount: 7n, currency: "ETH", txHash: `0xt${end + 5}` }
    ])
    expect((yield* look(id)).exceptions).toEqual(["refunded late 7", "open late 8"])
    // Money that has come since the operator's look is not what was named.
    yield* scanTo(end + 19, transfer(end + 15, 9n))
    yield* refunded(id, { exceptions: [yield* idOf(id, 8n)], amount: undefined })
    expect((yield* look(id)).exceptions).toEqual(["refunded late 7", "refunded late 8", "open late 9"])
  }).pipe(Effect.provide(layer))
)

it.scoped("refunded: names that are not its open exceptions close nothing, nor those beside them", () =>
  Effect.gen(function* () {
    const id = yield* withTwo
    const [seven, eight] = [yield* idOf(id, 7n), yield* idOf(id, 8n)]
    yield* refunded(id, { exceptions: [seven], amount: undefined })
    const before = yield* look(id)
    const reason = (exceptions: ReadonlyArray<string>, amount?: bigint) =>
      Effect.map(Effect.flip(refunded(id, { exceptions, amount })), ({ message }) => message)
    expect(yield* reason([eight, "exc_none"])).toContain("has no exception exc_none")
    expect(yield* reason([eight, seven])).toContain("is refunded, not open")
    expect(yield* reason([eight], 9n)).toContain("less than 9")
    expect(yield* look(id)).toEqual(before)
    yield* scanTo(end + 19, transfer(end + 15, 9n))
    expect(yield* reason([eight, yield* idOf(id, 9n)], 8n)).toContain("of one exception")
  }).pipe(Effect.provide(layer))
)

it.scoped("refunded: of an amount, what is more than it stays open, and what was sent back counts no more", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(130, transfer(120, 1000n, untold))
    const result = yield* refunded(id, { exceptions: [], amount: 400n })
    expect(result?.closed).toMatchObject([{ kind: "unattributed", amount: 400n }])
    yield* scanTo(131, transfer(125, 1n))
    const after = yield* look(id)
    expect(after.exceptions).toEqual(["open unattributed 600"])
    expect(after.payment?.amountReceived).toBe(601n)
    yield* refunded(id, { exceptions: [], amount: 600n })
    yield* scanTo(132, transfer(126, 1n))
    expect((yield* look(id)).exceptions).toEqual(["refunded unattributed 1000"])
    expect((yield* look(id)).payment?.amountReceived).toBe(2n)
  }).pipe(Effect.provide(layer))
)

it.scoped("refunded: part of late money is open for the rest, also after a reorg mined it again", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(end)
    yield* scanTo(end + 9, transfer(end + 5, 10n))
    yield* refunded(id, { exceptions: [], amount: 4n })
    const again = transfer(end + 8, 10n, { txHash: `0xt${end + 5}` })
    yield* tick({ head: end + 12, ancestor: end + 4, transfers: [again] })
    expect((yield* look(id)).exceptions).toEqual(["open late 6"])
    yield* refunded(id, none)
    yield* tick({
      head: end + 14,
      ancestor: end + 7,
      transfers: [{ ...again, blockNumber: end + 9, blockHash: "0xb9" }]
    })
    expect((yield* look(id)).exceptions).toEqual(["refunded late 10"])
  }).pipe(Effect.provide(layer))
)

it.scoped("refunded: money of a lost payment, in part", () =>
  Effect.gen(function* () {
    yield* start
    const lost = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    const writer = yield* Writer
    const reader = yield* Reader
    yield* writer.write(
      Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO gap_addresses VALUES (?, 'test', 'w', 7, 0)", [lost]))
    )
    const to = { address: lost.toLowerCase() }
    yield* scanTo(130, transfer(120, 5n, to))
    const [open = expect.unreachable()] = yield* Exceptions.open(reader, { limit: 10 })
    const told: Array<unknown> = []
    yield* refunded(open.id, { exceptions: [], amount: 2n, onClosed: (closed) => told.push(...closed) })
    expect(told).toMatchObject([{ id: open.id, amount: 2n }])
    yield* scanTo(131, transfer(125, 6n, to))
    expect((yield* Exceptions.open(reader, { limit: 10 })).map(({ amount }) => amount)).toEqual([3n, 6n])
    yield* refunded(open.id, { exceptions: [], amount: 3n })
    expect(yield* Effect.flip(refunded(open.id, none))).toMatchObject({
      message: expect.stringContaining(`${open.id} is refunded, not open`)
    })
  }).pipe(Effect.provide(layer))
)

it.scoped("accept: money that was sent back is nothing to accept a payment for", () =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(end)
    yield* scanTo(end + 9, transfer(end + 5, 1000n))
    yield* refunded(id, none)
    const before = yield* look(id)
    for (const tx of [undefined, `0xt${end + 5}`]) {
      expect(yield* Effect.flip(accept(id, tx))).toMatchObject({
        _tag: "NothingToDecide",
        message: `What came for ${id} was sent back: there is nothing to accept`
      })
    }
    expect(yield* look(id)).toEqual(before)
  }).pipe(Effect.provide(layer))
)

it.scoped.each([
  ["late", transfer(end + 5, 700n)],
  ["of another token", usdcElsewhere(120, 700n)]
] as const)("accept: of a transaction that was sent back, %s, is refused beside other money", ([, money]) =>
  Effect.gen(function* () {
    const { id } = yield* start
    yield* scanTo(end, ...(money.blockNumber > end ? [] : [money]))
    yield* scanTo(end + 9, ...(money.blockNumber > end ? [money] : []))
    yield* refunded(id, none)
    yield* scanTo(end + 19, transfer(end + 15, 1000n))
    const { message } = yield* Effect.flip(accept(id, money.txHash))
    expect(message).toBe(`What ${money.txHash} brought was sent back: ${id} cannot be accepted for it`)
    yield* accept(id, undefined)
    expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 15}` })
  }).pipe(Effect.provide(layer))
)

it.scoped(
  "accept: what was found late and sent back keeps no payment confirmed that was accepted for other money",
  () =>
    Effect.gen(function* () {
      const { id } = yield* start
      yield* scanTo(end)
      yield* scanTo(end + 9, transfer(200, 1000n))
      yield* refunded(id, none)
      yield* scanTo(end + 19, transfer(end + 15, 1000n))
      yield* accept(id, undefined)
      expect((yield* look(id)).payment).toMatchObject({ status: "confirmed", txHash: `0xt${end + 15}` })
      yield* tick({ head: end + 20, ancestor: end + 14, finalized: end + 10 })
      yield* tick({ head: end + 40, finalized: end + 30 })
      expect((yield* look(id)).payment).toMatchObject({ status: "failed", failureReason: "reorged" })
    }).pipe(Effect.provide(layer))
)

it.scoped("accept: the address is watched again at once when its late window was over", () =>
  Effect.gen(function* () {
    const matchSet = yield* WatchedAddresses
    const { id } = yield* startWith()
    yield* scanTo(end)
    yield* scanTo(end + 9, transfer(end + 5, 1000n))
    yield* TestClock.adjust("31 days")
    matchSet.remove("test", address)
    yield* accept(id, undefined)
    expect(matchSet.has("test", address)).toBe(true)
  }).pipe(Effect.provide(layer))
)
