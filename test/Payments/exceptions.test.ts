import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { ChainName } from "../../src/Domain/Chain.ts"
import { nativeToken } from "../../src/Domain/Currency.ts"
import type { ExceptionContent } from "../../src/Domain/Exception.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import type { Receipt } from "../../src/Domain/Receipt.ts"
import { exceptionsOf, unknownMoney } from "../../src/Payments/exceptions.ts"
import { withoutGas } from "../../src/Payments/standing.ts"
import { lastOnTime, payment as openPayment, receipt as receiptOf } from "./machine.ts"

/** When the payment ended, where it did. */
const endedAt = 500_000
const payment = (over: Partial<Payment> = {}) => openPayment({ status: "detecting", ...over })

/** Stored when its block was mined. */
const receipt = (txHash: string, blockNumber: number, amount: bigint, over: Partial<Receipt> = {}): Receipt =>
  receiptOf(payment(), { txHash, blockNumber, amount, seenAt: blockNumber * 1000, ...over })

const confirmed = (over: Partial<Payment> = {}) =>
  payment({ status: "confirmed", amountReceived: 1000n, txHash: "0xa", confirmedAt: endedAt, endedAt, ...over })

const sponsor = `0x${"5".repeat(40)}`

const found = (of: Payment, ...receipts: ReadonlyArray<Receipt>) =>
  exceptionsOf(of, withoutGas(of, receipts, sponsor)).map(({ amount, kind, txHash }) => `${kind} ${amount} ${txHash}`)

/** Money whose transaction is not known. */
const unattributed = (blockNumber: number, amount: bigint, over: Partial<Receipt> = {}) =>
  receipt("", blockNumber, amount, { txHash: undefined, position: "unattributed", ...over })

const after = endedAt / 1000 + 10

describe("an internal transfer that one provider reports, and no other can check", () => {
  const oneProviders = { currency: "ETH", position: "call:0xa", corroborated: false, unverifiable: true } as const
  const coins = payment({ currency: "ETH" })

  it.each<[string, Payment, number, Partial<Receipt>, ReadonlyArray<string>]>([
    ["is unattributed, as money without a transaction is", coins, 101, {}, ["unattributed 5 0xa"]],
    ["is so after the deadline", coins, lastOnTime + 1, {}, ["unattributed 5 0xa"]],
    ["is so on another chain", coins, 101, { chain: "optimism" }, ["unattributed 5 0xa"]],
    ["is so for a token", payment(), 101, {}, ["unattributed 5 0xa"]],
    ["is none while others are still asked", coins, 101, { unverifiable: false }, []],
    ["is none of the blocks before the payment", coins, 90, {}, []],
    ["is none once a reorg took it", coins, 101, { canonical: false }, []],
    ["is none once another one has it", coins, 101, { corroborated: true }, []]
  ])("%s", (_, of, block, over, expected) => {
    expect(found(of, receipt("0xa", block, 5n, { ...oneProviders, ...over }))).toEqual(expected)
  })

  it("is money of a lost payment, too", () => {
    const lost = unknownMoney([receipt("0xa", 101, 5n, oneProviders)])
    expect(lost).toMatchObject([{ kind: "unknown_payment", amount: 5n }])
  })
})

