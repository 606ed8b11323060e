import { expect, it } from "vitest"
import { paidByOf } from "../../src/Checkout/paidBy.ts"
import { payment, receipt } from "../Payments/machine.ts"

const order = payment()
const ids: Readonly<Record<string, number>> = { base: 8453, polygon: 137 }
const paidBy = (receipts: Parameters<typeof paidByOf>[1], over: object = {}) =>
  paidByOf({ ...order, ...over }, receipts, (chain) => ids[chain])

const half = (txHash: string, blockNumber: number) =>
  receipt(order, { txHash, blockNumber, amount: order.amount / 2n, position: `tx:${blockNumber}` })

it("a receipt has the transactions that completed the payment, and none that came after", () => {
  const found = paidBy([half("0xb", 102), half("0xa", 101), half("0xc", 103)], {
    amountReceived: order.amount,
    txHash: "0xb"
  })
  expect(found).toEqual(
    ["0xa", "0xb"].map((txHash) => ({ txHash, chainId: ids[order.chain], amount: order.amount / 2n }))
  )
})

it("a receipt of other money that was accepted names its transaction, on its chain, without an amount", () => {
  const elsewhere = receipt(order, { txHash: "0xa", chain: "polygon", amount: 7n })
  expect(paidBy([elsewhere], { txHash: "0xa" })).toEqual([{ txHash: "0xa", chainId: 137, amount: undefined }])
  expect(paidBy([], { txHash: "0xd" })).toEqual([{ txHash: "0xd", chainId: ids[order.chain], amount: undefined }])
  expect(paidBy([])).toEqual([])
})
