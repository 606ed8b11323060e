import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { Payment } from "../../src/Domain/Payment.ts"
import type { BlockRef, Receipt } from "../../src/Domain/Receipt.ts"
import { advance, type Horizon, type Rules, undone } from "../../src/Payments/statusMachine.ts"
import { somePayment } from "../lib/payments.ts"

const second = 1000
const created = 1_700_000_000 * second
const rules: Rules = { settleGrace: 60 * second, toleranceBps: 0 }
const confirmations = 3

const payment = (over: Partial<Payment> = {}): Payment =>
  somePayment({ currency: "USDC", createdAt: created, expiresAt: created + 3600 * second, ...over })

const receipt = (of: Payment, over: Partial<Receipt> = {}): Receipt => {
  const blockNumber = over.blockNumber ?? 101
  return {
    chain: of.chain,
    mode: of.mode,
    blockHash: `0x${blockNumber}`,
    blockNumber,
    blockTime: created / second + (blockNumber - 100),
    address: of.address,
    position: "log:0",
    txHash: `0xt${blockNumber}`,
    currency: of.currency,
    amount: 1000n,
    payment: of.id,
    canonical: true,
    agreed: true,
    seenAt: created,
    ...over
  }
}

const block = (number: number, time = created / second + (number - 100)): BlockRef => ({
  number,
  hash: `0x${number}`,
  time
})

/** A scan at `head` on a chain with a block a second, whose balances have been compared there. */
const scanned = (head: number, over: Partial<Horizon> = {}): Horizon => ({
  head,
  confirmations,
  settled: block(head - confirmations + 1),
  checked: block(head),
  safe: undefined,
  finalized: undefined,
  requires: undefined,
  elsewhereChecked: true,
  ...over
})

const lastOnTime = 100 + 3600 + 60
const states = (steps: ReturnType<typeof advance>) =>
  steps.map((step) => `${step.payment.status}${step.announced ? "!" : ""}`)

const run = (of: Payment, receipts: ReadonlyArray<Receipt>, horizon: Horizon, by: Rules = rules) =>
  advance(of, receipts, horizon, by, created)

describe("money arrives", () => {
  it("nothing came and time is left: nothing happens", () => {
    expect(run(payment(), [], scanned(200))).toEqual([])
  })

  it("the first receipt, even partial, is detected", () => {
    const it = payment()
    const [step] = run(it, [receipt(it, { amount: 1n })], scanned(101))
    expect(step).toMatchObject({
      announced: true,
      payment: { status: "detecting", amountReceived: 1n, txHash: "0xt101" }
    })
  })

  it("a top-up is stored without an event", () => {
    const it = payment({ status: "detecting", amountReceived: 1n, txHash: "0xt101" })
    const steps = run(it, [receipt(it, { amount: 1n }), receipt(it, { amount: 5n, blockNumber: 102 })], scanned(102))
    expect(steps).toMatchObject([
      { announced: false, payment: { status: "detecting", amountReceived: 6n, txHash: "0xt101" } }
    ])
  })

  it.each([
    [102, ["detecting!"]],
    [103, ["detecting!", "confirmed!"]]
  ])("scanned to %i, a receipt in block 101 gives %j", (head, expected) => {
    const it = payment()
    expect(states(run(it, [receipt(it)], scanned(head)))).toEqual(expected)
  })

  it("the transaction that crosses the line is the payment's, and dust behind it holds nothing up", () => {
    const it = payment({ status: "detecting", amountReceived: 600n, txHash: "0xt101" })
    const receipts = [
      receipt(it, { blockNumber: 103, txHash: "0xdust", amount: 1n, position: "log:7" }),
      receipt(it, { blockNumber: 101, amount: 600n }),
      receipt(it, { blockNumber: 102, txHash: "0xcross", position: "log:10", amount: 400n }),
      receipt(it, { blockNumber: 102, txHash: "0xearlier", position: "log:9", amount: 10n })
    ]
    const steps = run(it, receipts, scanned(104))
    expect(steps.at(-1)).toMatchObject({
      payment: { status: "confirmed", txHash: "0xcross", confirmedAt: created, amountReceived: 1011n }
    })
  })

  it("two transfers of one transaction in one block both count", () => {
    const it = payment()
    const receipts = [receipt(it, { amount: 500n }), receipt(it, { amount: 500n, position: "log:1" })]
    expect(states(run(it, receipts, scanned(103)))).toEqual(["detecting!", "confirmed!"])
  })

  it("the accepted underpayment is rounded in the merchant's favour", () => {
    const it = payment({ amount: 999n })
    const short = (amount: bigint) =>
      states(run(it, [receipt(it, { amount })], scanned(103), { ...rules, toleranceBps: 100 }))
    expect(short(990n)).toEqual(["detecting!", "confirmed!"])
    expect(short(989n)).toEqual(["detecting!"])
  })
})