describe("money beyond the amount", () => {
  it("is none while the payment is open, nor with the exact amount", () => {
    expect(found(payment(), receipt("0xa", 101, 1500n), receipt("0xb", 102, 5n))).toEqual([])
    expect(found(confirmed(), receipt("0xa", 101, 1000n))).toEqual([])
  })

  it("overpaid: what the transaction that crosses the amount brings beyond it, in all its transfers", () => {
    const all = [receipt("0x0", 101, 600n), receipt("0xa", 102, 500n), receipt("0xa", 102, 7n, { position: "log:9" })]
    expect(found(confirmed(), ...all)).toEqual(["overpaid 107 0xa"])
  })

  it("overpaid: each further transaction, before and after the confirmation", () => {
    const all = [receipt("0xa", 101, 1000n), receipt("0xb", 102, 20n), receipt("0xc", after, 1000n)]
    expect(found(confirmed(), ...all)).toEqual(["overpaid 20 0xb", "overpaid 1000 0xc"])
  })

  it("overpaid: also one that was mined before the crossing and found after the confirmation", () => {
    const late = receipt("0xb", 101, 30n, { seenAt: endedAt + 1 })
    expect(found(confirmed(), late, receipt("0xa", 102, 1000n))).toEqual(["overpaid 30 0xb"])
  })

  it("what was found in the commit that confirmed it was known then", () => {
    const before = receipt("0xb", 101, 30n, { seenAt: endedAt })
    expect(found(confirmed(), before, receipt("0xa", 102, 1000n, { seenAt: endedAt }))).toEqual(["overpaid 30 0xa"])
  })

  it("no transaction has a surplus above what it brought", () => {
    const all = [receipt("0x0", 101, 1100n), receipt("0xa", 102, 1000n)]
    expect(found(confirmed(), ...all)).toEqual(["overpaid 100 0x0", "overpaid 1000 0xa"])
  })

  it("unattributed money is not overpaid", () => {
    const all = [receipt("0xa", 101, 1000n), unattributed(103, 30n)]
    expect(found(confirmed(), ...all)).toEqual(["unattributed 30 undefined"])
  })

  it("making up for what the tolerance or an operator accepted is neither", () => {
    const partial = confirmed({ amountReceived: 900n })
    expect(found(partial, receipt("0xa", 101, 900n), receipt("0xb", after, 60n))).toEqual([])
    expect(found(partial, receipt("0xa", 101, 900n), receipt("0xb", after, 160n))).toEqual(["overpaid 60 0xb"])
  })

  it("accepted money without a transaction makes up for what the others lacked, and for no more", () => {
    const key = "unattributed:base:block 107:USDC"
    const accepted: ReadonlyArray<ExceptionContent> = [
      { kind: "unattributed", chain: "base", txHash: undefined, currency: "USDC", amount: 700n, block: 107, key }
    ]
    const further = (first: bigint) =>
      exceptionsOf(confirmed(), [receipt("0xa", 101, first), receipt("0xb", after, 500n)], accepted)
    expect(further(300n)).toMatchObject([{ kind: "overpaid", amount: 500n, txHash: "0xb" }])
    expect(further(1000n)).toMatchObject([{ kind: "overpaid", amount: 500n, txHash: "0xb" }])
  })

  it("a transaction that completes the payment after a reorg is not paid again", () => {
    const gone = receipt("0xa", 101, 1000n, { canonical: false })
    expect(found(confirmed(), gone, receipt("0xb", after, 1200n))).toEqual(["overpaid 200 0xb"])
    expect(found(confirmed(), gone, receipt("0xb", after, 200n))).toEqual([])
    // Nor is it the one to have brought too much, where it was found together with further money.
    const [further, instead] = [receipt("0xc", after, 30n), receipt("0xb", after + 1, 1000n)]
    const since = { seenAt: endedAt + 1 }
    expect(found(confirmed(), gone, { ...further, ...since }, { ...instead, ...since })).toEqual(["overpaid 30 0xc"])
  })

  it("on-time money found for a payment that was accepted for other money is paid again", () => {
    const accepted = confirmed({ txHash: "0xlate", amountReceived: undefined })
    const money = receipt("0xlate", lastOnTime + 5, 1000n, { seenAt: endedAt - 1 })
    expect(found(accepted, money, receipt("0xb", 300, 10n, { seenAt: endedAt + 1 }))).toEqual([
      "late 1000 0xlate",
      "overpaid 10 0xb"
    ])
    // What was known when it was accepted is not further money.
    const known = receipt("0xc", 250, 200n, { seenAt: endedAt })
    expect(found({ ...accepted, amountReceived: 200n }, money, known)).toEqual(["late 1000 0xlate"])
  })
})

