/**
 * Manual decisions of operators: `accept` confirms a payment with the money that came for it, `abandon` ends the open
 * payments of a chain, and drops its undecided money. Both are idempotent. `refunds.ts` has the third one, and
 * `decisions/` those on one exception alone. Called by the control socket's handlers, on behalf of `tilld payments …`.
 *
 * A payment is accepted for a transaction that the ledger has, or for one that the operator names: a named one that the
 * ledger does not know is proven on the chain first.
 */
import { Clock, Effect } from "effect"
import { WatchedAddresses } from "../Chains/ledger/WatchedAddresses.ts"
import { minedTransaction } from "../Chains/providers/minedTransaction.ts"
import { Networks } from "../Chains/providers/Networks.ts"
import { required } from "../Domain/Amount.ts"
import { type Network, networkKey } from "../Domain/Chain.ts"
import type { PaymentCurrency } from "../Domain/Currency.ts"
import { NothingToDecide, type PaymentException, TransactionNotProven } from "../Domain/Exception.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { Outbox } from "../Events/Outbox.ts"
import { Settings } from "../Settings.ts"
import { Reader, Tx, Writer } from "../Sql.ts"
import * as Exceptions from "./ExceptionsRepo.ts"
import { credited } from "./exceptionContents.ts"
import { exceptionsOf } from "./exceptions.ts"
import { dropUndecided } from "./OpenNeedsRepo.ts"
import * as Repo from "./PaymentsRepo.ts"
import * as Receipts from "./ReceiptsRepo.ts"
import { counted, crossing, withReceived } from "./statusMachine.ts"
import { receiptsLeft, reportExceptions, storeTransitions } from "./storeTransitions.ts"
import { refuseUndecidable, whyExceptionUndecidable, whyUndecidable } from "./undecidable.ts"

/** Payments that one commit ends at most. */
const abandonChunk = 100

/** `repeated`: the decision had been made before. `completed`: only its transaction is new. */
export type Made = "decided" | "completed" | "repeated"

/** The result of a decision. */
export interface Decided {
  readonly payment: Payment | undefined
  readonly exceptions: ReadonlyArray<PaymentException>
}

/** Accepts the open exceptions of a payment, all or those of a kind, and gives them. */
const acceptOpen = Effect.fnUntraced(function* (payment: PaymentId, at: number, note?: string, only?: string) {
  const all = yield* Exceptions.ofPayment(yield* Tx, payment)
  const open = all.filter(({ kind, status }) => status === "open" && kind === (only ?? kind))
  for (const { id } of open) yield* Exceptions.close(id, "accepted", at, { note })
  return open
})

/** A payment and its exceptions as they are stored now. */
export const decided = Effect.fnUntraced(function* (id: PaymentId) {
  const tx = yield* Tx
  return { payment: yield* Repo.byId(tx, id), exceptions: yield* Exceptions.ofPayment(tx, id) } satisfies Decided
})

/** The money that a payment can be accepted for: receipts that count for it, and its exceptions. */
const acceptable = (payment: Payment, receipts: ReadonlyArray<Receipt>) => {
  const paying = counted(payment, receipts)
  const hashes = paying.filter((receipt) => receipt.txHash !== undefined)
  const exceptions = exceptionsOf(payment, receipts)
  return {
    paying,
    any: paying.length > 0 || exceptions.length > 0,
    // The transaction that would have confirmed it, else the first. An orphaned one would make the next reorg check undo it.
    txHash:
      crossing(hashes, required(payment)) ??
      hashes[0]?.txHash ??
      exceptions.find((exception) => exception.kind !== "reorged" && exception.txHash !== undefined)?.txHash
  }
}

const refuse = (message: string) => new TransactionNotProven({ message })