describe("money that does not count", () => {
  const it_ = payment()
  it.each<[string, Partial<Receipt>]>([
    ["another token", { currency: "USDT" }],
    ["another chain", { chain: "optimism" }],
    ["an orphaned block", { canonical: false }],
    ["the block of the payment's creation", { blockNumber: 100 }],
    ["a block after the deadline", { blockNumber: lastOnTime + 1 }]
  ])("%s", (_, over) => {
    expect(run(it_, [receipt(it_, over)], scanned(lastOnTime + 1, { settled: undefined }))).toEqual([])
  })

  it("anything, while the chain's first head is unknown", () => {
    const it = payment({ createdHead: undefined })
    expect(run(it, [receipt(it)], scanned(110))).toEqual([])
  })

  it("a transaction that was on time stays on time when a reorg mines it late", () => {
    const it = payment({ status: "detecting", amountReceived: 1000n, txHash: "0xtx" })
    const receipts = [
      receipt(it, { txHash: "0xtx", blockNumber: lastOnTime, canonical: false }),
      receipt(it, { txHash: "0xtx", blockNumber: lastOnTime + 5 })
    ]
    expect(states(run(it, receipts, scanned(lastOnTime + 7)))).toEqual(["confirmed!"])
  })
})

describe("time is over", () => {
  it("only in the first scan in which a block past the deadline has the chain's confirmations", () => {
    const it = payment()
    const firstPast = lastOnTime + 1
    expect(run(it, [], scanned(firstPast + confirmations - 2))).toEqual([])
    expect(states(run(it, [], scanned(firstPast + confirmations - 1)))).toEqual(["expired!"])
  })

  it("never while the scan is behind, whatever the clock says", () => {
    const it = payment()
    expect(advance(it, [], scanned(150), rules, created + 10 * 86_400 * second)).toEqual([])
    const young = scanned(2, { settled: undefined, checked: undefined })
    expect(advance(it, [], young, rules, created + 86_400 * second)).toEqual([])
  })

  const over = scanned(lastOnTime + confirmations)
  it.each<[string, ReadonlyArray<Partial<Receipt>>, string]>([
    ["too little", [{ amount: 999n }], "insufficient_amount"],
    [
      "too little, and a wrong token",
      [{ amount: 999n }, { currency: "USDT", position: "log:1" }],
      "insufficient_amount"
    ],
    ["another token", [{ currency: "USDT" }], "wrong_token"],
    ["the gas coin for a token", [{ currency: "ETH", position: "tx:0" }], "wrong_token"],
    ["a token of another chain's contract", [{ currency: "USDC", chain: "optimism" }], "wrong_chain"],
    ["wrong token before wrong chain", [{ currency: "USDC.e" }, { chain: "optimism" }], "wrong_token"]
  ])("%s fails", (_, receipts, reason) => {
    const it = payment()
    const last = run(
      it,
      receipts.map((each) => receipt(it, each)),
      over
    ).at(-1)
    expect(last).toMatchObject({ announced: true, payment: { status: "failed", failureReason: reason } })
  })

  it.each<[string, Partial<Receipt>]>([
    ["only orphaned money", { canonical: false }],
    ["only money older than the payment", { blockNumber: 90, currency: "USDT" }],
    ["only late money", { blockNumber: lastOnTime + 1 }]
  ])("%s expires", (_, each) => {
    const it = payment()
    expect(states(run(it, [receipt(it, each)], over))).toEqual(["expired!"])
  })

  it("enough, but not yet deep, stays detecting and confirms later", () => {
    const it = payment({ status: "detecting", amountReceived: 1000n, txHash: `0xt${lastOnTime}` })
    const receipts = [receipt(it, { blockNumber: lastOnTime })]
    const slow = scanned(lastOnTime + 1, { settled: block(lastOnTime + 1) })
    expect(run(it, receipts, slow)).toEqual([])
    expect(states(run(it, receipts, scanned(lastOnTime + 2)))).toEqual(["confirmed!"])
  })
})