describe("late", () => {
  it.each([
    ["before the end", payment()],
    ["after it was confirmed", confirmed({ txHash: "0xother" })],
    ["after it expired", payment({ status: "expired", endedAt })]
  ])("%s", (_, of) => {
    expect(found(of, receipt("0xa", lastOnTime + 1, 400n))).toEqual(["late 400 0xa"])
  })

  it("money that was on time in an orphaned block is not late", () => {
    const onTime = receipt("0xa", lastOnTime, 400n, { canonical: false })
    expect(found(payment(), onTime, receipt("0xa", lastOnTime + 3, 400n))).toEqual([])
  })
})

it("what one provider alone reported of an orphaned block is late nevertheless", () => {
  const alone = receipt("0xa", lastOnTime, 400n, { canonical: false, corroborated: false })
  expect(found(payment(), alone, receipt("0xa", lastOnTime + 3, 400n))).toEqual(["late 400 0xa"])
})

describe("underpaid and found_late", () => {
  const expired = payment({ status: "expired", endedAt })
  const short = payment({ status: "failed", failureReason: "insufficient_amount", amountReceived: 400n, endedAt })

  it("on-time money seen after the payment expired, or failed for want of it", () => {
    expect(found(expired, receipt("0xa", 300, 1000n, { seenAt: endedAt + 1 }))).toEqual(["found_late 1000 0xa"])
    const known = receipt("0xa", 300, 400n)
    const since = receipt("0xb", 301, 600n, { seenAt: endedAt + 1 })
    expect(found(short, known, since)).toEqual(["underpaid 400 0xa", "found_late 600 0xb"])
    const earlier = receipt("0xb", 299, 400n, { canonical: false })
    const again = receipt("0xb", 301, 400n, { seenAt: endedAt + 1 })
    expect(found(short, earlier, again)).toEqual(["underpaid 400 0xb"])
    // One provider alone had reported it before.
    expect(found(short, { ...earlier, corroborated: false }, again)).toEqual(["found_late 400 0xb"])
  })

  it("what a payment had when it failed is underpaid, each transaction by itself, and nothing while it is open", () => {
    const parts = [receipt("0xa", 300, 250n), receipt("0xb", 301, 150n)]
    expect(found(payment(), ...parts)).toEqual([])
    expect(found(short, ...parts)).toEqual(["underpaid 250 0xa", "underpaid 150 0xb"])
    // Also where it failed because the operator gave up its chain.
    const abandoned = { ...short, failureReason: "abandoned" as const }
    expect(found(abandoned, ...parts)).toEqual(["underpaid 250 0xa", "underpaid 150 0xb"])
  })

  it("money counted beside unattributed money is not found_late, whether that was counted or not", () => {
    const known = receipt("0xa", 300, 400n)
    const [alone, ofTwo] = [unattributed(299, 50n, { corroborated: false }), unattributed(299, 50n)]
    const both = ["unattributed 50 undefined", "underpaid 400 0xa"]
    expect(found(short, known, alone)).toEqual(both)
    const counted = { ...short, amountReceived: 450n }
    expect(found(counted, known, ofTwo)).toEqual(both)
    // What the undoing of a payment leaves is counted with them: no transaction that came back stands for them.
    const undone = { ...counted, failureReason: "reorged" as const, confirmedAt: 400_000 }
    expect(found(undone, known, alone, receipt("0xb", 301, 50n))).toEqual([
      "unattributed 50 undefined",
      "reorged 500 undefined",
      "underpaid 400 0xa",
      "found_late 50 0xb"
    ])
  })

  it("of two that were seen in time, the later one where only one of them was counted", () => {
    const all = [receipt("0xb", 299, 400n, { seenAt: 300_001 }), receipt("0xa", 300, 400n, { seenAt: 300_000 })]
    expect(found(short, ...all)).toEqual(["underpaid 400 0xa", "found_late 400 0xb"])
  })

  it("a known transaction that a reorg mines again is known", () => {
    const before = receipt("0xa", 300, 400n, { canonical: false })
    expect(found(short, before, receipt("0xa", 302, 400n, { seenAt: endedAt + 9 }))).toEqual(["underpaid 400 0xa"])
  })

  it("one that replaces known money that a reorg removed", () => {
    const gone = receipt("0xa", 300, 400n, { canonical: false })
    expect(found(short, gone, receipt("0xb", 301, 400n, { seenAt: endedAt + 1 }))).toEqual(["found_late 400 0xb"])
  })

  it("one that a reorg had removed when the payment ended, and that came back, whatever else was known then", () => {
    const back = receipt("0xb", 302, 300n)
    expect(found(expired, back)).toEqual(["found_late 300 0xb"])
    expect(found({ ...short, amountReceived: 300n }, receipt("0xa", 301, 300n), back)).toEqual([
      "underpaid 300 0xa",
      "found_late 300 0xb"
    ])
    expect(found(short, receipt("0xb", 301, 300n), unattributed(302, 400n))).toEqual([
      "unattributed 400 undefined",
      "found_late 300 0xb"
    ])
    const undone = payment({ status: "failed", failureReason: "reorged", confirmedAt: 400_000, endedAt })
    expect(found(undone, receipt("0xa", 300, 1000n))).toEqual(["found_late 1000 0xa"])
    // Of two, the one that was mined again, not the one that was known all the time.
    const [before, known] = [receipt("0xb", 299, 300n, { canonical: false }), receipt("0xa", 300, 400n)]
    const again = { ...before, blockHash: "0xother", canonical: true, seenAt: endedAt + 1 }
    expect(found(short, before, known, again)).toEqual(["underpaid 400 0xa", "found_late 300 0xb"])
  })

  it("what a confirmed payment lacks since a reorg undid it, less unattributed money", () => {
    const undone = payment({ status: "failed", failureReason: "reorged", txHash: "0xa", confirmedAt: 400_000, endedAt })
    const gone = receipt("0xa", 300, 700n, { canonical: false })
    expect(found(undone, gone)).toEqual(["reorged 1000 0xa"])
    const left = { ...undone, amountReceived: 300n }
    expect(found(left, gone, receipt("0xb", 300, 300n))).toEqual(["reorged 700 0xa", "underpaid 300 0xb"])
    expect(found(left, gone, unattributed(300, 300n))).toEqual(["unattributed 300 undefined", "reorged 700 0xa"])
  })
})

