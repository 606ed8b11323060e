/**
 * Sends one webhook request and reports how it ended. Connects only to addresses that the target guard allows, and bounds
 * every attempt: 30 seconds to the status, 5 more to the end of the body, 64 KiB off the wire for all of the response.
 * The dispatcher and test sends call it.
 */
import type { IncomingMessage } from "node:http"
import { Context, Effect, Either, Layer } from "effect"
import { makeHttpClient, type RequestFailed, tooLate, userAgent } from "../../lib/httpClient.ts"
import { Settings } from "../../Settings.ts"
import { TargetGuard } from "./TargetGuard.ts"

/** From the start of an attempt, including name resolution and connecting, to the status. */
const statusDeadline = "30 seconds"
/** From the status to the end of the body. The body does not change the outcome. */
const bodyDeadline = "5 seconds"
/** How long an idle connection is kept. */
const keepAlive = "4 seconds"
/** Bytes of a whole response with its framing, and of its body; then the connection is closed. */
const maxBytes = 64 * 1024
const maxBodyBytes = 16 * 1024
/** Bytes of the body that are kept, to show why an attempt failed. */
const keptBytes = 1024

/** The headers of every webhook request, except the signature. */
export const webhookHeaders = {
  "content-type": "application/json",
  "user-agent": userAgent,
  // No compression: a small response must not decompress into a large one.
  "accept-encoding": "identity"
}

export interface DeliveryRequest {
  readonly url: string
  /** The signature headers. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

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
  /** It needed a connection of its own, which costs this process far more than a request over a kept one. */
  readonly isNewConnection?: boolean
}

const reasons: Readonly<Record<string, string>> = {
  [tooLate]: "timeout",
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  EPIPE: "connection reset",
  // A fault of this machine, not of the endpoint.
  EMFILE: "out of descriptors",
  ENFILE: "out of descriptors",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  ETIMEDOUT: "unreachable"
}

/** The problem of a certificate, by the codes of Node's "TLS (SSL)" documentation, X509 certificate error codes. */
const certificateFaults: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "certificate has expired",
  CERT_NOT_YET_VALID: "certificate is not valid yet",
  CERT_REVOKED: "certificate was revoked",
  ERR_TLS_CERT_ALTNAME_INVALID: "certificate is for another name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "certificate's authority is not trusted",
  UNABLE_TO_GET_ISSUER_CERT: "certificate's authority is not trusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "certificate's authority is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "intermediate certificate is missing, or its authority is not trusted"
}

/** A short class that reveals nothing about the internal network; or a status after which header lines are broken. */
const outcomeOf = ({ cause, code, message, stage }: RequestFailed): AttemptOutcome => {
  // Old software folds header lines, or ends them by LF alone (nodejs/node#43798).
  const head = /^HPE_(CR_EXPECTED|INVALID_HEADER_TOKEN)$/.test(code) ? (cause as { rawPacket?: Buffer }).rawPacket : ""
  const status = /^HTTP\/1\.[01] ([2-5]\d\d)/.exec(String(head?.slice(0, 12)))?.[1]
  if (status !== undefined) return { status: Number(status), bodyStart: "" }
  // Node's words for a connection that ends before the response.
  if (message === "socket hang up") return { error: "connection closed" }
  const other = { connecting: "connection failed", handshake: "tls", response: "invalid response" }[stage]
  return { error: certificateFaults[code] ? `tls: ${certificateFaults[code]}` : (reasons[code] ?? other) }
}

/** The start of a body, as text. Reads it to its end or its bound; a connection whose response goes on is closed. */
export const readStart = (response: IncomingMessage) => {
  const parts: Array<Buffer> = []
  let bytes = 0
  let counted = 0
  const take = (part: Buffer) => {
    if (bytes < keptBytes) parts.push(part)
    // Each piece costs, however short: a body in pieces of one byte is read for a thousand of them.
    counted += Math.max(part.length, 16)
    bytes += part.length
    if (counted > maxBodyBytes) response.destroy()
  }
  const ended = Effect.async<void>((resume) => {
    response.on("data", take).once("close", () => resume(Effect.void))
    return Effect.sync(() => response.destroy())
  })
  // A timer costs as much as the rest of an attempt: a small body has come with the head.
  return Effect.map(response.complete ? ended : Effect.timeoutOption(ended, bodyDeadline), () =>
    Buffer.concat(parts).subarray(0, keptBytes).toString("utf8")
  )
}

/** Sends one POST and returns its outcome. Never fails. */
export class DeliveryClient extends Context.Tag("tilld/Webhooks/DeliveryClient")<
  DeliveryClient,
  { readonly post: (request: DeliveryRequest) => Effect.Effect<AttemptOutcome> }
>() {
  static readonly layer = Layer.scoped(
    DeliveryClient,
    Effect.gen(function* () {
      const guard = yield* TargetGuard
      const { extraCaFile } = (yield* Settings).webhooks
      const client = yield* makeHttpClient(keepAlive, extraCaFile, statusDeadline)

      const post = (request: DeliveryRequest) =>
        Effect.suspend((): Effect.Effect<AttemptOutcome> => {
          const target = guard.check(request.url)
          if (Either.isLeft(target)) return Effect.succeed({ error: "target refused" })
          let about: AttemptOutcome = {}
          // Rarely needed: connections are kept.
          const addresses = Effect.suspend(() => guard.addresses(target.right)).pipe(
            Effect.tap((all) => {
              about = { address: all.join(" "), isNewConnection: true }
              return Effect.void
            })
          )
          const sent = client.send({
            ...{ url: target.right.url, method: "POST", body: request.body, maxBytes, addresses },
            headers: { ...webhookHeaders, ...request.headers },
            onConnection: (address) => {
              about = { ...about, address }
            }
          })
          return sent.pipe(
            Effect.flatMap((response) =>
              Effect.map(readStart(response), (bodyStart) => ({
                ...about,
                status: response.statusCode ?? 0,
                bodyStart
              }))
            ),
            Effect.catchAll((failed): Effect.Effect<AttemptOutcome> => {
              if (failed._tag === "TargetRefused") return Effect.succeed({ error: "target refused" })
              if (failed._tag === "NameNotResolved") return Effect.succeed({ error: "name not resolved" })
              return Effect.succeed({ ...about, ...outcomeOf(failed) })
            })
          )
        })
      return { post }
    })
  )
}
