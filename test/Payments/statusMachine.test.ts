import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { Payment } from "../../src/Domain/Payment.ts"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import { exceptionsOf } from "../../src/Payments/exceptions.ts"
import type { Horizon } from "../../src/Payments/statusMachine.ts"
import { block, confirmations, created, lastOnTime, payment, receipt, run, scanned, states } from "./machine.ts"

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

  it("a top-up is stored", () => {
    const it = payment({ status: "detecting", amountReceived: 1n, txHash: "0xt101" })
    const steps = run(it, [receipt(it, { amount: 1n }), receipt(it, { amount: 5n, blockNumber: 102 })], scanned(102))
    expect(steps).toMatchObject([{ payment: { status: "detecting", amountReceived: 6n, txHash: "0xt101" } }])
  })

  it.each([
    [102, ["detecting!"]],
    [103, ["detecting!", "confirmed!"]]
  ])("scanned to %i, a receipt in block 101 gives %j", (head, expected) => {
    const it = payment()
    expect(states(run(it, [receipt(it)], scanned(head)))).toEqual(expected)
  })

  it("the transaction that completes the amount is the payment's, and dust behind it delays nothing", () => {
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

  it("the accepted underpayment is rounded in the merchant's favour", () => {
    const it = payment({ amount: 999n, toleranceBps: 100 })
    const short = (amount: bigint) => states(run(it, [receipt(it, { amount })], scanned(103)))
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

describe("what one provider alone reported of an earlier block", () => {
  const it_ = payment({ status: "detecting", amountReceived: 1000n, txHash: "0xtx" })
  it.each([
    ["is refuted or orphaned", false],
    ["is not decided", true]
  ])("and %s does not make a transaction be in time", (_, canonical) => {
    const alone = receipt(it_, { txHash: "0xtx", blockNumber: lastOnTime, corroborated: false, canonical })
    const mined = receipt(it_, { txHash: "0xtx", blockNumber: lastOnTime + 5 })
    expect(states(run(it_, [alone, mined], scanned(lastOnTime + 7)))).not.toContain("confirmed!")
  })

  it("does not make it newer than the payment", () => {
    const alone = receipt(it_, { txHash: "0xtx", blockNumber: 101, corroborated: false, canonical: false })
    const mined = receipt(it_, { txHash: "0xtx", blockNumber: 100 })
    expect(states(run(it_, [alone, mined], scanned(110)))).not.toContain("confirmed!")
    expect(states(run(it_, [{ ...alone, corroborated: true }, mined], scanned(110)))).toEqual(["confirmed!"])
  })
})

describe("unattributed and uncorroborated money", () => {
  const unattributed = { position: "unattributed", txHash: undefined, currency: "ETH" } as const
  const end = scanned(lastOnTime + confirmations)

  const [open, paid, short] = [["detecting!"], ["detecting!", "confirmed!"], ["detecting!", "failed!"]]
  it.each([
    ["without a transaction", open, [unattributed], scanned(200)],
    ["without a transaction, at the deadline", open, [unattributed], end],
    ["enough only with such money, at the deadline", open, [{ ...unattributed, amount: 400n }, { amount: 600n }], end],
    ["too little even with such money, at the deadline", short, [{ ...unattributed, amount: 1n }], end],
    [
      "after such money",
      open,
      [
        { ...unattributed, amount: 400n },
        { amount: 600n, blockNumber: 120 }
      ],
      scanned(200)
    ],
    ["that one provider reports", open, [{ corroborated: false }], scanned(200)],
    ["that one provider reports, at the deadline", open, [{ corroborated: false }], end],
    ["that a second provider corroborated, at the deadline", paid, [{}], end]
  ])("money %s gives %j", (_, expected, receipts: ReadonlyArray<Partial<Receipt>>, horizon) => {
    const it = payment({ currency: "ETH" })
    const all = receipts.map((each) => receipt(it, { position: "tx:1", ...each }))
    const steps = run(it, all, horizon)
    expect(states(steps)).toEqual(expected)
    expect(steps[0]?.payment.amountReceived).toBe(all.reduce((sum, { amount }) => sum + amount, 0n))
  })

  it("may be on time where its interval began before the deadline, and waits then (issue 14 row 10)", () => {
    const it = payment({ currency: "ETH", status: "detecting", amountReceived: 1000n })
    const found = (since: number) =>
      receipt(it, { ...unattributed, blockNumber: lastOnTime + 2, since: { number: since, time: block(since).time } })
    expect(run(it, [found(lastOnTime)], end)).toEqual([])
    expect(exceptionsOf(it, [found(lastOnTime)]).map(({ kind }) => kind)).toEqual(["unattributed"])
    expect(states(run(it, [found(lastOnTime + 1)], end))).toEqual(["pending", "expired!"])
    expect(exceptionsOf(it, [found(lastOnTime + 1)]).map(({ kind }) => kind)).toEqual(["late"])
  })

  it("is on time, and newer than the payment, each for itself", () => {
    const it = payment({ currency: "ETH" })
    const amounts = { 99: 70n, 101: 400n, [lastOnTime + 5]: 600n }
    const receipts = Object.entries(amounts).map(([blockNumber, amount]) =>
      receipt(it, { ...unattributed, blockNumber: Number(blockNumber), amount })
    )
    expect(run(it, receipts, end)[0]?.payment.amountReceived).toBe(400n)
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

  it("the confirmations are needed nevertheless", () => {
    expect(states(run(it_, [receipt(it_)], scanned(102, { requires: "safe", safe: 102 })))).toEqual(["detecting!"])
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
          corroborated: fc.boolean(),
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
        const newer = new Set(
          fits.filter((each) => each.blockNumber > 100 && each.corroborated).map((each) => each.txHash)
        )
        const right = fits.filter(
          (each) => each.txHash !== undefined && each.canonical && each.corroborated && newer.has(each.txHash)
        )
        const paid = right
          .filter((each) => each.blockNumber <= lastOnTime && head - each.blockNumber + 1 >= confirmations)
          .reduce((sum, each) => sum + each.amount, 0n)
        expect(run(start, all, scanned(head)).at(-1)?.payment.status === "confirmed").toBe(paid >= 1000n)
      }),
      { numRuns: 500 }
    ))
})
