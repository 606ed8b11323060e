import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Schema } from "effect"
import { ApiKeyAuth, RequiredPermission } from "../Auth/Api.ts"
import { errorBody } from "../Domain/ApiError.ts"
import { EventKind } from "../Domain/Event.ts"
import { alternatives, must } from "../Domain/must.ts"
import { HttpsUrl } from "../Domain/Url.ts"

const Events = Schema.Array(must(`be ${alternatives(EventKind.literals)}`, EventKind))
  .annotations({ message: () => "must be an array of event kinds" })
  .pipe(
    Schema.filter((events) => events.length > 0, { message: () => "must have at least one event kind" }),
    Schema.filter((events) => new Set(events).size === events.length, {
      message: () => "must not have the same event kind twice"
    })
  )

/** What `POST /v1/webhooks` takes. Whether tilld may call `url` is for `Webhooks` to say. */
export const CreateEndpointBody = Schema.Struct({
  url: HttpsUrl,
  events: Events,
  secret: must(
    "be whsec_ followed by 16 to 256 visible characters",
    Schema.Redacted(Schema.String.pipe(Schema.pattern(/^whsec_[^\s\p{C}]{16,256}$/u)))
  )
}).annotations({ identifier: "CreateWebhookEndpoint" })

/** A registered endpoint. Its secret is never returned. */
export const EndpointObject = Schema.Struct({
  id: Schema.String,
  url: Schema.String,
  events: Schema.Array(EventKind),
  createdAt: Schema.String
}).annotations({ identifier: "WebhookEndpoint" })

export const WebhooksApi = HttpApiGroup.make("webhooks")
  .add(
    HttpApiEndpoint.post("create", "/v1/webhooks")
      .setPayload(CreateEndpointBody)
      .addSuccess(EndpointObject, { status: 201 })
      .addError(errorBody("TOO_MANY_ENDPOINTS"))
      .addError(errorBody("IDEMPOTENCY_KEY_IN_USE"))
      .addError(errorBody("IDEMPOTENCY_KEY_REUSED"))
      .annotate(RequiredPermission, "webhooks:write")
  )
  .add(
    HttpApiEndpoint.get("list", "/v1/webhooks")
      .addSuccess(Schema.Struct({ data: Schema.Array(EndpointObject) }))
      .annotate(RequiredPermission, "webhooks:read")
  )
  .add(
    HttpApiEndpoint.del("remove", "/v1/webhooks/:id")
      .setPath(Schema.Struct({ id: Schema.String }))
      .addSuccess(Schema.Struct({ id: Schema.String, deleted: Schema.Literal(true) }))
      .addError(errorBody("NOT_FOUND"))
      .annotate(RequiredPermission, "webhooks:write")
  )
  .addError(errorBody("VALIDATION_ERROR"))
  .addError(errorBody("RATE_LIMITED"))
  .middleware(ApiKeyAuth)
