import type { IncomingMessage } from "node:http"
import { Effect, FiberRef } from "effect"
import { Metrics } from "../Telemetry/Metrics.ts"
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

/** Called for each reply, with the matched route, if any, and the time that the request took. */
export type Observe = (
  route: ObservedRoute | undefined,
  method: string | undefined,
  status: number,
  seconds: number
) => void

/** Counts requests. Unknown paths and methods are not used as labels: a client could make up any number of them. */
export const observeRequests = Effect.map(
  Metrics,
  ({ httpDuration, httpRateLimited, httpRequests }): Observe =>
    (route, method = "", status, seconds) => {
      const labels = { route: route?.path ?? "none", method: route?.operations.has(method) ? method : "other" }
      httpRequests.inc({ ...labels, status: `${Math.floor(status / 100)}xx` })
      httpDuration.observe(labels, seconds)
      if (status === 429) httpRateLimited.inc()
    }
)
