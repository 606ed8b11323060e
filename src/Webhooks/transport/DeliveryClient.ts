/**
 * Sends one webhook request and reports how it ended. Connects only to addresses that the target guard allows, keeps
 * connections for further requests, and bounds every attempt: 30 seconds to the status, 5 more to the end of the body.
 * Redirects are not followed, and proxy variables of the environment are ignored. The dispatcher and test sends call it.
 */
import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls"
import { Clock, Context, Data, Effect, Either, Layer } from "effect"
import { Settings } from "../../Settings.ts"
import { Deadlines } from "./Deadlines.ts"
import { IdleConnections } from "./IdleConnections.ts"
import { type DeliveryRequest, OutgoingRequest } from "./OutgoingRequest.ts"
import { type Target, TargetGuard } from "./TargetGuard.ts"
import { type Connection, NoAnswer, open } from "./targetConnection.ts"

/** From the start of an attempt, including name resolution and connecting, to the status. */
const statusDeadline = "30 seconds"

/** From the status to the end of the body. The body does not change the outcome. */
const bodyDeadline = "5 seconds"

export type { DeliveryRequest } from "./OutgoingRequest.ts"

/** How an attempt ended: the receiver's `status` or, when there was no response, an `error` class such as "timeout". */
export interface AttemptOutcome {
  readonly status?: number
  readonly error?: string
  /**
   * The IP address that was connected to, or all that were tried. For operators only: it may reveal the internal network.
   */
  readonly address?: string
  /** The start of the response body, at most 1 KiB. */
  readonly bodyStart?: string
}

/** `webhooks.extra_ca_file` contains no usable certificate. */
export class ExtraCaUnusable extends Data.TaggedError("ExtraCaUnusable")<{ readonly message: string }> {}

/** The certificates of a PEM file. Throws when there is none: Node would silently accept such a file. */
const certificatesIn = (path: string): string => {
  const pem = readFileSync(path, "utf8")
  new X509Certificate(pem)
  return pem
}

/**
 * The certificates that connections trust. Made once, since reading the root certificates takes longer than a handshake,
 * and lazily; but an extra CA file is read at the start, so that an unusable one is reported then.
 */
const secureContextWith = (extraCaFile: string): Effect.Effect<Effect.Effect<SecureContext>, ExtraCaUnusable> =>
  extraCaFile === ""
    ? Effect.sync(() => {
        let made: SecureContext | undefined
        return Effect.sync(() => (made ??= createSecureContext()))
      })
    : Effect.try({
        try: () => Effect.succeed(createSecureContext({ ca: [...rootCertificates, certificatesIn(extraCaFile)] })),
        catch: (cause) =>
          new ExtraCaUnusable({
            message: `webhooks.extra_ca_file ${extraCaFile} cannot be used: give a PEM file with certificates (${cause})`
          })
      })

/** Sends one POST and returns its outcome. Never fails. */
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

      const openTo = (posting: OutgoingRequest) =>
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

      const sendOverNew = (posting: OutgoingRequest) => {
        const opened = Effect.uninterruptibleMask((restore) =>
          Effect.map(restore(openTo(posting)), (connection) => posting.use(connection))
        )
        return Effect.zipRight(Effect.raceFirst(opened, posting.expired), posting.send)
      }

      // A receiver may close an idle connection just when it is used again, or have sent stray bytes after its last
      // response. Neither is a response to this request, so it is sent again over a new connection. If the receiver got
      // it twice, it recognises the event by its id.
      const sendOverKept = (posting: OutgoingRequest, kept: Connection) => {
        posting.use(kept)
        return Effect.catchIf(
          posting.send,
          ({ reason }) => reason !== "timeout",
          () => {
            posting.renew()
            return sendOverNew(posting)
          }
        )
      }

      const finish = (posting: OutgoingRequest, now: number) => {
        const { connection } = posting
        if (posting.isComplete && connection !== undefined) idle.put(connection, now)
        else posting.close()
      }

      const attempt = (target: Target, request: DeliveryRequest): Effect.Effect<AttemptOutcome> =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const posting = new OutgoingRequest(target, request)
          const deadline = deadlines.begin(now, posting.expire)
          const kept = idle.take(target.url.origin)
          return (kept === undefined ? sendOverNew(posting) : sendOverKept(posting, kept)).pipe(
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
          onRight: (target) => attempt(target, request)
        })

      return { post }
    })
  )
}
