import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { Payment } from "../../src/Domain/Payment.ts"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import { exceptionsOf } from "../../src/Payments/exceptions.ts"
import { advance, type Horizon, hasUpdate } from "../../src/Payments/statusMachine.ts"
import { block, confirmations, created, lastOnTime, payment, receipt, run, scanned, second, states } from "./machine.ts"

/** The end of a payment whose balances have been compared. */
const over = scanned(lastOnTime + confirmations)
/** The deadline has passed, and no block behind it is deep. */
const late = scanned(lastOnTime + 1, { settled: undefined })
const [alone, stray] = [{ corroborated: false }, { chain: "optimism" }] as const
const coins = { position: "unattributed", txHash: undefined, currency: "ETH" } as const
const inParts = [{ amount: 500n }, { amount: 500n, blockNumber: 102 }]
const inCoins = { currency: "ETH" } as const
const tolerant = { amount: 999n, toleranceBps: 100 }
const belowTag = { requires: "finalized", finalized: 101 } as const
const [open, paid] = [["detecting!"], ["detecting!", "confirmed!"]]

describe("a payment's states by what came: of", () => {
  it.each<[string, Partial<Payment>, ReadonlyArray<Partial<Receipt>>, Horizon, ReadonlyArray<string>]>([
    ["nothing, while time is left", {}, [], scanned(200), []],
    ["a receipt that lacks a confirmation", {}, [{}], scanned(102), open],
    ["a receipt with its confirmations", {}, [{}], scanned(103), paid],
    ["what the tolerance accepts, rounded in the merchant's favour", tolerant, [{ amount: 990n }], scanned(103), paid],
    ["one unit less than that", tolerant, [{ amount: 989n }], scanned(103), open],
    // It does not count.
    ["another token", {}, [{ currency: "USDT" }], late, []],
    ["another chain", {}, [stray], late, []],
    ["an orphaned block", {}, [{ canonical: false }], late, []],
    ["the block of the payment's creation", {}, [{ blockNumber: 100 }], late, []],
    ["a block after the deadline", {}, [{ blockNumber: lastOnTime + 1 }], late, []],
    ["anything, while the chain's first head is unknown", { createdHead: undefined }, [{}], scanned(110), []],
    // Unattributed and uncorroborated money.
    ["coins without a transaction", inCoins, [coins], scanned(200), open],
    ["coins without a transaction, in the end", inCoins, [coins], over, open],
    ["enough only with such money, in the end", inCoins, [{ ...coins, amount: 400n }, { amount: 600n }], over, open],
    ["too little even with it, in the end", inCoins, [{ ...coins, amount: 1n }], over, ["detecting!", "failed!"]],
    [
      "money after it",
      inCoins,
      [
        { ...coins, amount: 400n },
        { amount: 600n, blockNumber: 120 }
      ],
      scanned(200),
      open
    ],
    ["what one provider reports", inCoins, [alone], scanned(200), open],
    ["what one provider reports, in the end", inCoins, [alone], over, open],
    ["what a second one corroborated, in the end", inCoins, [{}], over, paid],
    // A policy by value asks for a tag.
    ["money while no tag is known", {}, inParts, scanned(200, { requires: "finalized" }), open],
    ["money above the tag", {}, inParts, scanned(200, belowTag), open],
    ["money that another tag reached", {}, inParts, scanned(200, { ...belowTag, safe: 150 }), open],
    ["money that the tag has reached", {}, inParts, scanned(200, { requires: "safe", safe: 102 }), paid],
    ["money, where no tag is asked for", {}, inParts, scanned(200, { finalized: 1 }), paid],
    ["money below a tag without its confirmations", {}, [{}], scanned(102, { requires: "safe", safe: 102 }), open],
    // Time is over.
    ["only orphaned money", {}, [{ canonical: false }], over, ["expired!"]],
    ["only a wrong token that a reorg took", {}, [{ canonical: false, currency: "USDT" }], over, ["expired!"]],
    ["only a wrong token of its creation's block", {}, [{ blockNumber: 100, currency: "USDT" }], over, ["expired!"]],
    ["only money older than the payment", {}, [{ blockNumber: 90, currency: "USDT" }], over, ["expired!"]],
    ["only coins for a token, of one provider", {}, [{ ...coins, ...alone }], over, ["expired!"]],
    ["only late money", {}, [{ blockNumber: lastOnTime + 1 }], over, ["expired!"]]
  ])("%s", (_, of, receipts, horizon, expected) => {
    const it = payment(of)
    const all = receipts.map((each) => receipt(it, { position: "tx:1", ...each }))
    const steps = run(it, all, horizon)
    expect(states(steps)).toEqual(expected)
    const [first] = steps
    if (first?.payment.status !== "detecting") return
    expect(first.payment.amountReceived).toBe(all.reduce((sum, { amount }) => sum + amount, 0n))
  })

  it("only coins without a transaction that one provider shows: they are detected, and it expires", () => {
    const it = payment()
    const shown = receipt(it, { ...alone, amount: 999n, position: "unattributed", txHash: undefined })
    expect(states(run(it, [shown], over)).at(-1)).toBe("expired!")
  })

  it.each<[string, ReadonlyArray<Partial<Receipt>>, string]>([
    ["too little", [{ amount: 999n }], "insufficient_amount"],
    ["too little, and a wrong token", [{ amount: 999n }, { currency: "USDT" }], "insufficient_amount"],
    ["another token", [{ currency: "USDT" }], "wrong_token"],
    ["the gas coin for a token", [{ currency: "ETH", position: "tx:0" }], "wrong_token"],
    ["a token of another chain's contract", [{ currency: "USDC", ...stray }], "wrong_chain"],
    ["wrong token before wrong chain", [{ currency: "USDC.e" }, stray], "wrong_token"]
  ])("%s, in the end", (_, receipts, failureReason) => {
    const it = payment()
    const all = receipts.map((each, place) => receipt(it, { position: `log:${place}`, ...each }))
    expect(run(it, all, over).at(-1)).toMatchObject({ announced: true, payment: { status: "failed", failureReason } })
  })
})

