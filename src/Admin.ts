import { Context, Effect, Layer } from "effect"
import { AdminApi, type OperatorHealthApi } from "./Admin/Api.ts"
import { metricsHandlers } from "./Admin/metrics.ts"
import { alive, makeReport, readinessStatusOf } from "./Admin/readiness.ts"
import { Conditions, shownCondition } from "./Conditions/standing.ts"
import { answer, type Handlers } from "./Http/Handler.ts"
import { onlyCalledBy } from "./Http/hostNames.ts"
import { AddressUnavailable, type ListenAddress, ListenFailed, serveHttp } from "./Http/listener.ts"
import { makeRespond } from "./Http/respond.ts"
import { type AllHandlers, makeRouter } from "./Http/routes.ts"

/** Health with reasons, providers, the delivery backlog, and what is wrong. */
export const operatorHealthHandlers = Effect.gen(function* () {
  const report = yield* makeReport
  const conditions = yield* Conditions
  const handlers: Handlers<typeof OperatorHealthApi> = {
    alive: () => Effect.succeed(alive),
    ready: () =>
      Effect.zipWith(report, conditions.now, (readiness, now) =>
        answer({ ...readiness, conditions: now.map(shownCondition) }, readinessStatusOf(readiness))
      )
  }
  return handlers
})

/**
 * How long a shutdown waits for requests in flight, in milliseconds. This listener stops after the API's, which takes up
 * to 20 seconds, and systemd waits for 35.
 */
const drainTimeout = 2_000

/** Where it listens, and the names by which it may be called, besides that host, IP addresses and localhost. */
export interface AdminAddress extends ListenAddress {
  readonly names: ReadonlyArray<string>
}

/**
 * The operator's own listener: health with reasons, and metrics for Prometheus. Metrics are not on the public listener:
 * they reveal merchants' endpoints and turnover, and Prometheus scrapes them without a key. So it answers no web page either that
 * gives its own name this address.
 */
export class Admin extends Context.Tag("tilld/Admin")<
  Admin,
  {
    /** The address it listens on, with the actual port when the configured one is 0. */
    readonly address: ListenAddress
  }
>() {
  /** Listens until its scope closes. */
  static readonly layer = (wanted: AdminAddress) =>
    Layer.scoped(
      Admin,
      Effect.gen(function* () {
        const handlers: AllHandlers<typeof AdminApi> = {
          health: yield* operatorHealthHandlers,
          metrics: yield* metricsHandlers
        }
        const respond = yield* makeRespond(makeRouter(AdminApi, handlers))
        const named = onlyCalledBy([wanted.host, ...wanted.names], respond)
        const address = yield* serveHttp(named, wanted, { drainTimeout }).pipe(
          Effect.catchTags({
            ListenFailed: ({ message }) => new ListenFailed({ message: `[admin]: ${message}` }),
            AddressUnavailable: ({ message }) => new AddressUnavailable({ message: `[admin]: ${message}` })
          })
        )
        yield* Effect.logInfo("listening for the operator").pipe(
          Effect.annotateLogs({ host: address.host, port: address.port })
        )
        return { address }
      })
    )
}
