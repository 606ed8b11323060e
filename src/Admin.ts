import { Context, Effect, Layer } from "effect"
import { AdminApi } from "./Admin/Api.ts"
import { operatorHealthHandlers } from "./Admin/health.ts"
import { metricsHandlers } from "./Admin/metrics.ts"
import { makeRespond } from "./Http/respond.ts"
import { type AllHandlers, makeRouter } from "./Http/routes.ts"
import { type ListenAddress, ListenFailed, serveHttp } from "./Http/server.ts"

/**
 * For what is asked when it stops, in milliseconds. It stops after the API, which takes up to 20 seconds, and systemd waits
 * for 35.
 */
const drainTimeout = 2_000

/**
 * The operator's own listener: health, and metrics for Prometheus. Metrics are here alone, since they tell of the
 * merchants' endpoints and business, and whoever scrapes them has no key.
 */
export class Admin extends Context.Tag("tilld/Admin")<
  Admin,
  {
    /** Where it listens: the real port, if any free one was asked for. */
    readonly address: ListenAddress
  }
>() {
  /** Listens from its acquisition to its release. */
  static readonly layer = (wanted: ListenAddress) =>
    Layer.scoped(
      Admin,
      Effect.gen(function* () {
        const handlers: AllHandlers<typeof AdminApi> = {
          health: yield* operatorHealthHandlers,
          metrics: yield* metricsHandlers
        }
        const respond = yield* makeRespond(makeRouter(AdminApi, handlers))
        const address = yield* Effect.mapError(
          serveHttp(respond, wanted, { drainTimeout }),
          ({ message }) => new ListenFailed({ message: `[admin]: ${message}` })
        )
        yield* Effect.logInfo("listening for the operator").pipe(
          Effect.annotateLogs({ host: address.host, port: address.port })
        )
        return { address }
      })
    )
}
