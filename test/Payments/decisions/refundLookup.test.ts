import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Schema, TestClock } from "effect"
import { getAddress } from "viem"
import type { MinedTransfers } from "../../../src/Chains/providers/minedTransaction.ts"
import { WebhookEvent } from "../../../src/Domain/Event.ts"
import { RefundId } from "../../../src/Domain/Ids.ts"
import type { Refund } from "../../../src/Domain/Refund.ts"
import { nameRefund } from "../../../src/Payments/decisions/refund.ts"
import { type Findings, judgeRefund, refundLookup } from "../../../src/Payments/decisions/refundLookup.ts"
import * as Refunds from "../../../src/Payments/RefundsRepo.ts"
import { Reader } from "../../../src/Sql.ts"
import { execute, rows } from "../../lib/store.ts"
import { asked, end, expiredWith, hash, mined, receiver, refunded, sender, stands, test } from "../deciding.ts"
import { address, transfer } from "../settling.ts"

const own = address.toLowerCase()
const [customer, other] = [receiver, `0x${"7".repeat(40)}`] as const

const refundOf = (over: Partial<Refund> = {}): Refund => ({
  ...{ sequence: 1, id: RefundId.make(`ref_${"1".repeat(26)}`), payment: undefined, account: undefined, mode: "test" },
  ...{ address: own, chain: "base", currency: "USDC", amount: 5n, to: undefined, status: "noted", txHash: hash("a") },
  ...{ from: undefined, note: undefined, problem: undefined, plan: undefined, createdAt: 0, changedAt: 0, parts: [] },
  ...over
})

const usdc = (position: string, over: object = {}) => ({
  ...{ contract: "0xc", from: sender, to: customer, amount: 5n, position },
  ...over
})
const coin = (over: object = {}) => ({ ...usdc("tx"), contract: undefined, ...over })
const minedWith = (transfers: MinedTransfers["transfers"], over: Partial<MinedTransfers> = {}): MinedTransfers => ({
  ...{ blockNumber: 9, blockTime: 900, blockHash: hash("b"), succeeded: true, confirmations: 3, isCall: true },
  ...{ transfers, ...over }
})

const plan = { digest: hash("d"), place: 0, way: "token" } as const
const young = { confirmations: 2 }
const hour = Duration.toMillis("1 hour")
type Case = readonly [
  what: string,
  refund: Partial<Refund>,
  mined: MinedTransfers | undefined,
  change: string,
  over?: Partial<Findings>
]
const cases: ReadonlyArray<Case> = [
  ["the right transfer", {}, minedWith([usdc("log:4")]), `final ${sender} ${customer} log:4`],
  ["the same, not deep", {}, minedWith([usdc("log:4")], young), `seen ${sender} ${customer} log:4`],
  ["the same again", { status: "seen" }, minedWith([usdc("log:4")], young), "stays", { position: "log:4" }],
  ["what a broadcast has noted", { status: "seen", plan }, minedWith([usdc("log:4")], young), "seen .* log:4"],
  ["its own address's first", {}, minedWith([usdc("log:1"), usdc("log:2", { from: own })]), `final ${own} .* log:2`],
  ["the receiver's alone", { to: other }, minedWith([usdc("log:1"), usdc("log:2", { to: other })]), "final .* log:2"],
  [
    "another receiver's",
    { to: other },
    minedWith([usdc("log:1")]),
    `failed: .*has no transfer of exactly 5.*to ${other}`
  ],
  ["another amount", {}, minedWith([usdc("log:1", { amount: 6n })]), "failed: .*has no transfer of exactly 5 base"],
  ["another token", {}, minedWith([usdc("log:1", { contract: "0xd" })]), "failed: .*has no transfer"],
  ["another token, not deep", {}, minedWith([], young), "stays"],
  ["the second of two equal ones", {}, minedWith([usdc("log:1", { to: other }), usdc("log:2")]), "final .* log:2"],
  ["what is used only", {}, minedWith([usdc("log:1", { to: other })]), "failed: .*has only what is another refund"],
  ["a failed transaction", {}, minedWith([usdc("log:1")], { succeeded: false }), "failed: .*failed in block 9"],
  ["a failed one, not deep", {}, minedWith([], { succeeded: false, ...young }), "stays"],
  ["none, within the hour", {}, undefined, "stays", { now: hour - 1 }],
  ["none for an hour", {}, undefined, "not_found: base has had no transaction 0xa.* for an hour", { now: hour }],
  ["none still", { status: "not_found" }, undefined, "stays", { now: 2 * hour }],
  ["found later", { status: "not_found" }, minedWith([usdc("log:1")]), "final .* log:1"],
  ["something found later, not deep", { status: "not_found" }, minedWith([], young), "noted"],
  ["what a reorg took", { status: "seen" }, undefined, "noted", { now: 2 * hour }],
  ["coin", { currency: "ETH" }, minedWith([coin()], { isCall: false }), `final ${sender} ${customer} tx`],
  ["coin of another amount", { currency: "ETH" }, minedWith([coin({ amount: 4n })], { isCall: false }), "failed: "],
  ["coin inside contracts", { currency: "ETH" }, minedWith([]), "noted: .*it cannot be checked"],
  ["a call with used coin", { currency: "ETH" }, minedWith([coin({ to: other })]), "failed: .*has only"],
  ["what a plan sent with a fee of its token", { status: "seen", plan }, minedWith([]), "seen: .*has no transfer"]
]

