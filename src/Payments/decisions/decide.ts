/**
 * Decisions of an owner on their money, in the audit log and within the account's quota. Refusals are worded as in the API.
 * Called by the API, for its keys, and by the portal, for people.
 */
import { Effect } from "effect"
import { keepWithin } from "../../Auth/UsageRepo.ts"
import type { Owner, QuotaExceeded } from "../../Domain/Account.ts"
import { ApiError, invalid, mustFind, notFound, quotaExceeded } from "../../Domain/ApiError.ts"
import type {
  AlreadyDecided,
  DecisionInvalid,
  MoneyNotConfirmed,
  NothingToDecide,
  TransactionNotProven
} from "../../Domain/Exception.ts"
import type { Refund, RefundSettled, RefundUnderWay } from "../../Domain/Refund.ts"
import { type Act, type Actor, audited, type Note } from "../../Operations/auditLog.ts"
import { Settings } from "../../Settings.ts"
import type { CommitWith } from "../../Sql.ts"
import type { RefundBody, ResolveBody } from "./Api.ts"
import { accept, type Made, type Subject } from "./accept.ts"
import { dropRefund, nameRefund, noteRefund, type Refunded } from "./refund.ts"

const refusals = {
  AlreadyDecided: ({ message }: AlreadyDecided) => new ApiError({ code: "EXCEPTION_RESOLVED", message }),
  DecisionInvalid: ({ field, message }: DecisionInvalid) => invalid([{ path: field, message }]),
  NothingToDecide: ({ message }: NothingToDecide) => new ApiError({ code: "NOTHING_TO_REFUND", message }),
  MoneyNotConfirmed: ({ message }: MoneyNotConfirmed) => new ApiError({ code: "MONEY_NOT_CONFIRMED", message }),
  QuotaExceeded: (error: QuotaExceeded) => quotaExceeded(error)
}
const settled = {
  RefundUnderWay: ({ message }: RefundUnderWay) => new ApiError({ code: "REFUND_UNDER_WAY", message }),
  RefundSettled: ({ message }: RefundSettled) => new ApiError({ code: "REFUND_SETTLED", message })
}

/** What is committed with a decision: its note for the audit log, the quota, and what the caller adds. */
const withQuota = <A>(
  owner: Owner,
  note: Note,
  detailOf: (result: A, made: Made) => Act["detail"],
  also: CommitWith<A>
) =>
  Effect.map(
    Settings,
    ({ accounts }) =>
      (result: A, made: Made) =>
        Effect.gen(function* () {
          note(detailOf(result, made))
          yield* keepWithin(owner, accounts.quotaBytes)
          yield* also(result)
        })
  )

const madeDetail = (made: Made) => (made === "decided" ? {} : { [made]: true })
const refundDetail = ({ refund }: Refunded, made: Made) => ({ refund: refund.id, ...madeDetail(made) })

/** A decision on one of the owner's exceptions: its money is accepted, or goes back. */
export const decide = (
  actor: Actor,
  owner: Owner,
  id: string,
  { action, amount, note, txHash }: typeof ResolveBody.Type,
  alsoCommit: CommitWith<Subject> = () => Effect.void
) =>
  Effect.gen(function* () {
    if (action === "accept" && amount !== undefined) {
      return yield* invalid([{ path: "amount", message: "must come with refund: all of an exception is accepted" }])
    }
    if (!id.startsWith("exc_")) return yield* notFound("exception")
    const act: Act = {
      act: action === "accept" ? "payments accept" : "payments refunded",
      detail: { id, tx: txHash, amount, note }
    }
    return yield* audited(actor, act, (add) =>
      Effect.gen(function* () {
        if (action === "accept") {
          const committed = yield* withQuota(owner, add, (_: Subject, made) => madeDetail(made), alsoCommit)
          return yield* mustFind("exception", accept(id, owner, { txHash, note }, committed))
        }
        const committed = yield* withQuota(owner, add, refundDetail, alsoCommit)
        const request = { txHash, note, amount: amount === undefined ? undefined : BigInt(amount) }
        return yield* mustFind("exception", noteRefund(id, owner, request, committed))
      })
    )
  }).pipe(
    Effect.catchTags({
      ...refusals,
      RefundUnderWay: settled.RefundUnderWay,
      TransactionNotProven: ({ message }: TransactionNotProven) =>
        new ApiError({ code: "TRANSACTION_NOT_PROVEN", message })
    })
  )

/** A refund of an owner's payment. */
export const refundPayment = (
  actor: Actor,
  owner: Owner,
  id: string,
  { amount, chain, currency, reason: note, to, txHash }: typeof RefundBody.Type,
  alsoCommit: CommitWith<Refunded> = () => Effect.void
) =>
  audited(actor, { act: "payments refunded", detail: { id, amount, chain, currency, to, tx: txHash, note } }, (add) =>
    Effect.gen(function* () {
      if (!id.startsWith("pay_")) return yield* notFound("payment")
      const committed = yield* withQuota(owner, add, refundDetail, alsoCommit)
      const request = { amount: BigInt(amount), chain, currency, to: to?.toLowerCase(), txHash, note }
      return yield* mustFind("payment", noteRefund(id, owner, request, committed))
    })
  ).pipe(Effect.catchTags({ ...refusals, RefundUnderWay: settled.RefundUnderWay }))

/** Names the transaction of an owner's refund. */
export const nameOwnRefund = (
  actor: Actor,
  owner: Owner,
  id: string,
  txHash: string,
  alsoCommit?: CommitWith<Refund>
) =>
  audited(actor, { act: "payments refunded", detail: { id, tx: txHash } }, () =>
    mustFind("refund", nameRefund(id, owner, txHash, alsoCommit))
  ).pipe(Effect.catchTag("RefundSettled", settled.RefundSettled))

/** Drops an owner's refund that was not made. */
export const dropOwnRefund = (actor: Actor, owner: Owner, id: string) =>
  audited(actor, { act: "refunds drop", detail: { id } }, () => mustFind("refund", dropRefund(id, owner))).pipe(
    Effect.catchTags(settled)
  )