describe("a payment that was accepted for other money", () => {
  const open = (key: string, amount: bigint): ExceptionContent => ({
    ...{ kind: "underpaid", chain: "base", txHash: "0xb", currency: "USDC", amount, block: undefined, key }
  })
  const apart = (of: Payment, exceptions: ReadonlyArray<ExceptionContent>, ...receipts: ReadonlyArray<Receipt>) =>
    exceptionsOf(of, receipts, [], undefined, exceptions).map(
      ({ amount, kind, txHash }) => `${kind} ${amount} ${txHash}`
    )
  const both = [receipt("0xa", 101, 1000n), receipt("0xb", 102, 300n)]

  it("leaves open exceptions of its own money unchanged, and does not count that money elsewhere", () => {
    expect(apart(confirmed(), [], ...both)).toEqual(["overpaid 300 0xb"])
    expect(apart(confirmed(), [open("underpaid:base:0xb:USDC", 300n)], ...both)).toEqual(["underpaid 300 0xb"])
  })

  it("treats what a transaction brings beyond its open exception as further money", () => {
    expect(apart(confirmed(), [open("underpaid:base:0xb:USDC", 100n)], ...both)).toEqual([
      "underpaid 100 0xb",
      "overpaid 200 0xb"
    ])
    // Orphaned money leaves nothing open.
    const [paid = receipt("0xa", 101, 1000n)] = both
    expect(apart(confirmed(), [open("underpaid:base:0xb:USDC", 300n)], paid)).toEqual([])
  })
})