describe("a refund by its transaction", () => {
  for (const [what, refund, found, expected, over] of cases) {
    it(what, () => {
      const change = judgeRefund(refundOf(refund), {
        ...{ mined: found, confirmations: 3, now: 0, position: undefined },
        currencyOf: ({ contract }) => (contract === undefined ? "ETH" : contract === "0xc" ? "USDC" : "other"),
        isUsed: ({ to }) => to === other && refund.to === undefined,
        ...over
      })
      const { from, position, problem, status = "stays", to } = change ?? {}
      const is = problem === undefined ? [status, from, to, position] : [`${status}: ${problem}`]
      expect(is.filter((one) => one !== undefined).join(" ")).toMatch(new RegExp(`^${expected}`))
    })
  }
})

/** An expired payment with 7 and 8 that came late, each sent back, with this transaction. */
const withRefunds = (txHash: string) =>
  Effect.gen(function* () {
    const { id } = yield* expiredWith(transfer(end + 5, 7n), transfer(end + 6, 8n))
    const first = yield* refunded(id, { amount: 7n, txHash })
    const reader = yield* Reader
    const refund = first?.refund.id ?? expect.unreachable()
    const is = Effect.map(Refunds.byId(reader, refund), (one) => one ?? expect.unreachable())
    const { look } = yield* refundLookup
    return { id, is, look, refund }
  })

test("a transaction that the chain lacks is not found after an hour, and asked about for 30 days more", function* () {
  const { id, is, look, refund } = yield* withRefunds(hash("a"))
  const lookAfter = Effect.fnUntraced(function* (duration: Duration.DurationInput) {
    yield* TestClock.adjust(duration)
    const before = asked.length
    yield* look
    return [(yield* is).status, asked.length - before]
  })
  expect(yield* lookAfter("59 minutes")).toEqual(["noted", 1])
  // Another transaction is given another hour.
  yield* nameRefund(refund, undefined, hash("b"))
  expect(yield* lookAfter("1 minute")).toEqual(["noted", 1])
  expect(yield* lookAfter("58 minutes")).toEqual(["noted", 1])
  expect(yield* lookAfter("1 minute")).toEqual(["not_found", 1])
  expect(yield* lookAfter("1 minute")).toEqual(["not_found", 0])
  expect(yield* lookAfter("9 minutes")).toEqual(["not_found", 1])
  // Its money stays held.
  yield* stands(id, "expired", "refunded late 7", "open late 8")
  mined.set(hash("b"), { blockNumber: 199, status: "0x1", coin: { value: 7n } })
  expect(yield* lookAfter("10 minutes")).toEqual(["seen", 1])
  // A reorg takes it, and it is not found again.
  mined.clear()
  expect(yield* lookAfter("15 seconds")).toEqual(["noted", 1])
  expect(yield* lookAfter("61 minutes")).toEqual(["not_found", 1])
  expect(yield* lookAfter("29 days")).toEqual(["not_found", 1])
  expect(yield* lookAfter("1 day")).toEqual(["not_found", 0])
})