/** Checks that a transaction succeeded in a block with enough confirmations. Gives the block's number. */
export const prove = Effect.fnUntraced(function* (network: Network, hash: string) {
  const { chains } = yield* Settings
  const networks = yield* Networks
  const key = networkKey(network)
  const chain = chains.find((configured) => networkKey(configured) === key)
  if (chain === undefined)
    return yield* refuse(`chains.${key} is not configured: no provider can be asked about ${hash}`)
  const mined = yield* Effect.mapError(minedTransaction(networks.providersOf(network), hash), (error) =>
    refuse(`${key} could not be asked about ${hash}: ${error.message}`)
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
 * Proves a named transaction that the ledger does not have: on the chain of the payment's unattributed money, else on the
 * payment's own. Without unattributed money, a transaction that paid another payment is refused: most likely a mistake.
 */
const proveGiven = Effect.fnUntraced(function* (payment: Payment, receipts: ReadonlyArray<Receipt>, hash: string) {
  const canonical = receipts.filter((receipt) => receipt.canonical)
  if (canonical.some((receipt) => receipt.txHash === hash)) return
  const unattributed = canonical.find((receipt) => receipt.txHash === undefined)
  const { chain, mode } = payment
  const blockNumber = yield* prove({ chain: unattributed?.chain ?? chain, mode }, hash)
  if (unattributed === undefined) yield* refuseOthers(payment, { chain, mode }, blockNumber, hash)
})

/** Fails where a transaction paid another payment: most likely a mistake. */
export const refuseOthers = Effect.fnUntraced(function* (
  { id }: Pick<Payment, "id">,
  network: Network,
  blockNumber: number,
  hash: string
) {
  const payee = yield* Receipts.payeeOf(yield* Reader, { id, ...network }, blockNumber, hash)
  if (payee !== undefined) {
    return yield* refuse(`${hash} paid ${payee}, and not ${id}: name the transaction that paid ${id}`)
  }
})

/** A payment that is confirmed by a decision, with these receipts. `at` in Unix milliseconds. */
export const confirmedBy = (payment: Payment, paying: ReadonlyArray<Receipt>, txHash: string, at: number): Payment => ({
  ...withReceived(payment, paying),
  status: "confirmed",
  txHash,
  confirmedAt: at,
  failureReason: undefined,
  endedAt: at
})

/** Fails where no money is left to accept the payment for, or none of the given transaction's. */
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
  const isGiven = (money: { readonly txHash: string | undefined }) => given !== undefined && money.txHash === given
  if (returned.some(isGiven) && !left.some((receipt) => receipt.canonical && isGiven(receipt))) {
    return yield* refuse(`What ${given} brought was sent back: ${id} cannot be accepted for it`)
  }
})

/**
 * Accepts the money that came for a payment: closes its open exceptions, and confirms it, with its event, unless it is
 * confirmed already. Undefined where there is no such payment.
 *
 * @param given the transaction that paid; required where the ledger has none
 * @param detail its note is kept with the exceptions that are closed
 * @param onRepeated called in the transaction, where there was nothing left to accept
 */
export const accept = Effect.fn("Payments.accept")(function* (
  id: string,
  given: string | undefined,
  { note, uncorroborated }: Omit<Exceptions.DecisionDetail, "txHash"> = {},
  onRepeated: () => void = () => undefined
) {
  const { chains } = yield* Settings
  const reader = yield* Reader
  const writer = yield* Writer
  const outbox = yield* Outbox
  const matchSet = yield* WatchedAddresses
  const seen = yield* Repo.byId(reader, id)
  if (seen === undefined) return undefined
  if (given !== undefined && seen.status !== "confirmed") {
    yield* proveGiven(seen, yield* Receipts.ofPayment(reader, seen), given)
  }
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const now = yield* Clock.currentTimeMillis
      const payment = (yield* Repo.byId(tx, id)) ?? seen
      const left = yield* receiptsLeft(payment)
      const money = acceptable(payment, left)
      const stored = yield* Exceptions.ofPayment(tx, payment.id)
      const isConfirmed = payment.status === "confirmed"
      if (!isConfirmed) yield* refuseReturned(stored, left, payment, money.any, given)
      const its = given === undefined ? [] : left.filter(({ canonical, txHash }) => canonical && txHash === given)
      const waived = { uncorroborated, isProven: !isConfirmed && given !== undefined && its.length === 0 }
      const paying = isConfirmed ? [] : [...money.paying, ...its]
      yield* refuseUndecidable(whyUndecidable(tx, chains, `what came for ${id}`, paying, waived))
      for (const exception of stored.filter(({ status }) => status === "open")) {
        yield* refuseUndecidable(whyExceptionUndecidable(tx, chains, exception, waived))
      }
      if (!isConfirmed) {
        const txHash = given ?? money.txHash
        if (txHash === undefined) {
          return yield* refuse(`The transaction that paid ${id} is not known: name it with --tx`)
        }
        yield* acceptOpen(payment.id, now, note)
        const confirmed = confirmedBy(payment, money.paying, txHash, now)
        const steps = [{ payment: confirmed, announced: true, isDecision: true }]
        // An overpayment that this opens is accepted with the rest; what was undecided on other chains is not.
        const decide = () => Effect.asVoid(acceptOpen(payment.id, now, note, "overpaid"))
        yield* storeTransitions(outbox, { payment, steps, receiptsChanged: true, decide }, now)
        // Its address is watched for late money again: the watch since its first end may be over.
        tx.afterCommit(() => matchSet.add(payment.mode, payment.address))
      } else {
        const accepted = yield* acceptOpen(payment.id, now, note)
        if (accepted.length === 0) onRepeated()
        const after = credited(payment, money.paying, accepted, [])
        yield* Repo.update(payment, after, now)
        yield* reportExceptions(outbox, after, now)
      }
      return yield* decided(payment.id)
    })
  )
})

/**
 * Fails every open payment of a chain, or of one currency there (`abandoned`), neither of which need be configured. For
 * a whole chain, then drops undecided money there, which no one will decide, with its exceptions. Gives the number of
 * both. What a scan of the chain finds again counts again.
 */
export const abandon = Effect.fn("Payments.abandon")(function* (network: Network, currency?: PaymentCurrency) {
  const writer = yield* Writer
  const outbox = yield* Outbox
  const chunk = Effect.gen(function* () {
    const tx = yield* Tx
    const now = yield* Clock.currentTimeMillis
    const payments = yield* Repo.openOn(tx, network, currency, abandonChunk)
    for (const payment of payments) {
      const ended: Payment = { ...payment, status: "failed", failureReason: "abandoned", endedAt: now }
      const steps = [{ payment: ended, announced: true, isDecision: true }]
      yield* storeTransitions(outbox, { payment, steps, receiptsChanged: true }, now)
    }
    return payments.length
  })
  let ended = 0
  while (true) {
    const count = yield* writer.write(chunk)
    ended += count
    if (count < abandonChunk) break
  }
  if (currency !== undefined) return { abandoned: ended, givenUp: 0 }
  const givenUp = yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const now = yield* Clock.currentTimeMillis
      const dropped = yield* dropUndecided(network)
      for (const id of new Set(dropped)) {
        const payment = id && (yield* Repo.byId(tx, id))
        if (payment !== undefined) {
          yield* storeTransitions(outbox, { payment, steps: [], receiptsChanged: true }, now)
        }
      }
      return dropped.length
    })
  )
  return { abandoned: ended, givenUp }
})