describe("the sender", () => {
  const from = (sender: string | undefined, position = "log:0") => ({ sender, position })
  const senders = (of: Payment, ...receipts: ReadonlyArray<Receipt>) =>
    exceptionsOf(of, receipts).map(({ sender }) => sender)

  it("is reported where all of an exception's money came from one sender", () => {
    const late = (sender: string | undefined, position: string) =>
      receipt("0xa", lastOnTime + 1, 5n, from(sender, position))
    expect(senders(payment(), late("0x1", "log:0"), late("0x1", "log:1"))).toEqual(["0x1"])
    expect(senders(payment(), late("0x1", "log:0"), late("0x2", "log:1"))).toEqual([undefined])
    expect(senders(payment(), late("0x1", "log:0"), late(undefined, "log:1"))).toEqual([undefined])
    const further = [receipt("0xa", 101, 1000n), receipt("0xb", 102, 5n, from("0x3")), receipt("0xc", 103, 5n)]
    expect(senders(confirmed(), ...further)).toEqual(["0x3", undefined])
  })

  it("is not reported for money that a reorg removed", () => {
    const undone = payment({ status: "failed", failureReason: "reorged", txHash: "0xa", confirmedAt: 400_000, endedAt })
    expect(senders(undone, receipt("0xa", 300, 700n, { sender: "0x1", canonical: false }))).toEqual([undefined])
  })
})

