import type { ChainName } from "../../src/Domain/Chain.ts"
import type { ExceptionKind } from "../../src/Domain/Exception.ts"
import type { FailureReason, PaymentStatus } from "../../src/Domain/Payment.ts"

/** Money that is sent to a payment's address; on the payment's chain and in its currency unless named. */
export interface Transfer {
  readonly share: number
  readonly chain?: ChainName
  readonly currency?: "ETH" | "DAI"
}

/** How a payer behaves, and the expected outcome. */
export interface Plan {
  readonly name: string
  /** How many of a hundred orders. */
  readonly weight: number
  readonly chain?: ChainName
  readonly expiresIn: number
  /** Transfers, in halves of the amount, each some seconds after the one before. */
  readonly transfers: ReadonlyArray<Transfer>
  /** The transfers come only after the deadline. */
  readonly isLate?: boolean
  readonly isCancelled?: boolean
  readonly status: PaymentStatus
  readonly failureReason?: FailureReason
  readonly exceptions: ReadonlyArray<ExceptionKind>
  /** The kinds of its events, without `payment.` and without repeats that a reorg brings. */
  readonly events: ReadonlyArray<string>
}

const hour = 3_600
const paid = ["created", "detecting", "confirmed"]

export const plans: ReadonlyArray<Plan> = [
  {
    name: "exact",
    weight: 50,
    expiresIn: hour,
    transfers: [{ share: 2 }],
    status: "confirmed",
    exceptions: [],
    events: paid
  },
  {
    ...{ name: "in parts", weight: 10, expiresIn: hour, transfers: [{ share: 1 }, { share: 1 }] },
    ...{ status: "confirmed", exceptions: [], events: paid }
  },
  {
    ...{ name: "too much", weight: 8, expiresIn: hour, transfers: [{ share: 3 }] },
    ...{ status: "confirmed", exceptions: ["overpaid"], events: paid }
  },
  {
    name: "never",
    weight: 10,
    expiresIn: 60,
    transfers: [],
    status: "expired",
    exceptions: [],
    events: ["created", "expired"]
  },
  {
    ...{ name: "too little", weight: 6, expiresIn: 90, transfers: [{ share: 1 }] },
    ...{ status: "failed", failureReason: "insufficient_amount" },
    ...{ exceptions: ["underpaid"], events: ["created", "detecting", "failed"] }
  },
  {
    ...{ name: "late", weight: 6, expiresIn: 60, transfers: [{ share: 2 }], isLate: true },
    ...{ status: "expired", exceptions: ["late"], events: ["created", "expired"] }
  },
  {
    ...{ name: "wrong token", weight: 4, chain: "ethereum", expiresIn: 90, transfers: [{ share: 2, currency: "DAI" }] },
    ...{ status: "failed", failureReason: "wrong_token", exceptions: ["wrong_token"], events: ["created", "failed"] }
  },
  {
    ...{ name: "wrong chain", weight: 3, chain: "base", expiresIn: 90, transfers: [{ share: 2, chain: "optimism" }] },
    ...{ status: "failed", failureReason: "wrong_chain", exceptions: ["wrong_chain"], events: ["created", "failed"] }
  },
  {
    ...{ name: "cancelled", weight: 3, expiresIn: hour, transfers: [], isCancelled: true },
    ...{ status: "expired", failureReason: "cancelled", exceptions: [], events: ["created", "expired"] }
  }
]

const total = plans.reduce((sum, { weight }) => sum + weight, 0)

/** The plan of the n-th order: the weights repeat, in a mixed order. */
export const planOf = (n: number): Plan => {
  const place = (n * 61) % total
  let before = 0
  return plans.find(({ weight }) => {
    before += weight
    return place < before
  }) as Plan
}
