import { Clock, Duration, Effect } from "effect"
import { WatchedAddresses } from "../Chains/ledger/WatchedAddresses.ts"
import { minedTransaction } from "../Chains/providers/minedTransaction.ts"
import { Networks } from "../Chains/providers/Networks.ts"
import { required } from "../Domain/Amount.ts"
import { type Network, networkKey } from "../Domain/Chain.ts"
import { NothingToDecide, type PaymentException, TransactionNotProven } from "../Domain/Exception.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { Outbox } from "../Events/Outbox.ts"
import { Settings } from "../Settings.ts"
import { Reader, Tx, Writer } from "../Sql.ts"
import { applySteps, receiptsLeft, syncExceptions } from "./applySteps.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import { exceptionsOf } from "./exceptions.ts"
import * as Repo from "./PaymentsRepo.ts"
import * as Receipts from "./ReceiptsRepo.ts"
import { counted, crossing, type Rules, withReceived } from "./statusMachine.ts"

// What operators decide about money that no rule decides on. Each may be repeated.

/** Payments that one commit ends. */
const abandonChunk = 100

/** What became of it. `payment` is undefined for money at an address whose payment is lost. */
export interface Decided {
  readonly payment: Payment | undefined
  readonly exceptions: ReadonlyArray<PaymentException>
}

const rulesOf = Effect.map(
  Settings,
  ({ payments }): Rules => ({
    settleGrace: Duration.toMillis(payments.settleGrace),
    toleranceBps: payments.toleranceBps
  })
)

const acceptOpen = Effect.fnUntraced(function* (payment: PaymentId, at: number) {
  const all = yield* Exceptions.ofPayment(yield* Tx, payment)
  for (const { id, status } of all) if (status === "open") yield* Exceptions.close(id, "accepted", at)
})

/** A payment and its exceptions as they are by now. */
export const decided = Effect.fnUntraced(function* (id: PaymentId) {
  const tx = yield* Tx
  const result: Decided = { payment: yield* Repo.byId(tx, id), exceptions: yield* Exceptions.ofPayment(tx, id) }
  return result
})

/** Accepts money that belongs to no payment that is known; undefined where there is no such exception. */
const acceptUnknown = Effect.fnUntraced(function* (id: string) {
  const writer = yield* Writer
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const before = yield* Exceptions.byId(tx, id)
      if (before === undefined || before.payment !== undefined) return undefined
      yield* Exceptions.close(id, "accepted", yield* Clock.currentTimeMillis)
      const after = yield* Exceptions.byId(tx, id)
      const result: Decided = { payment: undefined, exceptions: after === undefined ? [] : [after] }
      return result
    })
  )
})

/** The money that a payment can be accepted for: what counts for it, and what needs a person. */
const acceptable = (payment: Payment, receipts: ReadonlyArray<Receipt>, rules: Rules) => {
  const paying = counted(payment, receipts, rules)
  const hashes = paying.filter((receipt) => receipt.txHash !== undefined)
  const exceptions = exceptionsOf(payment, receipts, rules)
  return {
    paying,
    any: paying.length > 0 || exceptions.length > 0,
    // The one that would have confirmed it, else the first. What a reorg took pays for nothing, and would undo it again.
    txHash:
      crossing(hashes, required(payment.amount, rules.toleranceBps)) ??
      hashes[0]?.txHash ??
      exceptions.find((exception) => exception.kind !== "reorged" && exception.txHash !== undefined)?.txHash
  }
}

const refuse = (message: string) => new TransactionNotProven({ message })

/** Asks the chain whether a transaction succeeded in a block that has its confirmations. Gives the block's number. */
const prove = Effect.fnUntraced(function* (network: Network, hash: string) {
  const { chains } = yield* Settings
  const networks = yield* Networks
  const key = networkKey(network)
  const chain = chains.find((configured) => networkKey(configured) === key)
  if (chain === undefined) return yield* refuse(`chains.${key} is not configured: nobody can be asked about ${hash}`)
  const mined = yield* Effect.mapError(minedTransaction(networks.connected(network).providers, hash), (error) =>
    refuse(`${key} does not tell whether it has ${hash}: ${error.message}`)
  )
  if (mined === undefined)
    return yield* refuse(`${key} has no transaction ${hash} in any block: check the hash, and that it is on this chain`)
  if (!mined.succeeded) return yield* refuse(`The transaction ${hash} failed in block ${mined.blockNumber} of ${key}`)
  if (mined.confirmations < chain.confirmations) {
    return yield* refuse(
      `The transaction ${hash} has ${mined.confirmations} of the ${chain.confirmations} confirmations that ${key} asks for: try again later`
    )
  }
  return mined.blockNumber
})

/**
 * Proves a transaction that the ledger does not know, on the chain where money came of which it knows none. One that paid
 * another payment is refused where all of this one's money has its own: it is a slip, most likely.
 */
