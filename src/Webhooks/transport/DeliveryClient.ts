import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls"
import { Clock, Context, Data, Effect, Either, Layer } from "effect"
import { Settings } from "../../Settings.ts"
import { type Connection, NoAnswer, open } from "./connection.ts"
import { Deadlines } from "./Deadlines.ts"
import { IdleConnections } from "./IdleConnections.ts"
import { type DeliveryRequest, Posting } from "./Posting.ts"
import { type Target, TargetGuard } from "./TargetGuard.ts"

/** From the start of an attempt, its name look-up and connection included, to the status. */
const statusDeadline = "30 seconds"

/** From the status to the end of the body, which changes nothing any more. */
const bodyDeadline = "5 seconds"

export type { DeliveryRequest } from "./Posting.ts"

/** How an attempt ended. A `status` is the receiver's answer; without one `error` is a short class, such as "timeout". */
export interface AttemptOutcome {
  readonly status?: number
  readonly error?: string
  /** The IP address that was dialled, or those that were tried. For operators: it may tell of the inside network. */
  readonly address?: string
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

/**
 * What connections trust. Made once, since reading the roots takes longer than a handshake, and not before it is used,
 * but for a file that may be of no use: that is for the start to tell.
 */
const secureContextWith = (extraCaFile: string): Effect.Effect<Effect.Effect<SecureContext>, ExtraCaUnusable> =>
  extraCaFile === ""
    ? Effect.cached(Effect.sync(() => createSecureContext()))
    : Effect.try({
        try: () => Effect.succeed(createSecureContext({ ca: [...rootCertificates, certificatesIn(extraCaFile)] })),
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
  { readonly post: (request: DeliveryRequest) => Effect.Effect<AttemptOutcome> }
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

      const openTo = (posting: Posting) =>
        Effect.gen(function* () {
          const { target } = posting
          const addresses = yield* guard.addresses(target)
          posting.dial(addresses)
          const connection = yield* open(target, addresses, yield* secureContext, yield* Clock.currentTimeMillis)
          connection.client.on("disconnect", () => idle.forget(connection))
          return connection
        }).pipe(
          Effect.catchTags({
            TargetRefused: () => new NoAnswer({ reason: "target refused" }),
            NameNotResolved: () => new NoAnswer({ reason: "name not resolved" })
          })
        )

      const sendAnew = (posting: Posting) => {
        const opened = Effect.uninterruptibleMask((restore) =>
          Effect.map(restore(openTo(posting)), (connection) => posting.use(connection))
        )
        return Effect.zipRight(Effect.raceFirst(opened, posting.expired), posting.send)
      }

      // A receiver may close an idle connection in the moment in which it is used again, or have sent more than its last
      // answer. Neither is its answer to this, and whoever is sent an event twice knows it by its id.
      const sendAgain = (posting: Posting, kept: Connection) => {
        posting.use(kept)
        return Effect.catchIf(
          posting.send,
          ({ reason }) => reason !== "timeout",
          () => {
            posting.renew()
            return sendAnew(posting)
          }
        )
      }

      const finish = (posting: Posting, now: number) => {
        const { connection } = posting
        if (posting.isComplete && connection !== undefined) idle.put(connection, now)
        else posting.close()
      }

      const make = (target: Target, request: DeliveryRequest): Effect.Effect<AttemptOutcome> =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const posting = new Posting(target, request)
          const deadline = deadlines.begin(now, posting.expire)
          const kept = idle.take(target.url.origin)
          return (kept === undefined ? sendAnew(posting) : sendAgain(posting, kept)).pipe(
            Effect.tap(() => {
              deadlines.end(deadline)
              return posting.isComplete ? Effect.void : Effect.timeoutOption(posting.over, bodyDeadline)
            }),
            Effect.map((status): AttemptOutcome => ({ status, bodyStart: posting.bodyStart })),
            Effect.catchAll(({ reason }) => Effect.succeed<AttemptOutcome>({ error: reason })),
            Effect.map((outcome) =>
              posting.address === undefined ? outcome : { ...outcome, address: posting.address }
            ),
            Effect.ensuring(
              Effect.map(Clock.currentTimeMillis, (end) => {
                deadlines.end(deadline)
                finish(posting, end)
              })
            )
          )
        })

      const post = (request: DeliveryRequest): Effect.Effect<AttemptOutcome> =>
        Either.match(guard.check(request.url), {
          onLeft: () => Effect.succeed({ error: "target refused" }),
          onRight: (target) => make(target, request)
        })

      return { post }
    })
  )
}
