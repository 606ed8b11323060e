import { AccountId, newCheckoutToken, newPaymentId } from "../../src/Domain/Ids.ts"
import type { NewPayment, Payment, PaymentObject } from "../../src/Domain/Payment.ts"

/** A payment that is about to be stored: 1000 wei on Base, asked for at second 100 and due within the hour. */
export const someNewPayment = (over: Partial<NewPayment> = {}): NewPayment => ({
  id: newPaymentId(0),
  checkoutToken: newCheckoutToken(0),
  account: AccountId.make("default"),
  mode: "test",
  merchantRef: "order-1",
  amount: 1000n,
  currency: "ETH",
  token: undefined,
  chain: "base",
  address: "0x0000000000000000000000000000000000000001",
  status: "pending",
  createdAt: 100_000,
  expiresAt: 3_700_000,
  settleGrace: 60_000,
  toleranceBps: 0,
  floor: 1n,
  metadata: "{}",
  webhookUrl: undefined,
  redirectUrl: undefined,
  quoteId: undefined,
  invoice: undefined,
  amountReceived: undefined,
  txHash: undefined,
  confirmedAt: undefined,
  failureReason: undefined,
  ...over
})

/** The same as the store keeps it: the first payment, made at block 100. */
export const somePayment = (over: Partial<Payment> = {}): Payment => ({
  ...someNewPayment(),
  sequence: 1,
  createdHead: 100,
  usdValue: undefined,
  dueAt: undefined,
  endedAt: undefined,
  updates: 0,
  received: 0n,
  refunded: 0n,
  ...over
})

/** A payment as it is shown when no one is asked to pay for it any more. */
export const withoutUri = ({ paymentUri: _, ...payment }: PaymentObject): PaymentObject => payment