describe("the wrong money", () => {
  const native = { currency: "ETH", position: "tx:0" } as const

  it("wrong_token: another token at any time, native for a token while the payment is open", () => {
    expect(found(payment(), receipt("0xa", 101, 5n, { currency: "USDC.e" }))).toEqual(["wrong_token 5 0xa"])
    expect(found(payment(), receipt("0xa", 101, 5n, native))).toEqual(["wrong_token 5 0xa"])
    expect(found(confirmed(), receipt("0xb", after, 5n, { currency: "USDT" }))).toEqual(["wrong_token 5 0xb"])
  })

  describe("gas to collect with is ignored", () => {
    const paid = receipt("0xa", 101, 1000n)
    const coin = (over: Partial<Receipt> = {}, block = after) => receipt("0xb", block, 5n, { ...native, ...over })
    const there = { chain: "optimism" } as const
    const third = { chain: "polygon", currency: "MATIC" } as const
    const astray = receipt("0xs", 200, 7n, there)
    const unpaid = payment({ status: "expired", endedAt })
    // Balances are read late: what counts is when it came, at the earliest.
    const late = { seenAt: endedAt + 60_000 }
    const orphaned = coin({ canonical: false }, 200)
    const undone = confirmed({ status: "failed", failureReason: "reorged", endedAt: endedAt + 60_000 })
    const part = receipt("0xp", 101, 400n)
    const inCoins = payment({ currency: "ETH", status: "expired", endedAt })
    const wrong = ["wrong_token 5 0xb"]

    it.each<[string, Payment, ReadonlyArray<Receipt>, ReadonlyArray<string>]>([
      ["beside the token", confirmed(), [paid, coin()], []],
      ["on another chain, beside a token there", confirmed(), [paid, astray, coin(there)], ["wrong_chain 7 0xs"]],
      // Without a token there is nothing to collect: the money was sent by someone.
      ["but not without a token there", confirmed(), [paid, coin(there)], ["wrong_chain 5 0xb"]],
      ["but not on a third chain", confirmed(), [paid, coin(third)], ["wrong_chain 5 0xb"]],
      ["but not for an unpaid payment", unpaid, [coin()], wrong],
      ["but not beside an orphaned token", unpaid, [{ ...paid, canonical: false }, coin()], wrong],
      ["also where a reorg undid the payment", undone, [part, coin()], ["reorged 600 0xa", "underpaid 400 0xp"]],
      ["but not where the payment is in coins itself", inCoins, [coin(there)], ["wrong_chain 5 0xb"]],
      ["but not where it came before the end", confirmed(), [paid, coin(late, 200)], wrong],
      ["but not where it may have", confirmed(), [paid, coin({ since: { number: 200, time: 200 } })], wrong],
      ["but not where a reorg has mined it again since", confirmed(), [paid, orphaned, coin()], wrong],
      ["as one provider's word for that is", confirmed(), [paid, { ...orphaned, corroborated: false }, coin()], []],
      ["but not in the block of the end", confirmed(), [paid, coin(late, endedAt / 1000)], wrong],
      // The end has the time of this machine's clock, which may be behind the chain's: what was seen before came before.
      ["but not where it was seen before the end", confirmed(), [paid, coin({ seenAt: endedAt })], wrong]
    ])("%s", (_, of, receipts, expected) => {
      expect(found(of, ...receipts)).toEqual(expected)
    })
  })

  it("what the wallet's own sponsor sends is gas always, and what its tokens are is not", () => {
    const native = { currency: "ETH", position: "tx:0", sender: sponsor } as const
    const coins = payment({ currency: "ETH" })
    const much = receipt("0xgas", 101, 10n ** 18n, native)
    expect(withoutGas(coins, [much], sponsor)).toEqual([])
    expect(withoutGas(coins, [much], undefined)).toEqual([much])
    const other = receipt("0xa", 101, 5n, { ...native, sender: `0x${"6".repeat(40)}` })
    expect(withoutGas(coins, [other, much], sponsor)).toEqual([other])
    expect(found(confirmed({ currency: "ETH" }), receipt("0xgas", after, 5n, native))).toEqual([])
    const token = receipt("0xt", after, 5n, { sender: sponsor })
    expect(withoutGas(confirmed(), [token], sponsor)).toEqual([token])
  })

  it("gas is no more than a transfer of a token costs, and comes after the first token", () => {
    const paid = receipt("0xa", 101, 1000n)
    const coin = (chain: ChainName) => ({ ...native, chain, currency: nativeToken(chain) })
    for (const [chain, most] of [
      ["ethereum", 20_000_000_000_000_000n],
      ["polygon", 1_000_000_000_000_000_000n],
      ["arbitrum", 1_000_000_000_000_000n],
      ["optimism", 1_000_000_000_000_000n],
      ["base", 1_000_000_000_000_000n]
    ] as const) {
      const there = receipt("0xb", 200, 7n, { chain })
      const gas = (amount: bigint) => found(confirmed(), paid, there, receipt("0xgas", after, amount, coin(chain)))
      expect(gas(most)).not.toContainEqual(expect.stringContaining("0xgas"))
      expect(gas(most + 1n)).toContainEqual(expect.stringContaining(`${most + 1n} 0xgas`))
    }
    const expired = payment({ status: "expired", endedAt })
    for (const block of [after, after + 1]) {
      const later = receipt("0xa", block, 1n)
      expect(found(expired, receipt("0xb", after, 5n, native), later)).toContain("wrong_token 5 0xb")
    }
    // Unverified money is not collectable.
    const claimed = receipt("0xa", 101, 1n, { currency: "USDT", corroborated: false })
    expect(found(expired, claimed, receipt("0xb", after, 5n, native))).toEqual(["wrong_token 5 0xb"])
  })

  it("gas for a cancelled payment comes after its deadline: its customer may still pay until then", () => {
    const cancelled = payment({ status: "expired", failureReason: "cancelled", endedAt: 110_000 })
    const token = receipt("0xa", 111, 1000n)
    const due = (cancelled.expiresAt + cancelled.settleGrace) / 1000
    expect(found(cancelled, token, receipt("0xb", due, 5n, native))).toContain("wrong_token 5 0xb")
    expect(found(cancelled, token, receipt("0xb", due + 1, 5n, native))).toEqual(["found_late 1000 0xa"])
    const later = { ...cancelled, dueAt: cancelled.expiresAt + 60_000 }
    expect(found(later, token, receipt("0xb", due + 60, 5n, native))).toContain("wrong_token 5 0xb")
  })

  it("wrong_chain: anything on another chain, at any time; without a transaction, by its block", () => {
    expect(found(payment(), receipt("0xa", 7, 5n, { chain: "optimism" }))).toEqual(["wrong_chain 5 0xa"])
    expect(found(confirmed(), receipt("0xa", after, 5n, { chain: "optimism" }))).toEqual(["wrong_chain 5 0xa"])
    const old = receipt("0xa", 7, 5n, { chain: "optimism" })
    const justBefore = { createdAt: 1_507_000 }
    expect(found(payment(justBefore), old)).toEqual(["wrong_chain 5 0xa"])
    expect(found(payment({ createdAt: justBefore.createdAt + 1 }), old)).toEqual([])
    const coins = unattributed(7, 5n, { currency: "ETH", chain: "optimism" })
    const [exception] = exceptionsOf(payment({ currency: "ETH" }), [coins])
    expect(exception).toMatchObject({ kind: "wrong_chain", key: "wrong_chain:optimism:block 7:ETH", txHash: undefined })
  })

  it("unattributed: money without a transaction, by its block", () => {
    const coins = unattributed(107, 5n, { currency: "ETH" })
    const [exception, ...more] = exceptionsOf(payment({ currency: "ETH" }), [coins])
    expect(more).toEqual([])
    expect(exception).toMatchObject({ kind: "unattributed", amount: 5n, key: "unattributed:base:block 107:ETH" })
  })

  it("money older than the payment, and money of an orphaned block, is not an exception", () => {
    expect(found(payment(), receipt("0xa", 100, 5n, { currency: "USDT" }), receipt("0xb", 90, 1000n))).toEqual([])
    expect(found(payment(), receipt("0xa", 101, 5n, { currency: "USDT", canonical: false }))).toEqual([])
    expect(found(payment({ createdHead: undefined }), receipt("0xa", 101, 5n, { currency: "USDT" }))).toEqual([])
  })
})

