import type { IncomingMessage } from "node:http"
import { Effect, FiberRef } from "effect"
import type { HttpReply } from "./HttpReply.ts"
import type { ObservedRoute } from "./PageHandler.ts"

/** The results of a request's checks so far. */
interface Traced {
  readonly route: ObservedRoute | undefined
}

/**
 * Makes the function that gives a reply's effect a span, the root of what the request does: a caller's `traceparent` is not
 * followed, since anybody could choose it. Attributes are those of OpenTelemetry's conventions. Without tracing, it is the
 * identity.
 */
export const traceRequests = Effect.map(
  FiberRef.get(FiberRef.currentTracerEnabled),
  (enabled) =>
    (
      reply: Effect.Effect<HttpReply>,
      { method = "" }: IncomingMessage,
      requestId: string,
      found: Traced
    ): Effect.Effect<HttpReply> =>
      enabled
        ? reply.pipe(
            Effect.tap(({ status }) =>
              Effect.annotateCurrentSpan({
                "http.response.status_code": status,
                ...(found.route === undefined ? {} : { "http.route": found.route.path })
              })
            ),
            Effect.withSpan("request", {
              root: true,
              kind: "server",
              attributes: { "http.request.method": method, "tilld.request_id": requestId }
            })
          )
        : reply
)
