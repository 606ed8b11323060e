import { Context, Effect, Layer } from "effect"
import { healthHandlers } from "./Admin/readiness.ts"
import { Api } from "./Api.ts"
import { documentHandlers } from "./Documents/Http.ts"
import { eventHandlers } from "./Events/Http.ts"
import { isProxyOf } from "./Http/clientAddress.ts"
import { observeRequests } from "./Http/observe.ts"
import { makeRespond } from "./Http/respond.ts"
import { type AllHandlers, makeRouter } from "./Http/routes.ts"
import { type ListenAddress, serveHttp } from "./Http/server.ts"
import { UnauthenticatedBudget } from "./Http/UnauthenticatedBudget.ts"
import { paymentHandlers } from "./Payments/Http.ts"
import { quoteHandlers } from "./Quotes/Http.ts"
import { Settings } from "./Settings.ts"
import { webhookHandlers } from "./Webhooks/Http.ts"

/**
 * The HTTP API at work. The definition is HttpApi's; it is served by a listener of our own, since HttpApiBuilder and
 * NodeHttpServer take two to three times the processor time a request, and cannot keep the order of checks: a key before
 * the method, an answer and not a reset for a body that is too large.
 */
export class HttpServer extends Context.Tag("tilld/HttpServer")<
  HttpServer,
  {
    /** Where it listens: the real port, if any free one was asked for. */
    readonly address: ListenAddress
  }
>() {
  /** Listens from its acquisition to its release, which lets the requests in flight finish. */
  static readonly layer = Layer.scoped(
    HttpServer,
    Effect.gen(function* () {
      const { server } = yield* Settings
      const handlers: AllHandlers<typeof Api> = {
        payments: yield* paymentHandlers,
        webhooks: yield* webhookHandlers,
        quotes: yield* quoteHandlers,
        events: yield* eventHandlers,
        health: yield* healthHandlers,
        documents: yield* documentHandlers
      }
      const respond = yield* makeRespond(makeRouter(Api, handlers), yield* observeRequests, new UnauthenticatedBudget())
      const isProxy = isProxyOf(server.trustedProxies)
      const address = yield* serveHttp(respond, { host: server.host, port: server.port }, { isProxy })
      yield* Effect.logInfo("listening").pipe(Effect.annotateLogs({ host: address.host, port: address.port }))
      return { address }
    })
  )
}
