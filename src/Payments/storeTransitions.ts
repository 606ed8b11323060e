/**
 * Stores what the status machine or an operator has decided, inside the transaction of the decision: the payment's new
 * states with their events, and the exceptions that follow from its receipts. Called by settlement, decisions and refunds.
 */
import { Effect } from "effect"
import type { Network } from "../Domain/Chain.ts"
import type { PaymentException } from "../Domain/Exception.ts"
import { isEnded, type Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import type { Outbox } from "../Events/Outbox.ts"
import { Tx } from "../Sql.ts"
import { Metrics } from "../Telemetry/Metrics.ts"
import * as Dust from "./DustRepo.ts"
import { sumUpLost } from "./dustSums.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import { exceptionsOf, unknownMoney } from "./exceptions.ts"
import { sinceAccepted, withoutAccepted, withoutSentBack } from "./moneySentBack.ts"
import * as Repo from "./PaymentsRepo.ts"
import * as Receipts from "./ReceiptsRepo.ts"
import type { Rules, Step } from "./statusMachine.ts"

/** Stores the states that a payment passes through, with their events. Gives the last one. `at` in Unix milliseconds. */
export const storeTransitions = Effect.fnUntraced(function* (
  outbox: Outbox["Type"],
  payment: Payment,
  steps: ReadonlyArray<Step>,
  at: number
) {
  const tx = yield* Tx
  const { payments } = yield* Metrics
  let before = payment
  for (const step of steps) {
    const { status } = step.payment
    yield* Repo.update(before, step.payment, at)
    if (step.announced) {
      yield* outbox.publish(tx, step.payment, at, status === before.status ? "payment.updated" : undefined)
    }
    if (status !== before.status && isEnded(status)) yield* Dust.decide(payment.id)
    if (status !== before.status) tx.afterCommit(() => payments.add([status]))
    before = step.payment
  }
  return before
})

/** A payment's receipts without the money that was refunded. */
export const receiptsLeft = Effect.fnUntraced(function* (payment: Payment) {
  const tx = yield* Tx
  return withoutSentBack(yield* Receipts.ofPayment(tx, payment.id), yield* Exceptions.ofPayment(tx, payment.id))
})

/** Updates a payment's exceptions to its receipts. Gives those that were opened. `at` in Unix milliseconds. */
export const syncExceptions = Effect.fnUntraced(function* (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  rules: Rules,
  at: number
) {
  const stored = yield* Exceptions.ofPayment(yield* Tx, payment.id)
  // Money that was accepted without its transaction opens no exception when the transaction is found later.
  const isAccepted = ({ block, status }: PaymentException) => status === "accepted" && block !== undefined
  const accepted = payment.status === "confirmed" ? stored.filter(isAccepted) : []
  const rest = withoutAccepted(withoutSentBack(receipts, stored), accepted)
  const found = exceptionsOf(payment, rest, rules, accepted)
  const reported = exceptionsOf(payment, rest, rules, accepted, () => true)
  const place = { address: payment.address.toLowerCase(), mode: payment.mode, payment: payment.id }
  return yield* Exceptions.sync(place, stored, sinceAccepted(found, stored), at, sinceAccepted(reported, stored))
})

/** The same for a chain's receipts at addresses whose payments are lost. */
export const syncUnknown = Effect.fnUntraced(function* (network: Network, at: number) {
  const tx = yield* Tx
  const opened = yield* Effect.forEach(
    yield* Receipts.lostAndUnsettled(tx, network),
    Effect.fnUntraced(function* (address) {
      yield* sumUpLost(address, network.mode)
      const stored = yield* Exceptions.unknownAt(tx, network, address)
      // Money that was decided on without its transaction opens no exception when that is found later.
      const rest = withoutAccepted(withoutSentBack(yield* Receipts.ofLost(tx, network, address), stored), stored)
      const found = sinceAccepted(unknownMoney(rest), stored)
      const reported = sinceAccepted(
        unknownMoney(rest, () => true),
        stored
      )
      const place = { address, mode: network.mode, payment: undefined }
      return (yield* Exceptions.sync(place, stored, found, at, reported)).map((one) => ({ ...one, address }))
    }),
    { concurrency: 1 }
  )
  return opened.flat()
})
