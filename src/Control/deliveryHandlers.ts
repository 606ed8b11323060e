import { Effect } from "effect"
import { NotFound } from "../Auth/inputFields.ts"
import { QuotaExceeded } from "../Domain/AccountErrors.ts"
import type { Mode } from "../Domain/Chain.ts"
import type { AccountId } from "../Domain/Ids.ts"
import type { Owner } from "../Domain/Owner.ts"
import { iso } from "../Domain/Timestamp.ts"
import { Reader, Tx } from "../Sql.ts"
import * as LogRepo from "../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../Webhooks/queue/EndpointsRepo.ts"
import { redeliver, redeliverPage } from "../Webhooks/queue/redelivery.ts"
import * as Tests from "../Webhooks/testDelivery.ts"
import { administering, reading } from "./controlHandler.ts"
import * as Requests from "./deliveryRequests.ts"
import { deliveryView } from "./deliveryView.ts"

const noEndpoint = (id: string) =>
  new NotFound({ message: `There is no endpoint ${id}: GET /v1/webhooks names those of an account` })

const noDelivery = (id: string) =>
  new NotFound({ message: `There is no delivery ${id}: tilld webhooks list, or payments show, names them` })

/** The endpoint if one is given, otherwise the account in each of the modes. */
const owners = Effect.fnUntraced(function* (account: AccountId, modes: ReadonlyArray<Mode>, endpoint?: string) {
  if (endpoint === undefined) return modes.map((mode) => ({ owner: { account, mode }, endpoint }))
  const found = yield* EndpointsRepo.ownerOf(yield* Reader, endpoint)
  if (found === undefined) return yield* noEndpoint(endpoint)
  return modes.includes(found.owner.mode) ? [found] : []
})

export const listDeliveriesHandler = reading(
  Requests.ListDeliveries,
  Effect.fnUntraced(function* ({ account, after, endpoint, limit, modes, since, statuses, until }) {
    const reader = yield* Reader
    const last = after === undefined ? undefined : yield* LogRepo.byId(reader, after)
    if (after !== undefined && last === undefined) return yield* noDelivery(after)
    const whose = yield* owners(account, modes, endpoint)
    const selections = whose.flatMap((each) => statuses.map((status) => ({ ...each, status, since, until })))
    return (yield* LogRepo.list(reader, selections, limit, last)).map(deliveryView)
  })
)

export const showDeliveryHandler = reading(
  Requests.ShowDelivery,
  Effect.fnUntraced(function* ({ id }) {
    const delivery = yield* LogRepo.byId(yield* Reader, id)
    return delivery === undefined ? yield* noDelivery(id) : deliveryView(delivery)
  })
)

/** Finds the endpoint that `to` names, which must belong to the owner of what is sent there. */
const targetOf = Effect.fnUntraced(function* (to: string | undefined, { account, mode }: Owner) {
  if (to === undefined) return undefined
  const endpoint = yield* EndpointsRepo.byId(yield* Tx, to)
  if (endpoint === undefined) return yield* noEndpoint(to)
  if (endpoint.account === account && endpoint.mode === mode) return endpoint
  return yield* new Requests.RedeliveryRefused({
    message: `${to} is an endpoint of account ${endpoint.account}, mode ${endpoint.mode}: what is to be sent there is of account ${account}, mode ${mode}`
  })
})

const withinQuota = <A, E, R>(order: Effect.Effect<A, E | QuotaExceeded, R>) =>
  Effect.catchIf(
    order,
    (error): error is Extract<E | QuotaExceeded, QuotaExceeded> => error instanceof QuotaExceeded,
    ({ message }) => new Requests.RedeliveryRefused({ message })
  )

export const redeliverHandler = administering(
  Requests.Redeliver,
  ({ id, to }) => ({ act: "webhooks redeliver", detail: { delivery: id, to } }),
  Effect.fnUntraced(function* ({ id, to }) {
    const delivery = yield* LogRepo.byId(yield* Reader, id)
    if (delivery === undefined) return yield* noDelivery(id)
    const ordered = yield* withinQuota(redeliver(delivery, id, targetOf(to, delivery)))
    if (ordered === undefined) return yield* noDelivery(id)
    const { attemptsMade, result } = ordered
    if (result === "refused") {
      return yield* new Requests.RedeliveryRefused({
        message:
          to === undefined
            ? `${id} cannot be sent again where it went: its endpoint was deleted. Name another one with --to`
            : `${to} does not name the kind of the event that ${id} delivers: tilld webhooks change ${to} --events`
      })
    }
    return { id: ordered.id, result, attemptsMade }
  })
)

export const redeliverRange = administering(
  Requests.RedeliverRange,
  ({ account, after, endpoint, mode, since, status, to, until }) => ({
    act: "webhooks redeliver",
    detail: { account, mode, endpoint, status, since: iso(since), until: iso(until), to, after: after?.sequence }
  }),
  Effect.fnUntraced(function* ({ account, after, endpoint, mode, since, status, to, until }) {
    const [whose] = yield* owners(account, [mode], endpoint)
    if (whose === undefined) return { ordered: 0, due: 0, refused: 0 }
    const selection = { ...whose, status, since, until }
    const { next, ...counts } = yield* withinQuota(redeliverPage(selection, targetOf(to, whose.owner), after))
    return next === undefined ? counts : { ...counts, next }
  })
)

export const sendTestHandler = administering(
  Requests.SendTest,
  ({ endpoint }) => ({ act: "webhooks test", detail: { endpoint }, first: true }),
  Effect.fnUntraced(function* ({ endpoint: id }) {
    const endpoint = yield* EndpointsRepo.byId(yield* Reader, id)
    return endpoint === undefined ? yield* noEndpoint(id) : yield* Tests.sendTest(endpoint)
  })
)
