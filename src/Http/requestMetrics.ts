import { Effect } from "effect"
import { Metrics } from "../Telemetry/Metrics.ts"
import type { ObservedRoute } from "./PageHandler.ts"

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
      const labels = [route?.path ?? "none", route?.operations.has(method) ? method : "other"]
      httpRequests.add([...labels, `${Math.floor(status / 100)}xx`])
      httpDuration.observe(seconds, labels)
      if (status === 429) httpRateLimited.add()
    }
)