describe("what has to be looked at before a payment ends", () => {
  const end = lastOnTime + confirmations

  it("its own chain's balances, past the deadline", () => {
    const it = payment()
    expect(run(it, [], scanned(end, { checked: undefined }))).toEqual([])
    expect(run(it, [], scanned(end, { checked: block(lastOnTime) }))).toEqual([])
    expect(states(run(it, [], scanned(end, { checked: block(lastOnTime + 1) })))).toEqual(["expired!"])
  })

  it("the other chains, before it is said that nothing came", () => {
    const it = payment()
    expect(run(it, [], scanned(end, { elsewhereChecked: false }))).toEqual([])
  })

  it.each<[string, Partial<Receipt>, string]>([
    ["too little", { amount: 1n }, "insufficient_amount"],
    ["a wrong token", { currency: "USDT" }, "wrong_token"],
    ["what is known of another chain", { chain: "optimism" }, "wrong_chain"]
  ])("no other chain for %s", (_, over, failureReason) => {
    const it = payment()
    const steps = run(it, [receipt(it, over)], scanned(end, { elsewhereChecked: false }))
    expect(steps.at(-1)).toMatchObject({ payment: { status: "failed", failureReason, endedAt: created } })
  })
})

describe("money that nobody can vouch for", () => {
  const untold = { position: "unattributed", txHash: undefined, currency: "ETH" } as const
  const end = scanned(lastOnTime + confirmations)

  it("without a transaction is detected and counted, and never confirms", () => {
    const it = payment({ currency: "ETH" })
    const steps = run(it, [receipt(it, untold)], scanned(200))
    expect(states(steps)).toEqual(["detecting!"])
    expect(steps[0]?.payment).toMatchObject({ amountReceived: 1000n, txHash: undefined })
  })

  it("enough only with it at the deadline: stays detecting", () => {
    const it = payment({ currency: "ETH", status: "detecting", amountReceived: 1000n })
    expect(run(it, [receipt(it, untold)], end)).toEqual([])
    const both = [
      receipt(it, { ...untold, amount: 400n }),
      receipt(it, { currency: "ETH", amount: 600n, position: "tx:1" })
    ]
    expect(states(run(it, both, end))).toEqual(["detecting"])
  })

  it("too little even with it at the deadline: fails as any other", () => {
    const it = payment({ currency: "ETH" })
    expect(states(run(it, [receipt(it, { ...untold, amount: 1n })], end))).toEqual(["detecting!", "failed!"])
  })

  it("not agreed by a second provider is detected, and confirms once it is; until then it does not fail", () => {
    const it = payment()
    expect(states(run(it, [receipt(it, { agreed: false })], scanned(200)))).toEqual(["detecting!"])
    expect(states(run(it, [receipt(it, { agreed: false })], end))).toEqual(["detecting!"])
    expect(states(run(it, [receipt(it)], end))).toEqual(["detecting!", "confirmed!"])
  })
})

describe("the order within a block", () => {
  it("is that of transactions, then logs, then what came from inside contracts, each by its index", () => {
    const it = payment({ currency: "ETH", amount: 4n })
    const one = (position: string) => receipt(it, { currency: "ETH", amount: 1n, position, txHash: position })
    const all = ["call:0xb", "log:10", "call:0xa", "tx:10", "tx:9", "log:9"].map(one)
    for (const [amount, last] of [
      [1n, "tx:9"],
      [2n, "tx:10"],
      [3n, "log:9"],
      [4n, "log:10"],
      [5n, "call:0xa"],
      [6n, "call:0xb"]
    ] as const) {
      expect(run({ ...it, amount }, all, scanned(103)).at(-1)?.payment.txHash).toBe(last)
    }
  })
})