it("two transfers of one transaction are one, and keep their key in another block", () => {
  const late = (block: number, position: string) => receipt("0xa", block, 5n, { position })
  const at = (block: number) => exceptionsOf(payment(), [late(block, "log:0"), late(block, "log:1")])
  expect(at(lastOnTime + 1)).toMatchObject([{ amount: 10n, key: "late:base:0xa:USDC" }])
  expect(at(lastOnTime + 2)).toEqual(at(lastOnTime + 1))
})

it("money of a lost payment is one exception for each transaction and currency", () => {
  const all = [receipt("0xa", 101, 5n), receipt("0xa", 101, 6n, { position: "log:1" }), receipt("0xb", 102, 7n)]
  expect(unknownMoney(all).map(({ amount, kind }) => [kind, amount])).toEqual([
    ["unknown_payment", 11n],
    ["unknown_payment", 7n]
  ])
})

describe("for any ledger of a confirmed payment", () => {
  const ledger = fc.array(fc.record({ amount: fc.bigInt(1n, 1500n), tx: fc.nat(5) }), { minLength: 1, maxLength: 8 })

  it("what is on time is the amount and its surplus, no more and no less; keys are unique", () =>
    fc.assert(
      fc.property(ledger, (rows) => {
        const all = rows.map(({ amount, tx }, i) =>
          // A transaction is in one block.
          receipt(`0x${tx}`, 101 + tx, amount, { position: `log:${i}`, seenAt: 1000 })
        )
        const ordered = [...all].sort((a, b) => a.blockNumber - b.blockNumber)
        const upTo = (place: number) => ordered.slice(0, place + 1).reduce((whole, { amount }) => whole + amount, 0n)
        const crossing = ordered.find((_, place) => upTo(place) >= 1000n)
        fc.pre(crossing !== undefined)
        const exceptions = exceptionsOf(confirmed({ txHash: crossing?.txHash }), all)
        const sum = all.reduce((whole, { amount }) => whole + amount, 0n)
        expect(exceptions.reduce((whole, { amount }) => whole + amount, 0n)).toBe(sum - 1000n)
        expect(new Set(exceptions.map(({ key }) => key)).size).toBe(exceptions.length)
      })
    ))
})
