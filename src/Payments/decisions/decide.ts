import { Effect } from "effect"
import { keepWithin } from "../../Auth/UsageRepo.ts"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { Owner, QuotaExceeded } from "../../Domain/Account.ts"
import { ApiError, invalid, notFound, quotaExceeded } from "../../Domain/ApiError.ts"
import type { Accounted } from "../../Domain/Event.ts"
import type { AlreadyDecided, DecisionInvalid, MoneyNotConfirmed, NothingToDecide } from "../../Domain/Exception.ts"
import { type Act, type Actor, audited, type Note } from "../../Operations/auditLog.ts"
import { Settings } from "../../Settings.ts"
import { type CommitWith, Tx, Writer } from "../../Sql.ts"
import * as ExceptionLists from "../ExceptionListRepo.ts"
import { byOwner } from "../PaymentsRepo.ts"
import { refundCounted } from "../refundsWhileOpen.ts"
import type { RefundBody, ResolveBody } from "./Api.ts"
import { acceptException, auditedAs, closedBy, type Resolved, refundException } from "./resolve.ts"

const refusals = {
  AlreadyDecided: ({ message }: AlreadyDecided) => new ApiError({ code: "EXCEPTION_RESOLVED", message }),
  DecisionInvalid: ({ field, message }: DecisionInvalid) => invalid([{ path: field, message }]),
  NothingToDecide: ({ message }: NothingToDecide) => new ApiError({ code: "NOTHING_TO_REFUND", message }),
  MoneyNotConfirmed: ({ message }: MoneyNotConfirmed) => new ApiError({ code: "MONEY_NOT_CONFIRMED", message }),
  QuotaExceeded: (error: QuotaExceeded) => quotaExceeded(error)
}

/**
 * A decision on one of the owner's exceptions, in the audit log and within the account's quota. Refusals are worded as
 * in the API. Called by the API, for its keys, and by the portal, for people.
 */
export const decide = (
  actor: Actor,
  owner: Owner,
  id: string,
  { action, amount, note: said, txHash }: typeof ResolveBody.Type,
  alsoCommit: CommitWith<Resolved> = () => Effect.void
) =>
  Effect.gen(function* () {
    if (action === "accept" && amount !== undefined) {
      return yield* invalid([{ path: "amount", message: "must come with refund: all of an exception is accepted" }])
    }
    const { accounts } = yield* Settings
    const named = { txHash: txHash?.toLowerCase(), note: said }
    const carryOut = (note: Note) =>
      Effect.gen(function* () {
        const committed = (resolved: Resolved, detail: Act["detail"]) =>
          Effect.gen(function* () {
            note(detail)
            yield* keepWithin(owner, accounts.quotaBytes)
            yield* alsoCommit(resolved)
          })
        const sent = amount === undefined ? undefined : BigInt(amount)
        const resolved =
          action === "accept"
            ? yield* acceptException(id, owner, named, (accepted, made) => committed(accepted, auditedAs(made)))
            : yield* refundException(id, owner, sent, named, (returned, made) =>
                committed(returned, auditedAs(made, [closedBy(returned)]))
              )
        return resolved ?? (yield* notFound("exception"))
      })
    const act: Act = {
      act: action === "accept" ? "payments accept" : "payments refunded",
      detail: { id, tx: named.txHash, amount, note: said }
    }
    return yield* audited(actor, act, carryOut)
  }).pipe(
    Effect.catchTags({
      ...refusals,
      TransactionNotProven: ({ message }) => new ApiError({ code: "TRANSACTION_NOT_PROVEN", message })
    })
  )

/** The same for a refund of the money that counts for one of the owner's open payments. */
export const refundPayment = (
  actor: Actor,
  owner: Owner,
  id: string,
  { amount, note: said, txHash }: typeof RefundBody.Type,
  alsoCommit: CommitWith<Accounted> = () => Effect.void
) =>
  Effect.gen(function* () {
    const { accounts } = yield* Settings
    const services = yield* Effect.context<Settings | Settlement>()
    const writer = yield* Writer
    const tx = txHash?.toLowerCase()
    const carryOut = (note: Note) =>
      writer.write(
        Effect.gen(function* () {
          const db = yield* Tx
          const payment = (yield* byOwner(db, owner, id)) ?? (yield* notFound("payment"))
          const { closed, made } = yield* refundCounted(payment, BigInt(amount), { txHash: tx, note: said })
          note(auditedAs(made, closed))
          yield* keepWithin(owner, accounts.quotaBytes)
          const after: Accounted = {
            payment: (yield* byOwner(db, owner, id)) ?? payment,
            ...(yield* ExceptionLists.shownWith(db, payment.id))
          }
          yield* alsoCommit(after)
          return after
        }).pipe(Effect.provide(services))
      )
    return yield* audited(actor, { act: "payments refunded", detail: { id, tx, amount, note: said } }, carryOut)
  }).pipe(Effect.catchTags(refusals))