describe("policies by value", () => {
  const it_ = payment()
  it.each<[string, Partial<Horizon>, ReadonlyArray<string>]>([
    ["no tag is known", { requires: "finalized" }, ["detecting!"]],
    ["the tag is below the crossing block", { requires: "finalized", finalized: 101 }, ["detecting!"]],
    ["only the other tag is above it", { requires: "finalized", safe: 150, finalized: 101 }, ["detecting!"]],
    ["the tag has reached it", { requires: "safe", safe: 102 }, ["detecting!", "confirmed!"]],
    ["none is asked for", { finalized: 1 }, ["detecting!", "confirmed!"]]
  ])("%s", (_, over, expected) => {
    const receipts = [receipt(it_, { amount: 500n }), receipt(it_, { amount: 500n, blockNumber: 102 })]
    expect(states(run(it_, receipts, scanned(200, over)))).toEqual(expected)
  })

  it("the confirmations are needed all the same", () => {
    expect(states(run(it_, [receipt(it_)], scanned(102, { requires: "safe", safe: 102 })))).toEqual(["detecting!"])
  })
})

describe("a confirmed payment that a reorg undid", () => {
  const confirmed = payment({
    status: "confirmed",
    amountReceived: 1000n,
    txHash: "0xt101",
    confirmedAt: created,
    endedAt: created
  })
  const gone = receipt(confirmed, { canonical: false })
  const later = created + 99
  const undo = (of: Payment, receipts: ReadonlyArray<Receipt>, horizon: Horizon) =>
    undone(of, receipts, horizon, rules, later)

  it("fails once the new branch is final, and keeps when and by what it was confirmed", () => {
    expect(undo(confirmed, [gone], scanned(400, { finalized: 100 }))).toBeUndefined()
    expect(undo(confirmed, [gone], scanned(103, { finalized: 101 }))).toEqual({
      announced: true,
      payment: { ...confirmed, status: "failed", failureReason: "reorged", amountReceived: undefined, endedAt: later }
    })
  })

  it("without a finalized tag, when the block is deeper than four times the confirmations", () => {
    expect(undo(confirmed, [gone], scanned(101 + 4 * confirmations - 1))).toBeUndefined()
    expect(undo(confirmed, [gone], scanned(101 + 4 * confirmations))?.payment.failureReason).toBe("reorged")
  })

  it.each<[string, ReadonlyArray<Partial<Receipt>>]>([
    ["the transaction is in another block", [{ txHash: "0xt101", blockNumber: 102 }]],
    ["it came back", [{ txHash: "0xt101" }]],
    ["another transaction pays", [{ txHash: "0xother", blockNumber: 103 }]],
    [
      "nobody can tell which transaction brought it again",
      [{ txHash: undefined, position: "unattributed", blockNumber: 103 }]
    ]
  ])("stays confirmed: %s", (_, others) => {
    const all = [gone, ...others.map((other) => receipt(confirmed, other))]
    expect(undo(confirmed, all, scanned(400, { finalized: 300 }))).toBeUndefined()
  })

  it("an accepted one is measured by what it was accepted for", () => {
    const final = scanned(400, { finalized: 300 })
    const partial = { ...confirmed, amountReceived: 900n }
    const again = receipt(partial, { txHash: "0xt101", blockNumber: 102, amount: 900n })
    expect(undo(partial, [{ ...gone, amount: 900n }, again], final)).toBeUndefined()
    expect(undo(partial, [{ ...gone, amount: 900n }], final)?.payment.failureReason).toBe("reorged")
    const late = { ...confirmed, amountReceived: undefined, txHash: "0xlate" }
    const money = receipt(late, { txHash: "0xlate", blockNumber: lastOnTime + 9 })
    expect(undo(late, [money], final)).toBeUndefined()
    expect(undo(late, [{ ...money, canonical: false }], scanned(9999))?.payment.failureReason).toBe("reorged")
  })

  it("a deep reorg that mines it below the head of the payment's creation takes nothing", () => {
    const lower = receipt(confirmed, { txHash: "0xt101", blockNumber: 99 })
    expect(undo(confirmed, [gone, lower], scanned(400, { finalized: 300 }))).toBeUndefined()
  })

  it.each(["pending", "detecting", "expired", "failed"] as const)("no %s payment is undone", (status) => {
    expect(undo(payment({ status }), [gone], scanned(9999))).toBeUndefined()
  })
})

