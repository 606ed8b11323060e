import { Effect } from "effect"
import { Metrics } from "../Telemetry/Metrics.ts"
import type { Route } from "./routes.ts"

/** Told of each answer, with the route that was found, if one was, and the time that it took. */
export type Observe = (route: Route | undefined, method: string | undefined, status: number, seconds: number) => void

/** Counts requests. Whatever a client makes up, a path or a method, is no label. */
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
