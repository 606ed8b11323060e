import { Clock, Context, Effect } from "effect"
import type { Owner, QuotaExceeded } from "../../Domain/Account.ts"
import { ApiError, invalid, mustFind, notFound, quotaExceeded } from "../../Domain/ApiError.ts"
import type { ApiKey } from "../../Domain/ApiKey.ts"
import { type DeliveryFilter, DeliveryStatus } from "../../Domain/DeliveryObject.ts"
import { isPluginEventKind } from "../../Domain/Event.ts"
import type { EndpointId, PaymentId } from "../../Domain/Ids.ts"
import { answerPage, makeCursors, placeAt } from "../../Http/cursor.ts"
import { answer, type Handlers, storeReplayAs } from "../../Http/Handler.ts"
import { audited, keyActor } from "../../Operations/auditLog.ts"
import { Secrets } from "../../Secrets.ts"
import type { Settings } from "../../Settings.ts"
import { type Db, Reader, type StoreUnavailable, Tx, Writer } from "../../Sql.ts"
import type { DeliveriesApi } from "./Api.ts"
import type { DeliveryBell } from "./DeliveryBell.ts"
import * as LogRepo from "./DeliveryLogRepo.ts"
import { attemptObject, deliveryObject } from "./DeliveryLogRepo.ts"
import * as EndpointsRepo from "./EndpointsRepo.ts"
import type { Ordered } from "./redelivery.ts"
import { type RangePage, redeliver, redeliverPage } from "./redelivery.ts"

const endpointDeleted = new ApiError({
  code: "ENDPOINT_DELETED",
  message: "The endpoint of this delivery was deleted: name another one with `to`."
})

interface Filters {
  readonly endpoint?: string | undefined
  readonly payment?: string | undefined
  readonly status?: DeliveryFilter | undefined
  readonly createdAfter?: number | undefined
  readonly createdBefore?: number | undefined
}

/** Names a list with its filters, for its cursors. */
const listOf = (name: string, { createdAfter, createdBefore, endpoint, payment, status }: Filters) =>
  JSON.stringify([name, endpoint, payment, status, createdAfter, createdBefore].map((filter) => filter ?? null))

const selectionOf = (owner: Owner, filters: Filters, status: DeliveryFilter): LogRepo.Selection => ({
  owner,
  endpoint: filters.endpoint as EndpointId | undefined,
  payment: filters.payment as PaymentId | undefined,
  status,
  since: filters.createdAfter ?? 0,
  until: filters.createdBefore ?? Number.MAX_SAFE_INTEGER
})

const kindNotNamed = invalid([
  { path: "to", message: "must name the kind of this event: PATCH /v1/webhooks/:id changes an endpoint's events" }
])

/** Finds the endpoint that `to` names. */
const targetOf = Effect.fnUntraced(function* (owner: Owner, to: string | undefined) {
  if (to === undefined) return undefined
  const endpoint = yield* EndpointsRepo.find(yield* Tx, owner, to, false)
  if (endpoint !== undefined) return endpoint
  return yield* invalid([
    { path: "to", message: "must be the id of one of your endpoints: GET /v1/webhooks names them" }
  ])
})

/** Deliveries of a deleted endpoint can still be read, and sent to another one; those of shop plugins cannot. */
const mustKnow = (db: Db, { account, mode }: Owner, endpoint: string | undefined) =>
  endpoint === undefined
    ? Effect.void
    : Effect.flatMap(EndpointsRepo.ownerOf(db, endpoint), (found) =>
        found?.owner.account === account && found.owner.mode === mode && !found.plugins
          ? Effect.void
          : notFound("webhook endpoint")
      )

export const deliveryHandlers = Effect.gen(function* () {
  const reader = yield* Reader
  const cursors = makeCursors(yield* Secrets)
  const services = yield* Effect.context<DeliveryBell | Settings | Writer>()
  const writer = Context.get(services, Writer)

  const ownDelivery = (key: ApiKey, id: string) =>
    Effect.map(LogRepo.ofOwner(reader, key, id), (one) => (one && isPluginEventKind(one.kind) ? undefined : one))

  const administer = <A>(
    key: ApiKey,
    detail: object,
    work: Effect.Effect<A, ApiError | QuotaExceeded | StoreUnavailable, DeliveryBell | Settings | Writer>
  ) =>
    audited(keyActor(key), { act: "webhooks redeliver", detail: { ...detail } }, () => work).pipe(
      Effect.catchTag("QuotaExceeded", (error) => quotaExceeded(error)),
      Effect.provide(services),
      Effect.provideService(Writer, writer)
    )

  const handlers: Handlers<typeof DeliveriesApi> = {
    list: ({ key, query: { cursor, limit, ...filters } }) => {
      const statuses = filters.status === undefined ? DeliveryStatus.literals : [filters.status]
      const selections = statuses.map((status) => selectionOf(key, filters, status))
      const page = answerPage(cursors, deliveryObject, {
        ...{ owner: key, list: listOf("deliveries", filters), cursor, limit },
        placeOf: (delivery) => delivery,
        read: (before, most) => LogRepo.list(reader, selections, most, before)
      })
      return Effect.zipRight(mustKnow(reader, key, filters.endpoint), page)
    },

    get: ({ key, path: { id } }) =>
      Effect.map(mustFind("delivery", ownDelivery(key, id)), (delivery) =>
        answer({ ...deliveryObject(delivery), attempts: delivery.attempts.map(attemptObject) })
      ),

    redeliver: ({ key, path: { id }, payload: { to }, storeReplay }) =>
      Effect.gen(function* () {
        yield* mustFind("delivery", ownDelivery(key, id))
        const commitWith = storeReplayAs(storeReplay, ({ id, result }: Ordered) => answer({ id, result }))
        const order = administer(key, { delivery: id, to }, redeliver(key, id, targetOf(key, to), commitWith))
        const { id: sent, result } = yield* mustFind("delivery", order)
        if (result !== "refused") return answer({ id: sent, result })
        return yield* to === undefined ? endpointDeleted : kindNotNamed
      }),

    redeliverSome: ({ key, payload: { cursor, to, ...filters }, storeReplay }) =>
      Effect.gen(function* () {
        yield* mustKnow(reader, key, filters.endpoint)
        const chosen = { ...filters, status: filters.status ?? ("failing" as const) }
        const list = listOf(`redeliver ${to ?? ""}`, chosen)
        const begin = yield* placeAt(cursors, key, list, cursor)
        // Deliveries that are added, with `to`, are not of the range: it ends where its first request began.
        const until =
          begin?.until ?? Math.min(chosen.createdBefore ?? Number.POSITIVE_INFINITY, yield* Clock.currentTimeMillis)
        const selection = selectionOf(key, { ...chosen, createdBefore: until }, chosen.status)
        const answerOf = ({ next, ...counts }: RangePage) =>
          answer({ ...counts, cursor: next === undefined ? null : cursors.encode({ ...next, until }, key, list) })
        const kept = storeReplayAs(storeReplay, answerOf)
        const order = redeliverPage(selection, targetOf(key, to), begin, kept)
        return answerOf(yield* administer(key, { ...chosen, to, after: begin?.sequence }, order))
      })
  }
  return handlers
})