describe("money arrives", () => {
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
})

describe("a transaction", () => {
  it("that was on time stays on time when a reorg mines it late", () => {
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

describe("unattributed money", () => {
  it("may be on time where its interval began before the deadline, and waits then", () => {
    const it = payment({ currency: "ETH", status: "detecting", amountReceived: 1000n })
    const found = (since: number) =>
      receipt(it, { ...coins, blockNumber: lastOnTime + 2, since: { number: since, time: block(since).time } })
    expect(run(it, [found(lastOnTime)], over)).toEqual([])
    expect(exceptionsOf(it, [found(lastOnTime)]).map(({ kind }) => kind)).toEqual(["unattributed"])
    expect(states(run(it, [found(lastOnTime + 1)], over))).toEqual(["pending", "expired!"])
    expect(exceptionsOf(it, [found(lastOnTime + 1)]).map(({ kind }) => kind)).toEqual(["late"])
  })

  it("is on time, and newer than the payment, each for itself", () => {
    const it = payment({ currency: "ETH" })
    const amounts = { 99: 70n, 101: 400n, [lastOnTime + 5]: 600n }
    const receipts = Object.entries(amounts).map(([blockNumber, amount]) =>
      receipt(it, { ...coins, blockNumber: Number(blockNumber), amount })
    )
    expect(run(it, receipts, over)[0]?.payment.amountReceived).toBe(400n)
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

describe("time is over", () => {
  it("only in the first scan in which a block past the deadline has the chain's confirmations", () => {
    const it = payment()
    const firstPast = lastOnTime + 1
    expect(run(it, [], scanned(firstPast + confirmations - 2))).toEqual([])
    expect(states(run(it, [], scanned(firstPast + confirmations - 1)))).toEqual(["expired!"])
  })

  it("never while the scan is behind, whatever the clock says", () => {
    const it = payment()
    expect(advance(it, [], scanned(150), created + 10 * 86_400 * second)).toEqual([])
    const young = scanned(2, { settled: undefined, checked: undefined })
    expect(advance(it, [], young, created + 86_400 * second)).toEqual([])
  })

  it("enough, but not yet deep, stays detecting and confirms later", () => {
    const it = payment({ status: "detecting", amountReceived: 1000n, txHash: `0xt${lastOnTime}` })
    const receipts = [receipt(it, { blockNumber: lastOnTime })]
    const slow = scanned(lastOnTime + 1, { settled: block(lastOnTime + 1) })
    expect(run(it, receipts, slow)).toEqual([])
    expect(states(run(it, receipts, scanned(lastOnTime + 2)))).toEqual(["confirmed!"])
  })
})

describe("what has to be checked before a payment ends", () => {
  const end = lastOnTime + confirmations

  it("its own chain's balances, past the deadline", () => {
    const it = payment()
    expect(run(it, [], scanned(end, { checked: undefined }))).toEqual([])
    expect(run(it, [], scanned(end, { checked: block(lastOnTime) }))).toEqual([])
    expect(states(run(it, [], scanned(end, { checked: block(lastOnTime + 1) })))).toEqual(["expired!"])
  })

  it("the other chains, before a payment ends without money", () => {
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

const having = (amountReceived: bigint): Payment => payment({ status: "detecting", amountReceived, amount: 1000n })

describe("what remains of a payment has changed", () => {
  it.each([
    [100n, 110n, "by a hundredth of the amount"],
    [600n, 300n, "since a reorg removed a part"],
    [999n, 1000n, "to nothing, however little was missing"],
    [1000n, 999n, "from nothing"]
  ])("from %d to %d of 1000: %s", (was, is) => {
    expect(hasUpdate(having(was), having(is))).toBe(true)
  })

  it.each([
    [100n, 109n, "less than a hundredth of the amount"],
    [500n, 500n, "the same"],
    [1000n, 1500n, "nothing was missing before, either"],
    [1500n, 1000n, "nothing is missing yet"]
  ])("not from %d to %d of 1000: %s", (was, is) => {
    expect(hasUpdate(having(was), having(is))).toBe(false)
  })

  it("is measured by what counts as the amount", () => {
    const tolerant = (received: bigint): Payment => ({ ...having(received), toleranceBps: 100 })
    expect(hasUpdate(tolerant(989n), tolerant(990n))).toBe(true)
    expect(hasUpdate(tolerant(990n), tolerant(1000n))).toBe(false)
  })
})

describe("a detecting payment", () => {
  const it_ = payment({ status: "detecting", amountReceived: 400n, txHash: "0xt101" })
  const first = receipt(it_, { amount: 400n })
  const next = (amount: bigint) => receipt(it_, { amount, blockNumber: 102 })

  it("is announced again with each update, which it counts", () => {
    const steps = run(it_, [first, next(100n)], scanned(102))
    expect(states(steps)).toEqual(["detecting!"])
    expect(steps[0]?.payment).toMatchObject({ updates: 1, amountReceived: 500n })
    const again = run({ ...it_, ...steps[0]?.payment }, [first], scanned(102))
    expect(again[0]).toMatchObject({ announced: true, payment: { updates: 2, amountReceived: 400n } })
  })

  it("is stored without an event for less", () => {
    const steps = run(it_, [first, next(9n)], scanned(102))
    expect(steps).toMatchObject([{ announced: false, payment: { updates: 0, amountReceived: 409n } }])
  })

  it("is announced, and confirmed then, by one scan that finds the rest deep enough", () => {
    const steps = run(it_, [first, next(600n)], scanned(104))
    expect(states(steps)).toEqual(["detecting!", "confirmed!"])
    expect(steps.map((step) => step.payment.updates)).toEqual([1, 1])
  })

  it("has no update with its first money, nor when a reorg removes all of it", () => {
    const [detected] = run(payment(), [receipt(it_, { amount: 400n })], scanned(101))
    expect(detected).toMatchObject({ announced: true, payment: { status: "detecting", updates: 0 } })
    expect(states(run(it_, [{ ...first, canonical: false }], scanned(102)))).toEqual(["pending"])
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
