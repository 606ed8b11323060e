import { Schema } from "effect"
import { endpointsFor, keyedGroup } from "../../Auth/Api.ts"
import { DeliveryFilter, DeliveryObject, DeliveryWithAttempts } from "../../Domain/DeliveryObject.ts"
import { alternatives, count, idPattern, maybe, must, text } from "../../lib/annotations.ts"
import {
  choiceParameter,
  cursorParameter,
  idParameter,
  limitParameter,
  momentParameter,
  pageSchema
} from "../../lib/parameters.ts"

export const DeliveryPage = pageSchema("DeliveryPage", "deliveries", DeliveryObject)

const scope = {
  endpoint: idParameter("Only those to this endpoint", "wh"),
  payment: idParameter("Only those of this payment", "pay"),
  createdAfter: momentParameter("Only those made at this time or later"),
  createdBefore: momentParameter("Only those made before this time")
}

/** The query of `GET /v1/deliveries`. */
export const ListDeliveriesQuery = Schema.Struct({
  ...scope,
  status: choiceParameter(
    DeliveryFilter,
    "Only deliveries in this state; `failing` ones have a failed attempt and none that succeeded"
  ),
  limit: limitParameter("Deliveries"),
  cursor: cursorParameter
})

const To = idParameter("The endpoint to send to, in place of the former one", "wh")

/** What `POST /v1/deliveries/:id/redeliver` takes. */
export const RedeliverBody = Schema.Struct({ to: To }).annotations({
  identifier: "Redeliver",
  description: "May be `{}`. Unknown fields are refused."
})

/** What `POST /v1/deliveries/redeliver` takes. */
export const RedeliverSomeBody = Schema.Struct({
  ...scope,
  status: maybe(
    must(`be ${alternatives(DeliveryFilter.literals)}`, DeliveryFilter, {
      about: "Only deliveries in this state",
      byDefault: "failing",
      log: "shown"
    })
  ),
  to: To,
  cursor: cursorParameter
}).annotations({
  identifier: "RedeliverSome",
  description: "Which deliveries to send again: the filters of the list. Unknown fields are refused."
})

export const Redelivered = Schema.Struct({
  id: text("The delivery that is sent: with `to`, the one to that endpoint.", idPattern("dlv")),
  result: Schema.Literal("ordered", "due").annotations({
    description: "`ordered`: an attempt is made now. `due`: one was about to be made already, and nothing was added."
  })
}).annotations({ identifier: "Redelivered" })

export const RedeliveredSome = Schema.Struct({
  ordered: count("For how many an attempt is made now."),
  due: count(
    "For how many nothing was added: an attempt was about to be made already or, with `to`, the event has arrived there."
  ),
  refused: count(
    "How many went to a deleted endpoint: name another one with `to`. With `to`, how many report no new status and are of a kind that this endpoint does not name."
  ),
  cursor: Schema.NullOr(Schema.String).annotations({
    description: "Send the same body with this `cursor` to go on with the rest; null at the end."
  })
}).annotations({ identifier: "RedeliveredSome" })

const { get, post } = endpointsFor("webhooks:read", "webhooks:write")

const Path = Schema.Struct({ id: text("Identifier of the delivery: `dlv_…`.") })

export const DeliveriesApi = keyedGroup("deliveries")
  .add(
    get("list", "/v1/deliveries", "NOT_FOUND", "INVALID_CURSOR")
      .setUrlParams(ListDeliveriesQuery)
      .addSuccess(DeliveryPage)
  )
  .add(get("get", "/v1/deliveries/:id", "NOT_FOUND").setPath(Path).addSuccess(DeliveryWithAttempts))
  .add(
    post("redeliverSome", "/v1/deliveries/redeliver", "NOT_FOUND", "INVALID_CURSOR", "QUOTA_EXCEEDED")
      .setPayload(RedeliverSomeBody)
      .addSuccess(RedeliveredSome)
  )
  .add(
    post("redeliver", "/v1/deliveries/:id/redeliver", "NOT_FOUND", "ENDPOINT_DELETED", "QUOTA_EXCEEDED")
      .setPath(Path)
      .setPayload(RedeliverBody)
      .addSuccess(Redelivered)
  )
