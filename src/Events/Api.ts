import { HttpApiEndpoint, HttpApiSchema } from "@effect/platform"
import { Predicate, Schema, Stream } from "effect"
import { keyedGroup, RequiredPermission } from "../Auth/Api.ts"
import { errorBody } from "../Domain/ApiError.ts"
import { EventKind, Position } from "../Domain/Event.ts"
import { alternatives, maybe, must } from "../lib/annotations.ts"

/** Server-sent events, https://html.spec.whatwg.org/multipage/server-sent-events.html */
const Messages = Schema.declare((body): body is Stream.Stream<string> =>
  Predicate.hasProperty(body, Stream.StreamTypeId)
).annotations({
  jsonSchema: { type: "string", description: "Server-sent events, without an end." },
  [HttpApiSchema.AnnotationEncoding]: { kind: "Text", contentType: "text/event-stream" }
})

/** Each kind once. */
const mostCharacters = EventKind.literals.join().length

const Kinds = must(
  `be kinds of events, separated by commas: ${alternatives(EventKind.literals)}`,
  Schema.String.pipe(
    Schema.maxLength(mostCharacters),
    Schema.compose(Schema.split(",")),
    Schema.compose(Schema.Array(EventKind), { strict: false })
  ),
  { about: "Only these kinds; otherwise all that report a payment's new status", json: { type: "string" } }
)

export const EventsApi = keyedGroup("events").add(
  HttpApiEndpoint.get("stream", "/v1/events/stream")
    .setUrlParams(Schema.Struct({ events: maybe(Kinds) }))
    .setHeaders(Schema.Struct({ "last-event-id": maybe(Position) }))
    .addSuccess(Messages)
    .addError(errorBody("TOO_MANY_STREAMS"))
    .annotate(RequiredPermission, ["webhooks:read", "payments:read"])
)
