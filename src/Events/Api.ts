import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "@effect/platform"
import { Predicate, Schema, Stream } from "effect"
import { ApiKeyAuth, RequiredPermission } from "../Auth/Api.ts"
import { errorBody } from "../Domain/ApiError.ts"
import { Position } from "../Domain/Event.ts"

/** Server-sent events, https://html.spec.whatwg.org/multipage/server-sent-events.html */
const Messages = Schema.declare((body): body is Stream.Stream<string> =>
  Predicate.hasProperty(body, Stream.StreamTypeId)
).annotations({
  jsonSchema: { type: "string", description: "Server-sent events, without an end." },
  [HttpApiSchema.AnnotationEncoding]: { kind: "Text", contentType: "text/event-stream" }
})

export const EventsApi = HttpApiGroup.make("events")
  .add(
    HttpApiEndpoint.get("stream", "/v1/events/stream")
      .setHeaders(Schema.Struct({ "last-event-id": Schema.optionalWith(Position, { exact: true }) }))
      .addSuccess(Messages)
      .addError(errorBody("TOO_MANY_STREAMS"))
      .annotate(RequiredPermission, ["webhooks:read", "payments:read"])
  )
  .addError(errorBody("VALIDATION_ERROR"))
  .addError(errorBody("RATE_LIMITED"))
  .middleware(ApiKeyAuth)