describe("reorgs", () => {
  it("orphaned before confirmation: pending again, no event, nothing shown of it", () => {
    const it = payment({ status: "detecting", amountReceived: 1000n, txHash: "0xt101" })
    const [step, ...more] = run(it, [receipt(it, { canonical: false })], scanned(101))
    expect(more).toEqual([])
    expect(step).toMatchObject({
      announced: false,
      payment: { status: "pending", amountReceived: undefined, txHash: undefined }
    })
  })

  it("the same transaction in another block counts once", () => {
    const it = payment({ status: "detecting", amountReceived: 1000n, txHash: "0xtx" })
    const receipts = [
      receipt(it, { txHash: "0xtx", canonical: false }),
      receipt(it, { txHash: "0xtx", blockNumber: 102, position: "log:4" })
    ]
    expect(run(it, receipts, scanned(102))).toEqual([])
    expect(run(it, receipts, scanned(104)).at(-1)?.payment).toMatchObject({
      status: "confirmed",
      amountReceived: 1000n
    })
  })
})

describe("for any history", () => {
  const receipts = (of: Payment) =>
    fc
      .array(
        fc.record({
          blockNumber: fc.integer({ min: 95, max: lastOnTime + 20 }),
          amount: fc.bigInt(1n, 1500n),
          currency: fc.constantFrom("USDC", "USDT", "ETH"),
          chain: fc.constantFrom("base" as const, "optimism" as const),
          canonical: fc.boolean(),
          agreed: fc.boolean(),
          position: fc.nat(50).map((i) => `log:${i}`),
          txHash: fc.nat(8).map((i) => `0xt${i}`)
        }),
        { maxLength: 8 }
      )
      .map((all) =>
        // One in nine is of no known transaction.
        all.map((each) =>
          receipt(of, each.txHash === "0xt8" ? { ...each, txHash: undefined, position: "unattributed" } : each)
        )
      )

  const start = payment()

  it("an end state is final", () =>
    fc.assert(
      fc.property(
        fc.constantFrom("confirmed", "expired", "failed"),
        receipts(start),
        fc.integer({ min: 100, max: 5000 }),
        (status, all, head) => {
          expect(run(payment({ status } as Partial<Payment>), all, scanned(head))).toEqual([])
        }
      )
    ))

  it("deciding twice on the same facts changes nothing the second time", () =>
    fc.assert(
      fc.property(receipts(start), fc.integer({ min: 100, max: 5000 }), (all, head) => {
        const settled = run(start, all, scanned(head)).at(-1)?.payment ?? start
        expect(run(settled, all, scanned(head))).toEqual([])
      })
    ))

  it("confirmed exactly when deep, canonical, on-time money of the right kind suffices", () =>
    fc.assert(
      fc.property(receipts(start), fc.integer({ min: 100, max: lastOnTime }), (all, head) => {
        const fits = all.filter((each) => each.currency === "USDC" && each.chain === "base")
        const newer = new Set(fits.filter((each) => each.blockNumber > 100).map((each) => each.txHash))
        const right = fits.filter(
          (each) => each.txHash !== undefined && each.canonical && each.agreed && newer.has(each.txHash)
        )
        const paid = right
          .filter((each) => each.blockNumber <= lastOnTime && head - each.blockNumber + 1 >= confirmations)
          .reduce((sum, each) => sum + each.amount, 0n)
        expect(run(start, all, scanned(head)).at(-1)?.payment.status === "confirmed").toBe(paid >= 1000n)
      }),
      { numRuns: 500 }
    ))
})
