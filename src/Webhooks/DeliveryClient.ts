import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { createSecureContext, rootCertificates } from "node:tls"
import { Clock, Context, Data, Deferred, Effect, Either, Layer } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { Settings } from "../Settings.ts"
import { type Connection, close, NoAnswer, open } from "./connection.ts"
import { Deadlines } from "./Deadlines.ts"
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

/** The certificates of a PEM file. Node takes a file without any for an empty one. */
const certificatesIn = (path: string): string => {
  const pem = readFileSync(path, "utf8")
  new X509Certificate(pem)
  return pem
}

// Made once: reading the roots for each connection would cost more than its handshake.
const secureContextWith = (extraCaFile: string) =>
  Effect.try({
    try: () =>
      extraCaFile === ""
        ? createSecureContext()
        : createSecureContext({ ca: [...rootCertificates, certificatesIn(extraCaFile)] }),
    catch: (cause) =>
      new ExtraCaUnusable({
        message: `webhooks.extra_ca_file ${extraCaFile} cannot be used: give a PEM file with certificates (${cause})`
      })
  })

/** A request under way. */
class Attempt {
  readonly target: Target
  readonly #request: DeliveryRequest
  exchange = new Exchange()
  connection: Connection | undefined
  #expired = false

  constructor(target: Target, request: DeliveryRequest) {
    this.target = target
    this.#request = request
  }

  readonly expire = (): void => {
    this.#expired = true
    this.exchange.fail("timeout")
  }

  /** Sends the request over a connection that nothing else uses. */
  send(connection: Connection): Effect.Effect<number, NoAnswer> {
    this.connection = connection
    const { pathname, search } = this.target.url
    const headers = { ...fixedHeaders, ...this.#request.headers }
    connection.client.dispatch(
      { method: "POST", path: pathname + search, headers, body: this.#request.body },
      this.exchange
    )
    return Deferred.await(this.exchange.status)
  }

  /** Forgets a connection that failed, in the time that is left. */
  renew(): void {
    this.close()
    this.exchange = new Exchange()
    if (this.#expired) this.expire()
  }

  close(): void {
    if (this.connection !== undefined) close(this.connection)
    this.connection = undefined
  }
}

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
      const deadlines = yield* Deadlines.make(statusDeadline)
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

      const sendAnew = (attempt: Attempt) =>
        Effect.uninterruptibleMask((restore) => {
          const expired = Effect.zipRight(Deferred.await(attempt.exchange.status), Effect.never)
          const opened = restore(Effect.raceFirst(openTo(attempt.target), expired))
          return Effect.flatMap(opened, (connection) => restore(attempt.send(connection)))
        })

      // A receiver may close an idle connection in the moment in which it is used again. That is not its answer, and
      // whoever is sent an event twice knows it by its id.
      const sendAgain = (attempt: Attempt, kept: Connection) =>
        Effect.catchIf(
          attempt.send(kept),
          ({ reason }) => reason === "connection closed" || reason === "connection reset",
          () => {
            attempt.renew()
            return sendAnew(attempt)
          }
        )

      const finish = (attempt: Attempt, now: number) => {
        if (attempt.exchange.complete && attempt.connection !== undefined) idle.put(attempt.connection, now)
        else attempt.close()
      }

      const make = (target: Target, request: DeliveryRequest): Effect.Effect<Outcome> =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const attempt = new Attempt(target, request)
          const deadline = deadlines.begin(now, attempt.expire)
          const kept = idle.take(target.url.origin)
          return Effect.flatMap(kept === undefined ? sendAnew(attempt) : sendAgain(attempt, kept), (status) => {
            deadlines.end(deadline)
            const { exchange } = attempt
            const outcome = () => ({ status, bodyStart: exchange.bodyStart })
            return exchange.complete
              ? Effect.succeed(outcome())
              : Effect.map(Effect.timeoutOption(Deferred.await(exchange.over), bodyDeadline), outcome)
          }).pipe(
            Effect.catchAll(({ reason }) => Effect.succeed({ error: reason })),
            Effect.ensuring(
              Effect.map(Clock.currentTimeMillis, (end) => {
                deadlines.end(deadline)
                finish(attempt, end)
              })
            )
          )
        })

      const post = (request: DeliveryRequest): Effect.Effect<Outcome> =>
        Either.match(guard.check(request.url), {
          onLeft: () => Effect.succeed({ error: "target refused" }),
          onRight: (target) => make(target, request)
        })

      return { post }
    })
  )
}
