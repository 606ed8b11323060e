import { Effect } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import type { Networks } from "../../Chains/providers/Networks.ts"
import { mustFind, notFound } from "../../Domain/ApiError.ts"
import { type ExceptionObject, toExceptionObject } from "../../Domain/Exception.ts"
import { type Refund, refundObject } from "../../Domain/Refund.ts"
import type { Outbox } from "../../Events/Outbox.ts"
import { answerPage, makeCursors } from "../../Http/cursor.ts"
import { answer, type Handlers, type HttpAnswer, storeReplayAs } from "../../Http/Handler.ts"
import { keyActor } from "../../Operations/auditLog.ts"
import { Secrets } from "../../Secrets.ts"
import type { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import * as ListRepo from "../ExceptionsRepo.ts"
import { byId } from "../ExceptionsRepo.ts"
import * as Refunds from "../RefundsRepo.ts"
import type { ExceptionsApi, RefundsApi } from "./Api.ts"
import type { Subject } from "./accept.ts"
import { decide, dropOwnRefund, nameOwnRefund, refundPayment } from "./decide.ts"
import { ownRefund, type Refunded } from "./refund.ts"

/** A merchant's exception has a payment, and so its form in the API. */
const resolvedAnswer = ({ exception }: Subject): HttpAnswer<ExceptionObject> => {
  const [object] = exception === undefined ? [] : toExceptionObject(exception)
  if (object === undefined) throw new Error("an exception of a merchant has no payment")
  return answer(object)
}

type Deciding = Networks | Outbox | Reader | Settings | Settlement | WatchedAddresses | Writer

export const exceptionHandlers = Effect.gen(function* () {
  const reader = yield* Reader
  const cursors = makeCursors(yield* Secrets)
  const services = yield* Effect.context<Deciding>()

  const handlers: Handlers<typeof ExceptionsApi> = {
    list: ({ key, query: { chain, cursor, kind, limit, payment, status } }) => {
      const list = JSON.stringify(["exceptions", status ?? null, kind ?? null, chain ?? null, payment ?? null])
      const isOpen = status === undefined ? undefined : status === "open"
      return answerPage(cursors, toExceptionObject, {
        ...{ owner: key, list, cursor, limit, placeOf: ListRepo.placeOf },
        read: (after, most) => ListRepo.list(reader, key, { isOpen, kind, chain, payment, limit: most, after })
      })
    },

    get: ({ key, path: { id } }) =>
      Effect.flatMap(byId(reader, id), (found) => {
        const isOwn = found?.account === key.account && found.mode === key.mode
        const [object] = isOwn ? toExceptionObject(found) : []
        return object === undefined ? notFound("exception") : Effect.succeed(answer(object))
      }),

    resolve: ({ key, path: { id }, payload, storeReplay }) =>
      decide(keyActor(key), key, id, payload, storeReplayAs(storeReplay, resolvedAnswer)).pipe(
        Effect.map(resolvedAnswer),
        Effect.provide(services)
      )
  }
  return handlers
})

export const refundHandlers = Effect.gen(function* () {
  const reader = yield* Reader
  const cursors = makeCursors(yield* Secrets)
  const services = yield* Effect.context<Deciding>()
  const shown = (refund: Refund) => answer(refundObject(refund))
  const refunded = ({ refund }: Refunded) =>
    answer(refundObject(refund), { headers: { location: `/v1/refunds/${refund.id}` } })

  const handlers: Handlers<typeof RefundsApi> = {
    create: ({ key, path: { id }, payload, storeReplay }) =>
      refundPayment(keyActor(key), key, id, payload, storeReplayAs(storeReplay, refunded)).pipe(
        Effect.map(refunded),
        Effect.provide(services)
      ),

    list: ({ key, query: { cursor, limit, payment, status } }) =>
      answerPage(cursors, refundObject, {
        ...{ owner: key, cursor, limit, placeOf: ({ createdAt, sequence }) => ({ createdAt, sequence }) },
        list: JSON.stringify(["refunds", status ?? null, payment ?? null]),
        read: (after, most) => Refunds.list(reader, key, { payment, status, limit: most, after })
      }),

    get: ({ key, path: { id } }) => Effect.map(mustFind("refund", ownRefund(reader, key, id)), shown),

    name: ({ key, path: { id }, payload: { txHash }, storeReplay }) =>
      nameOwnRefund(keyActor(key), key, id, txHash, storeReplayAs(storeReplay, shown)).pipe(
        Effect.map(shown),
        Effect.provide(services)
      ),

    drop: ({ key, path: { id } }) =>
      dropOwnRefund(keyActor(key), key, id).pipe(Effect.map(shown), Effect.provide(services))
  }
  return handlers
})
