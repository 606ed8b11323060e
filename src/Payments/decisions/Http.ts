import { Effect } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import type { Networks } from "../../Chains/providers/Networks.ts"
import type { Accounted } from "../../Domain/Event.ts"
import { type ExceptionObject, toExceptionObject } from "../../Domain/ExceptionObject.ts"
import type { Outbox } from "../../Events/Outbox.ts"
import { accountedObject } from "../../Events/paymentObject.ts"
import { invalidCursor, makeCursors, pageOf } from "../../Http/cursor.ts"
import { answer, type Handlers, type HttpAnswer, storeReplayAs } from "../../Http/Handler.ts"
import { defaultPageSize } from "../../lib/parameters.ts"
import { keyActor } from "../../Operations/auditLog.ts"
import { Secrets } from "../../Secrets.ts"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import * as ListRepo from "../ExceptionListRepo.ts"
import type { ExceptionsApi } from "./Api.ts"
import { decide, refundPayment } from "./decide.ts"
import type { Resolved } from "./resolve.ts"

/** A merchant's exception has a payment, and so its form in the API. */
const resolvedAnswer = ({ exception }: Resolved): HttpAnswer<ExceptionObject> => {
  const [object] = toExceptionObject(exception)
  if (object === undefined) throw new Error(`${exception.id} has no payment`)
  return answer(object)
}

export const exceptionHandlers = Effect.gen(function* () {
  const reader = yield* Reader
  const cursors = makeCursors(yield* Secrets)
  const services = yield* Effect.context<
    Networks | Outbox | Reader | Settings | Settlement | WatchedAddresses | Writer
  >()
  const settings = yield* Settings
  const refundedAnswer = (refunded: Accounted) => answer(accountedObject(refunded, settings))

  const handlers: Handlers<typeof ExceptionsApi> = {
    list: ({ key, query: { chain, cursor = "", kind, limit = defaultPageSize, payment, status } }) =>
      Effect.gen(function* () {
        const list = JSON.stringify(["exceptions", status ?? null, kind ?? null, chain ?? null, payment ?? null])
        const isOpen = status === undefined ? undefined : status === "open"
        const page = yield* pageOf(cursors, {
          ...{ owner: key, list, cursor, limit, placeOf: ListRepo.placeOf },
          read: (after, most) => ListRepo.list(reader, key, { isOpen, kind, chain, payment, limit: most, after })
        })
        if (page === undefined) return yield* invalidCursor
        return answer({ data: page.rows.flatMap(toExceptionObject), cursor: page.next ?? null })
      }),

    resolve: ({ key, path: { id }, payload, storeReplay }) =>
      decide(keyActor(key), key, id, payload, storeReplayAs(storeReplay, resolvedAnswer)).pipe(
        Effect.map(resolvedAnswer),
        Effect.provide(services)
      ),

    refund: ({ key, path: { id }, payload, storeReplay }) =>
      refundPayment(keyActor(key), key, id, payload, storeReplayAs(storeReplay, refundedAnswer)).pipe(
        Effect.map(refundedAnswer),
        Effect.provide(services)
      )
  }
  return handlers
})
