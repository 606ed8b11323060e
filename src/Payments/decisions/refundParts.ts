/** The partial refunds of an exception: which part a refund is, and its amount. */
import { Effect } from "effect"
import {
  AlreadyDecided,
  DecisionInvalid,
  mayGrow,
  mostRefunds,
  NothingToDecide,
  type PaymentException
} from "../../Domain/Exception.ts"
import { described } from "../refunds.ts"

/** The refunded amount of an open exception. */
export const returnedOf = (exception: PaymentException, amount: bigint | undefined) => {
  const invalid = (message: string) => new DecisionInvalid({ field: "amount", message })
  if (exception.kind === "reorged") {
    return new NothingToDecide({
      message: `There is no money of ${exception.id} to send back, since a reorg took it: accept it, to do without that money`
    })
  }
  if (amount === undefined) {
    return mayGrow(exception)
      ? invalid(`must be given, as what you sent back: ${described(exception)} may grow at any time`)
      : Effect.succeed(exception.amount)
  }
  if (exception.refunds.length >= mostRefunds && amount < exception.amount) {
    return invalid(`must be all that is open: ${mostRefunds} parts of ${exception.id} were sent back`)
  }
  return amount > exception.amount
    ? invalid(`must be at most ${exception.amount}, which is what is open of ${exception.id}`)
    : Effect.succeed(amount)
}

/** Whether this part was recorded as refunded before; fails where the transaction sent another part. */
export const wasReturned = (
  { id, refunds, status }: PaymentException,
  amount: bigint | undefined,
  txHash: string | undefined
) => {
  const noted = txHash === undefined ? undefined : refunds.find((refund) => refund.txHash === txHash)
  if (noted === undefined) return Effect.succeed(false)
  return noted.amount === amount || (amount === undefined && status === "refunded")
    ? Effect.succeed(true)
    : new AlreadyDecided({
        message: `${txHash} is noted already, as a refund of ${id}: name the transaction of what else was sent back`
      })
}

/**
 * The part, recorded without its transaction, that this one completes; undefined where it is another part. The same
 * amount again is taken for the recorded part: an exception must not count as refunded twice.
 */
export const partNamed = (
  { id, refunds, status }: PaymentException,
  amount: bigint | undefined,
  txHash: string | undefined
) => {
  const unnamed = txHash === undefined ? [] : refunds.filter((refund) => refund.txHash === undefined)
  if (amount !== undefined) return Effect.succeed(unnamed.find((refund) => refund.amount === amount))
  const [part, another] = status === "refunded" ? unnamed : []
  return another === undefined
    ? Effect.succeed(part)
    : new DecisionInvalid({
        field: "amount",
        message: `must be given: ${unnamed.length} parts of ${id} are noted without their transactions`
      })
}