const proveGiven = Effect.fnUntraced(function* (payment: Payment, receipts: ReadonlyArray<Receipt>, hash: string) {
  const canonical = receipts.filter((receipt) => receipt.canonical)
  if (canonical.some((receipt) => receipt.txHash === hash)) return
  const untold = canonical.find((receipt) => receipt.txHash === undefined)
  const blockNumber = yield* prove({ chain: untold?.chain ?? payment.chain, mode: payment.mode }, hash)
  const payee = untold === undefined ? yield* Receipts.payeeOf(yield* Reader, payment, blockNumber, hash) : undefined
  if (payee !== undefined) {
    return yield* refuse(`${hash} paid ${payee}, and not ${payment.id}: name the transaction that paid ${payment.id}`)
  }
})

/** Fails where nothing is left that a payment could be accepted for, or nothing of the given transaction's money. */
const refuseReturned = Effect.fnUntraced(function* (
  exceptions: ReadonlyArray<PaymentException>,
  left: ReadonlyArray<Receipt>,
  { id }: Payment,
  anyLeft: boolean,
  given: string | undefined
) {
  const returned = exceptions.filter(({ kind, sentBack }) => kind !== "reorged" && sentBack > 0n)
  if (!anyLeft) {
    const reason = returned.length > 0 ? `What came for ${id} was sent back` : `No money has come for ${id}`
    return yield* new NothingToDecide({ message: `${reason}: there is nothing to accept` })
  }
  const isGiven = (one: { readonly txHash: string | undefined }) => given !== undefined && one.txHash === given
  if (returned.some(isGiven) && !left.some((receipt) => receipt.canonical && isGiven(receipt))) {
    return yield* refuse(`What ${given} brought was sent back: ${id} cannot be accepted for it`)
  }
})

/**
 * Takes what has come for a payment as its payment: closes what is open, and confirms the payment, with its event,
 * unless it is confirmed already. Undefined where there is no payment, and no exception, of that id.
 *
 * @param given the transaction that paid; needed where nobody can tell any
 */
export const accept = Effect.fn("Payments.accept")(function* (id: string, given: string | undefined) {
  const reader = yield* Reader
  const writer = yield* Writer
  const outbox = yield* Outbox
  const matchSet = yield* WatchedAddresses
  const rules = yield* rulesOf
  const seen = yield* Repo.byId(reader, id)
  if (seen === undefined) return yield* acceptUnknown(id)
  if (given !== undefined && seen.status !== "confirmed") {
    yield* proveGiven(seen, yield* Receipts.ofPayment(reader, seen.id), given)
  }
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const now = yield* Clock.currentTimeMillis
      const payment = (yield* Repo.byId(tx, id)) ?? seen
      const left = yield* receiptsLeft(payment)
      const money = acceptable(payment, left, rules)
      if (payment.status !== "confirmed") {
        yield* refuseReturned(yield* Exceptions.ofPayment(tx, payment.id), left, payment, money.any, given)
        const txHash = given ?? money.txHash
        if (txHash === undefined) {
          return yield* refuse(`Nobody can tell which transaction paid ${id}: name it with --tx`)
        }
        yield* acceptOpen(payment.id, now)
        const confirmed: Payment = {
          ...withReceived(payment, money.paying),
          status: "confirmed",
          txHash,
          confirmedAt: now,
          failureReason: undefined,
          endedAt: now
        }
        yield* applySteps(outbox, payment, [{ payment: confirmed, announced: true }], now)
        // Its late window begins anew, and the one before may be over.
        tx.afterCommit(() => matchSet.add(payment.mode, payment.address))
        // What it is beyond its amount has been accepted with it.
        yield* syncExceptions(confirmed, yield* Receipts.ofPayment(tx, payment.id), rules, now)
      }
      yield* acceptOpen(payment.id, now)
      return yield* decided(payment.id)
    })
  )
})

/** Ends every open payment of a chain, which need not be configured. Gives how many. */
export const abandon = Effect.fn("Payments.abandon")(function* (network: Network) {
  const writer = yield* Writer
  const outbox = yield* Outbox
  const rules = yield* rulesOf
  const chunk = Effect.gen(function* () {
    const tx = yield* Tx
    const now = yield* Clock.currentTimeMillis
    const payments = yield* Repo.openOn(tx, network, abandonChunk)
    for (const payment of payments) {
      const ended: Payment = { ...payment, status: "failed", failureReason: "abandoned", endedAt: now }
      yield* applySteps(outbox, payment, [{ payment: ended, announced: true }], now)
      yield* syncExceptions(ended, yield* Receipts.ofPayment(tx, payment.id), rules, now)
    }
    return payments.length
  })
  let ended = 0
  while (true) {
    const count = yield* writer.write(chunk)
    ended += count
    if (count < abandonChunk) return ended
  }
})
