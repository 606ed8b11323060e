import { Clock, Effect } from "effect"
import type { Mode } from "../Domain/Chain.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { iso } from "../Domain/Timestamp.ts"
import { Reader, type StoreUnavailable, type Tx, Writer } from "../Sql.ts"
import { DeliveryBell } from "../Webhooks/queue/DeliveryBell.ts"
import * as LogRepo from "../Webhooks/queue/DeliveryLogRepo.ts"
import * as EndpointsRepo from "../Webhooks/queue/EndpointsRepo.ts"
import * as RedeliveryRepo from "../Webhooks/queue/RedeliveryRepo.ts"
import * as Tests from "../Webhooks/testDelivery.ts"
import { administering, reading } from "./controlHandler.ts"
import { NotFound } from "./controlRequests.ts"
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
  Effect.fnUntraced(function* ({ account, endpoint, limit, modes, since, statuses, until }) {
    const reader = yield* Reader
    const whose = yield* owners(account, modes, endpoint)
    const selections = whose.flatMap((each) => statuses.map((status) => ({ ...each, status, since, until })))
    return (yield* LogRepo.list(reader, selections, limit)).map(deliveryView)
  })
)

export const showDeliveryHandler = reading(
  Requests.ShowDelivery,
  Effect.fnUntraced(function* ({ id }) {
    const delivery = yield* LogRepo.byId(yield* Reader, id)
    return delivery === undefined ? yield* noDelivery(id) : deliveryView(delivery)
  })
)

/** Stores the order and wakes the dispatcher. */
const commit = Effect.fnUntraced(function* <A>(order: (now: number) => Effect.Effect<A, StoreUnavailable, Tx>) {
  const bell = yield* DeliveryBell
  const writer = yield* Writer
  const now = yield* Clock.currentTimeMillis
  return yield* writer.write(Effect.zipLeft(order(now), bell.ring))
})

export const redeliverHandler = administering(
  Requests.Redeliver,
  ({ id }) => ({ act: "webhooks redeliver", detail: { delivery: id } }),
  Effect.fnUntraced(function* ({ id }) {
    const result = yield* commit((now) => RedeliveryRepo.redeliver(id, now))
    if (result === undefined) return yield* noDelivery(id)
    if (result === "refused") {
      return yield* new Requests.RedeliveryRefused({
        message: `${id} cannot be sent again: its endpoint was deleted. Register one, and send the events of later payments there`
      })
    }
    return { id, result }
  })
)

/** Most deliveries that one command of the writer orders: a long range must not block other writes. */
const orderedAtOnce = 500

export const redeliverRange = administering(
  Requests.RedeliverRange,
  ({ account, after, endpoint, mode, since, status, until }) => ({
    act: "webhooks redeliver",
    detail: { account, mode, endpoint, status, since: iso(since), until: iso(until), after: after?.sequence }
  }),
  Effect.fnUntraced(function* ({ account, after, endpoint, mode, since, status, until }) {
    const [whose] = yield* owners(account, [mode], endpoint)
    if (whose === undefined) return { ordered: 0, due: 0, refused: 0 }
    const selection = { ...whose, status, since, until }
    const { next, ...counts } = yield* commit((now) =>
      RedeliveryRepo.redeliverSome(selection, after, orderedAtOnce, now)
    )
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
