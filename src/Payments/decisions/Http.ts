import { Effect } from "effect"
import { type Act, audited, keyActor, type Note } from "../../Auth/auditLog.ts"
import { keepWithin } from "../../Auth/UsageRepo.ts"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import type { Networks } from "../../Chains/providers/Networks.ts"
import { ApiError, invalid, notFound, quotaExceeded } from "../../Domain/ApiError.ts"
import { type ExceptionObject, toExceptionObject } from "../../Domain/ExceptionObject.ts"
import { defaultPageSize } from "../../Domain/queryParameters.ts"
import type { Outbox } from "../../Events/Outbox.ts"
import { invalidCursor, makeCursors } from "../../Http/cursor.ts"
import { answer, type Handlers, type HttpAnswer } from "../../Http/Handler.ts"
import { Secrets } from "../../Secrets.ts"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import * as ListRepo from "../ExceptionListRepo.ts"
import type { ExceptionsApi } from "./Api.ts"
import { acceptException, auditedAs, closedBy, type Resolved, refundException } from "./resolve.ts"

/** What is decided on is a merchant's: it has a payment, and with that its form in the API. */
const resolvedAnswer = ({ exception }: Resolved): HttpAnswer<ExceptionObject> => {
  const [object] = toExceptionObject(exception)
  if (object === undefined) throw new Error(`${exception.id} has no payment`)
  return answer(object)
}

export const exceptionHandlers = Effect.gen(function* () {
  const reader = yield* Reader
  const { accounts } = yield* Settings
  const cursors = makeCursors(yield* Secrets)
  const services = yield* Effect.context<
    Networks | Outbox | Reader | Settings | Settlement | WatchedAddresses | Writer
  >()

  const handlers: Handlers<typeof ExceptionsApi> = {
    list: ({ key, query: { chain, cursor = "", kind, limit = defaultPageSize, payment, status } }) =>
      Effect.gen(function* () {
        const list = JSON.stringify(["exceptions", status ?? null, kind ?? null, chain ?? null, payment ?? null])
        const after = cursor === "" ? undefined : cursors.decode(cursor, key, list)
        if (after === undefined && cursor !== "") return yield* invalidCursor
        const isOpen = status === undefined ? undefined : status === "open"
        const found = yield* ListRepo.list(reader, key, { isOpen, kind, chain, payment, limit: limit + 1, after })
        const last = found.length > limit ? found[limit - 1] : undefined
        return answer({
          data: found.slice(0, limit).flatMap(toExceptionObject),
          cursor:
            last === undefined ? null : cursors.encode({ createdAt: last.openedAt, sequence: last.sequence }, key, list)
        })
      }),

    resolve: ({ key, path: { id }, payload: { action, amount, note, txHash }, storeReplay }) =>
      Effect.gen(function* () {
        if (action === "accept" && amount !== undefined) {
          return yield* invalid([{ path: "amount", message: "must come with refund: all of an exception is accepted" }])
        }
        const named = { txHash: txHash?.toLowerCase(), note }
        const decide = (add: Note) =>
          Effect.gen(function* () {
            const alsoCommit = (resolved: Resolved, detail: Act["detail"]) =>
              Effect.gen(function* () {
                add(detail)
                yield* keepWithin(key.account, accounts.quotaBytes)
                if (storeReplay !== undefined) yield* storeReplay(resolvedAnswer(resolved))
              })
            const sent = amount === undefined ? undefined : BigInt(amount)
            const resolved =
              action === "accept"
                ? yield* acceptException(id, key, named, (accepted, made) => alsoCommit(accepted, auditedAs(made)))
                : yield* refundException(id, key, sent, named, (returned, made) =>
                    alsoCommit(returned, auditedAs(made, [closedBy(returned)]))
                  )
            return resolved ?? (yield* notFound("exception"))
          })
        const act: Act = {
          act: action === "accept" ? "payments accept" : "payments refunded",
          detail: { id, tx: named.txHash, amount, note }
        }
        return resolvedAnswer(yield* audited(keyActor(key), act, decide))
      }).pipe(
        Effect.catchTags({
          AlreadyDecided: ({ message }) => new ApiError({ code: "EXCEPTION_RESOLVED", message }),
          DecisionInvalid: ({ field, message }) => invalid([{ path: field, message }]),
          NothingToDecide: ({ message }) => new ApiError({ code: "NOTHING_TO_REFUND", message }),
          QuotaExceeded: (error) => quotaExceeded(error),
          TransactionNotProven: ({ message }) => new ApiError({ code: "TRANSACTION_NOT_PROVEN", message })
        }),
        Effect.provide(services)
      )
  }
  return handlers
})