test("what sends nothing back reopens its money, and a transfer is one refund alone", function* () {
  const coin = { value: 7n, to: customer }
  const { id, is, look } = yield* Effect.tap(withRefunds(hash("a")), () =>
    Effect.sync(() => mined.set(hash("a"), { blockNumber: 150, status: "0x1", coin }))
  )
  yield* look
  expect(yield* is).toMatchObject({ status: "final", from: sender, to: customer, problem: undefined })
  const booked = yield* Effect.flatMap(Reader, (reader) => reader.get("SELECT block_time AS at FROM refunds"))
  expect(booked).toEqual({ at: 150 })
  const second = yield* refunded(id, { amount: 7n })
  const [other = ""] = second === undefined ? [] : [second.refund.id]
  yield* stands(id, "expired", "refunded late 7", "open late 1")
  yield* nameRefund(other, undefined, hash("a"))
  expect(yield* look).toBe(true)
  const failed = yield* Effect.flatMap(Reader, (reader) => Refunds.byId(reader, other))
  expect(failed).toMatchObject({ status: "failed", problem: expect.stringContaining("another refund") })
  yield* stands(id, "expired", "refunded late 7", "open late 8")
  expect(yield* look).toBe(false)
})

test("an income of ours sends nothing back", function* () {
  const { id, is, look } = yield* withRefunds(hash("a"))
  mined.set(hash("a"), { blockNumber: 150, status: "0x1", coin: { value: 7n, to: own } })
  yield* look
  expect(yield* is).toMatchObject({ status: "failed" })
  yield* stands(id, "expired", "open late 7", "open late 8")
})

test("what another payment's address sends is no refund of this one's", function* () {
  const { is, look } = yield* withRefunds(hash("a"))
  yield* execute("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 100) ON CONFLICT DO NOTHING")
  yield* execute(
    "INSERT INTO gap_addresses (address, mode, wallet, wallet_index, created_at) VALUES (?, 'test', 'w', 99, 0)",
    [getAddress(sender)]
  )
  mined.set(hash("a"), { blockNumber: 150, status: "0x1", coin: { value: 7n, to: customer } })
  yield* look
  expect(yield* is).toMatchObject({ status: "failed", problem: expect.stringContaining("money of yours") })
})

test("of two refunds with one transfer it is the one that says who gets it", function* () {
  const { id, is, look } = yield* withRefunds(hash("a"))
  const named = (yield* refunded(id, { amount: 7n, to: customer }))?.refund.id ?? expect.unreachable()
  yield* nameRefund(named, undefined, hash("a"))
  mined.set(hash("a"), { blockNumber: 150, status: "0x1", coin: { value: 7n, to: customer } })
  yield* look
  expect((yield* is).status).toBe("failed")
  expect(yield* Effect.flatMap(Reader, (reader) => Refunds.byId(reader, named))).toMatchObject({ status: "final" })
})

test("the lookup asks at once when a transaction is named", function* () {
  const { is, refund } = yield* withRefunds(hash("a"))
  const { run } = yield* refundLookup
  yield* Effect.forkScoped(run)
  mined.set(hash("b"), { blockNumber: 150, status: "0x1", coin: { value: 7n } })
  yield* nameRefund(refund, undefined, hash("b"))
  while ((yield* is).status !== "final") yield* Effect.yieldNow()
})

test("each change of what goes back is told, and that the chain has it for good", function* () {
  const { id, is, look, refund } = yield* withRefunds(hash("a"))
  yield* TestClock.adjust("61 minutes")
  yield* look
  mined.set(hash("a"), { blockNumber: 150, status: "0x1", coin: { value: 7n } })
  yield* TestClock.adjust("10 minutes")
  yield* look
  const bodies = yield* rows<{ body: string }>(
    "SELECT body FROM events WHERE kind IN ('payment.updated', 'refund.final') ORDER BY sequence"
  )
  const events = bodies.map(({ body }) => Schema.decodeUnknownSync(Schema.parseJson(WebhookEvent))(body))
  expect(events.map(({ data, event }) => [event, data.id, data.status, data.refunded, data.kept])).toEqual([
    ["payment.updated", id, "expired", "7", "8"],
    ["payment.updated", id, "expired", "0", "15"],
    ["payment.updated", id, "expired", "7", "8"],
    ["refund.final", id, "expired", "7", "8"]
  ])
  expect(events.at(-1)).toMatchObject({ refund: { id: refund, status: "final" }, data: { refunds: [{ id: refund }] } })
  expect((yield* is).status).toBe("final")
  expect(new Set(events.map((event) => event.id)).size).toBe(4)
})
