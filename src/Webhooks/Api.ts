import { Duration, Schema } from "effect"
import { endpointsFor, keyedGroup } from "../Auth/Api.ts"
import { withStatus } from "../Domain/ApiError.ts"
import { defaultOverlapHours, longestOverlap } from "../Domain/ApiKey.ts"
import { EventKind } from "../Domain/Event.ts"
import { EventKinds, SecretText, secretRule } from "../Domain/Webhook.ts"
import { idPattern, maybe, must, text, timestamp } from "../lib/annotations.ts"
import { HttpsUrl } from "../lib/Url.ts"

const Secret = must(secretRule, Schema.Redacted(SecretText), {
  about: "Signs what is sent to this endpoint; it is never shown again",
  // Without `\p`, which validators understand with the `u` flag only.
  json: { pattern: "^whsec_\\S+$", minLength: 22, maxLength: 262 },
  log: "hidden"
})

/** The input of `POST /v1/webhooks`. `Webhooks` decides whether tilld may call `url`. */
export const CreateEndpointBody = Schema.Struct({
  url: HttpsUrl,
  events: EventKinds,
  secret: Secret
}).annotations({
  identifier: "CreateWebhookEndpoint",
  description: "Where events are to go. Unknown fields are refused."
})

const longestSeconds = Duration.toSeconds(longestOverlap)

const OverlapSeconds = must(
  `be an integer from 0 to ${longestSeconds}, in seconds, with a secret`,
  Schema.Number.pipe(Schema.int(), Schema.between(0, longestSeconds)),
  { about: "How long the former secret also signs", byDefault: defaultOverlapHours * 3600, log: "shown" }
)

/** The input of `PATCH /v1/webhooks/:id`. */
export const ChangeEndpointBody = Schema.Struct({
  url: maybe(HttpsUrl),
  events: maybe(EventKinds),
  secret: maybe(Secret),
  overlapSeconds: maybe(OverlapSeconds)
}).annotations({
  identifier: "ChangeWebhookEndpoint",
  description: "What is to change: at least one of `url`, `events` and `secret`. Unknown fields are refused."
})

/** A registered endpoint. Its secret is never returned. */
export const EndpointObject = Schema.Struct({
  id: text("Identifier of the endpoint.", idPattern("wh")),
  url: text("Where events go.", { format: "uri" }),
  events: Schema.Array(EventKind).annotations({ description: "The event kinds that it receives." }),
  createdAt: timestamp("When it was registered"),
  formerSecretUntil: maybe(timestamp("While the former secret signs too: until when"))
}).annotations({ identifier: "WebhookEndpoint", description: "A registered endpoint, without its secret." })

export const EndpointList = Schema.Struct({
  data: Schema.Array(EndpointObject).annotations({ description: "All of them, at most 50." })
}).annotations({ identifier: "WebhookEndpointList" })

export const RemovedEndpoint = Schema.Struct({
  id: text("Identifier of the endpoint that was deleted.", idPattern("wh")),
  deleted: Schema.Literal(true),
  cancelled: maybe(
    Schema.Number.annotations({
      jsonSchema: {
        type: "integer",
        minimum: 0,
        description:
          "How many deliveries ended with it: they had not arrived yet. Each can be sent to another endpoint, with `to`."
      }
    })
  )
}).annotations({ identifier: "DeletedWebhookEndpoint" })

const { del, get, patch, post } = endpointsFor("webhooks:read", "webhooks:write")

const Path = Schema.Struct({ id: text("Identifier of the endpoint: `wh_…`.") })

export const WebhooksApi = keyedGroup("webhooks")
  .add(
    post("create", "/v1/webhooks", "TOO_MANY_ENDPOINTS", "QUOTA_EXCEEDED")
      .setPayload(CreateEndpointBody)
      .addSuccess(withStatus(201, EndpointObject))
      .addSuccess(withStatus(200, EndpointObject))
  )
  .add(get("get", "/v1/webhooks/:id", "NOT_FOUND").setPath(Path).addSuccess(EndpointObject))
  .add(get("list", "/v1/webhooks").addSuccess(EndpointList))
  .add(
    patch("change", "/v1/webhooks/:id", "NOT_FOUND", "ROTATION_UNDER_WAY", "QUOTA_EXCEEDED")
      .setPath(Path)
      .setPayload(ChangeEndpointBody)
      .addSuccess(EndpointObject)
  )
  .add(del("remove", "/v1/webhooks/:id", "NOT_FOUND").setPath(Path).addSuccess(RemovedEndpoint))
