import type { Payment } from "../../src/Domain/Payment.ts"
import type { BlockRef, Receipt } from "../../src/Domain/Receipt.ts"
import { advance, type Horizon } from "../../src/Payments/statusMachine.ts"
import { somePayment } from "../lib/payments.ts"

export const second = 1000
/** A chain with a block a second whose block `n` has the time `n`; payments are made at block 100. */
export const created = 100 * second
export const confirmations = 3

export const payment = (over: Partial<Payment> = {}): Payment =>
  somePayment({ currency: "USDC", createdAt: created, expiresAt: created + 3600 * second, ...over })

/** The index that a position of a test names. */
const placeIn = (position = ""): number => Number(position.match(/^(?:log|tx):(\d+)$/)?.[1] ?? 0)

export const receipt = (of: Payment, over: Partial<Receipt> = {}): Receipt => {
  const blockNumber = over.blockNumber ?? 101
  return {
    chain: of.chain,
    mode: of.mode,
    blockHash: `0x${blockNumber}`,
    blockNumber,
    blockTime: blockNumber,
    address: of.address,
    position: "log:0",
    place: placeIn(over.position),
    txHash: `0xt${blockNumber}`,
    currency: of.currency,
    amount: 1000n,
    payment: of.id,
    canonical: true,
    corroborated: true,
    seenAt: created,
    ...over
  }
}

export const block = (number: number, time = number): BlockRef => ({
  number,
  hash: `0x${number}`,
  time
})

/** A scan at `head` on a chain with a block a second, whose balances have been compared there. */
export const scanned = (head: number, over: Partial<Horizon> = {}): Horizon => ({
  head,
  headTime: head,
  confirmations,
  settled: block(head - confirmations + 1),
  checked: block(head),
  safe: undefined,
  finalized: undefined,
  requires: undefined,
  elsewhereChecked: true,
  searched: Number.POSITIVE_INFINITY,
  ...over
})

/** The last block whose money is on time, the grace included. */
export const lastOnTime = 100 + 3600 + 60

/** The statuses of the steps; `!` marks those that are announced. */
export const states = (steps: ReturnType<typeof advance>) =>
  steps.map((step) => `${step.payment.status}${step.announced ? "!" : ""}`)

export const run = (of: Payment, receipts: ReadonlyArray<Receipt>, horizon: Horizon) =>
  advance(of, receipts, horizon, created)
