import { expect, it } from "vitest"
import { confirmationsOf } from "../../src/Checkout/readPayment.ts"
import { confirmations, payment, receipt } from "../Payments/machine.ts"

const order = payment()
const count = (receipts: Parameters<typeof confirmationsOf>[1], head: number, toleranceBps = 0) =>
  confirmationsOf({ ...order, toleranceBps }, receipts, head, confirmations)

it("the confirmations are those of the receipt that completes the payment, its own block included", () => {
  const half = (blockNumber: number) => receipt(order, { blockNumber, amount: order.amount / 2n })
  expect(count([half(101), half(103)], 103)).toEqual({ count: 1, needed: confirmations })
  expect(count([half(103), half(101)], 104)).toEqual({ count: 2, needed: confirmations })
})

it("further money does not reset them, and they never exceed what is needed", () => {
  const enough = receipt(order, { blockNumber: 101, amount: order.amount })
  const more = receipt(order, { blockNumber: 109, amount: 1n })
  expect(count([enough, more], 102)?.count).toBe(2)
  expect(count([enough, more], 200)?.count).toBe(confirmations)
})

it("money above the head that was read has none, and less than the tolerance is not counted", () => {
  expect(count([receipt(order, { blockNumber: 105, amount: order.amount })], 101)?.count).toBe(0)
  const short = receipt(order, { blockNumber: 101, amount: order.amount - 1n })
  expect(count([short], 105)).toBeUndefined()
  expect(count([short], 102, 100)?.count).toBe(2)
})
