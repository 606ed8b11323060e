import { describe, expect, it } from "vitest"
import type { Payment } from "../../src/Domain/Payment.ts"
import { hasUpdate } from "../../src/Payments/statusMachine.ts"
import { payment, receipt, run, scanned, states } from "./machine.ts"

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
    [100n, 109n, "less than a hundredth of the amount: dust"],
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
