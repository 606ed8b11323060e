import type { IncomingMessage } from "node:http"
import { Context, Effect, Layer } from "effect"
import { healthHandlers } from "./Admin/readiness.ts"
import { Api } from "./Api.ts"
import { ledgerHandlers } from "./Books/Http.ts"
import { documentHandlers } from "./Documents/Http.ts"
import { eventHandlers } from "./Events/Http.ts"
import { clientAddressOf, networkOf } from "./Http/clientAddress.ts"
import { ApiListener, type ListenAddress, serveHttp } from "./Http/listener.ts"
import { RequestLog } from "./Http/RequestLog.ts"
import { observeRequests } from "./Http/requestMetrics.ts"
import { makeRespond, type Respond } from "./Http/respond.ts"
import { type AllHandlers, makeRouter } from "./Http/routes.ts"
import { makeTurns } from "./Http/turns.ts"
import { invoiceHandlers } from "./Invoices/Http.ts"
import { evaluatedOnce, makePages } from "./Pages.ts"
import { exceptionHandlers, refundHandlers } from "./Payments/decisions/Http.ts"
import { paymentHandlers } from "./Payments/Http.ts"
import { quoteHandlers } from "./Quotes/Http.ts"
import { Settings } from "./Settings.ts"
import { webhookHandlers } from "./Webhooks/Http.ts"
import { deliveryHandlers } from "./Webhooks/queue/Http.ts"

/** What the rooms of pages need, together. */
type PageServices =
  | Effect.Effect.Context<typeof import("./Checkout.ts").makeCheckout>
  | Effect.Effect.Context<typeof import("./Portal.ts").makePortal>

/**
 * The HTTP API put together: its definition, its handlers and the kernel of `Http/`. The definition is an HttpApi of
 * Effect, but HttpApiBuilder and NodeHttpServer do not serve it: they take two to three times the processor time per
 * request, and cannot keep the promised order of checks (the key before the method; a reply, not a reset, to a body that
 * is too large).
 */
export class HttpServer extends Context.Tag("tilld/HttpServer")<
  HttpServer,
  {
    /** The address it listens on, with the actual port when the configured one is 0. */
    readonly address: ListenAddress
  }
>() {
  /** Listens until its scope closes, which first lets requests in flight finish. */
  static readonly layer = Layer.scoped(
    HttpServer,
    Effect.gen(function* () {
      const { server } = yield* Settings
      const handlers: AllHandlers<typeof Api> = {
        payments: yield* paymentHandlers,
        invoices: yield* invoiceHandlers,
        exceptions: yield* exceptionHandlers,
        refunds: yield* refundHandlers,
        ledger: yield* ledgerHandlers,
        webhooks: yield* webhookHandlers,
        deliveries: yield* deliveryHandlers,
        quotes: yield* quoteHandlers,
        events: yield* eventHandlers,
        health: yield* healthHandlers,
        documents: yield* documentHandlers
      }
      const pages = yield* makePages<PageServices>([
        { prefix: "/pay", room: "checkout", load: async () => (await import("./Checkout.ts")).makeCheckout },
        { prefix: "/portal", room: "portal", load: async () => (await import("./Portal.ts")).makePortal },
        { prefix: "/api-keys", room: "portal", load: async () => (await import("./Portal.ts")).makePairing },
        { prefix: "/docs", room: "checkout", load: async () => (await import("./Pages/documentation.ts")).makeDocs },
        ...["/i", "/invoice", "/invoices", "/modal", "/pull-payments"].map((prefix) => ({
          ...{ prefix, room: "checkout" as const },
          load: async () => (await import("./Greenfield/pages.ts")).makePluginPages
        })),
        { prefix: "/guide", room: "checkout", load: async () => (await import("./Pages/documentation.ts")).makeGuide }
      ])
      const observe = yield* observeRequests
      const { note } = yield* RequestLog
      const router = makeRouter(Api, handlers)
      const turns = makeTurns()
      const own = yield* makeRespond(router, observe, turns, pages, note)
      const plugins = yield* evaluatedOnce(
        Effect.flatMap(
          Effect.promise(() => import("./Greenfield.ts")),
          ({ makeGreenfield }) => makeGreenfield(own, observe, turns, note)
        )
      )
      const respond: Respond = (request, ...rest) =>
        request.url?.startsWith("/api/v1/") === true
          ? Effect.flatMap(plugins, (answer) => answer(request, ...rest))
          : own(request, ...rest)
      const clientAddress = clientAddressOf(server.trustedProxies)
      const clientOf = (request: IncomingMessage) => networkOf(clientAddress(request))
      const place = { host: server.host, port: server.port }
      const address = yield* serveHttp(respond, place, { clientOf }, yield* ApiListener)
      yield* Effect.logInfo("listening").pipe(Effect.annotateLogs({ host: address.host, port: address.port }))
      return { address }
    })
  )
}
