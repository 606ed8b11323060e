import { Effect } from "effect"
import { type Act, type Actor, audited, type Note } from "../../Auth/auditLog.ts"
import { keepWithin } from "../../Auth/UsageRepo.ts"
import { ApiError, invalid, notFound, quotaExceeded } from "../../Domain/ApiError.ts"
import type { Owner } from "../../Domain/Owner.ts"
import { Settings } from "../../Settings.ts"
import type { CommitWith } from "../../Sql.ts"
import type { ResolveBody } from "./Api.ts"
import { acceptException, auditedAs, closedBy, type Resolved, refundException } from "./resolve.ts"

/**
 * A decision on one of the owner's exceptions, in the audit log and within the account's quota. What refuses it is said as
 * the API says it. Called by the API, for its keys, and by the portal, for people.
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
      AlreadyDecided: ({ message }) => new ApiError({ code: "EXCEPTION_RESOLVED", message }),
      DecisionInvalid: ({ field, message }) => invalid([{ path: field, message }]),
      NothingToDecide: ({ message }) => new ApiError({ code: "NOTHING_TO_REFUND", message }),
      QuotaExceeded: (error) => quotaExceeded(error),
      TransactionNotProven: ({ message }) => new ApiError({ code: "TRANSACTION_NOT_PROVEN", message })
    })
  )
