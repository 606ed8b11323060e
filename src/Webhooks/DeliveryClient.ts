import { readFileSync } from "node:fs"
import { createSecureContext, rootCertificates } from "node:tls"
import { Clock, Context, Data, Deferred, Effect, Layer } from "effect"
import { Settings } from "../Settings.ts"
import packageJson from "../../package.json" with { type: "json" }
import { type Connection, close, NoAnswer, open } from "./connection.ts"
import { Exchange } from "./Exchange.ts"
import { IdleConnections } from "./IdleConnections.ts"
import { type Target, TargetGuard } from "./TargetGuard.ts"

/** From the start of an attempt, its name look-up and connection included, to the status. */
const statusDeadline = "30 seconds"

/** From the status to the end of the body, which changes nothing any more. */
const bodyDeadline = "5 seconds"

const fixedHeaders = {
  "content-type": "application/json",
  "user-agent": `tilld/${packageJson.version}`,
  // Nothing to unpack: a small answer that unpacks into a large one stays small.
  "accept-encoding": "identity"
}

export interface DeliveryRequest {
  readonly url: string
  /** What signs it. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** How an attempt ended. A `status` is the receiver's answer; without one `error` is a short class, such as "timeout". */
export interface Outcome {
  readonly status?: number
  readonly error?: string
  /** The start of the answer's body, at most 1 KiB. */
  readonly bodyStart?: string
}

/** `webhooks.extra_ca_file` holds no certificate that can be used. */
export class ExtraCaUnusable extends Data.TaggedError("ExtraCaUnusable")<{ readonly message: string }> {}

const secureContextWith = (extraCaFile: string) =>
  Effect.try({
    // Made once: reading the roots for each connection would cost more than its handshake.
    try: () =>
      extraCaFile === ""
        ? createSecureContext()
        : createSecureContext({ ca: [...rootCertificates, readFileSync(extraCaFile, "utf8")] }),
    catch: (cause) =>
      new ExtraCaUnusable({
        message: `webhooks.extra_ca_file ${extraCaFile} cannot be used: give a PEM file with certificates (${cause})`
      })
  })

/**
 * Sends one POST and tells how it ended; it never fails. Only addresses that the target guard lets pass are connected
 * to, redirects are an answer like any other, and proxy variables mean nothing here.
 */
export class DeliveryClient extends Context.Tag("tilld/Webhooks/DeliveryClient")<
  DeliveryClient,
  { readonly post: (request: DeliveryRequest) => Effect.Effect<Outcome> }
>() {
  static readonly layer = Layer.scoped(
    DeliveryClient,
    Effect.gen(function* () {
      const guard = yield* TargetGuard
      const secureContext = yield* secureContextWith((yield* Settings).webhooks.extraCaFile)
      const idle = yield* Effect.acquireRelease(
        Effect.sync(() => new IdleConnections()),
        (connections) => Effect.sync(() => connections.closeAll())
      )

      const openTo = (target: Target) =>
        Effect.gen(function* () {
          const addresses = yield* guard.addresses(target)
          const connection = yield* open(target, addresses, secureContext, yield* Clock.currentTimeMillis)
          connection.client.on("disconnect", () => idle.forget(connection))
          return connection
        }).pipe(
          Effect.catchTags({
            TargetRefused: () => new NoAnswer({ reason: "target refused" }),
            NameNotResolved: () => new NoAnswer({ reason: "name not resolved" })
          })
        )

      const post = (request: DeliveryRequest) =>
        Effect.suspend(() => {
          let connection: Connection | undefined
          let exchange = new Exchange()

          const ask = (target: Target, over: Connection) => {
            const { pathname, search } = target.url
            const headers = { ...fixedHeaders, ...request.headers }
            over.client.dispatch({ method: "POST", path: pathname + search, headers, body: request.body }, exchange)
            return Deferred.await(exchange.status)
          }

          const askAnew = (target: Target) =>
            Effect.uninterruptibleMask((restore) =>
              Effect.flatMap(restore(openTo(target)), (opened) => {
                connection = opened
                return restore(ask(target, opened))
              })
            )

          // A receiver may close an idle connection in the moment in which it is used again. That is not its answer, and
          // whoever was sent an event twice knows it by its id.
          const askAgain = (target: Target, kept: Connection) => {
            connection = kept
            return Effect.catchIf(
              ask(target, kept),
              ({ reason }) => reason !== "invalid response",
              () => {
                close(kept)
                exchange = new Exchange()
                return askAnew(target)
              }
            )
          }

          return Effect.gen(function* () {
            const target = yield* Effect.mapError(
              guard.check(request.url),
              () => new NoAnswer({ reason: "target refused" })
            )
            const kept = idle.take(target.url.origin)
            const status = yield* Effect.timeoutFail(kept === undefined ? askAnew(target) : askAgain(target, kept), {
              duration: statusDeadline,
              onTimeout: () => new NoAnswer({ reason: "timeout" })
            })
            if (!exchange.complete) yield* Effect.timeoutOption(Deferred.await(exchange.over), bodyDeadline)
            return { status, bodyStart: exchange.bodyStart }
          }).pipe(
            Effect.catchAll(({ reason }): Effect.Effect<Outcome> => Effect.succeed({ error: reason })),
            Effect.ensuring(
              Effect.map(Clock.currentTimeMillis, (now) => {
                if (connection === undefined) return
                if (exchange.complete) idle.put(connection, now)
                else close(connection)
              })
            )
          )
        })

      return { post }
    })
  )
}
