/**
 * The JSON-RPC client of one provider. It sends calls in batches over kept connections, each with a deadline and bounds
 * on its response; batching.ts says how many calls in which batches. Every failure is an `RpcError`; results are
 * unchecked until `sendBatch` of methods.ts decodes them. The URL is a secret: only its host is shown, and error texts
 * are scrubbed. `Providers` makes the clients.
 */
import { Clock, Context, Duration, Effect, Either, FiberRef, Layer, Redacted } from "effect"
import {
  type HttpClient,
  makeHttpClient,
  percentDecoded,
  type RequestFailed,
  readBody,
  tooLong
} from "../../lib/httpClient.ts"
import type { JsonBounds } from "../../lib/JsonScan.ts"
import { cut } from "../../lib/text.ts"
import { makeBatching } from "./batching.ts"
import { badStatus, type MakeRpcError, methodsOf, resultsInOrder, retryAfterOf } from "./batchResponse.ts"
import { RpcError, type RpcReason } from "./RpcError.ts"
import { boundsOfBatch, ResponseTooLarge, readErrorResponse, readResponse } from "./readResponse.ts"

/** For one batch: connecting, sending, waiting and reading the whole response. */
const deadline = Duration.seconds(5)
/** How long an unused connection is kept, unless the provider says less. */
const keepAlive = Duration.seconds(30)
/** Connections to one provider at once. */
const maxConnections = 8
/** Bytes of a response's head, and of the framing of a small body. A large one is allowed as many bytes again. */
const framing = 128 * 1024
/** Characters of a provider's error text that are shown. */
const maxDetail = 300

/** One JSON-RPC call. */
export interface RpcRequest {
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}

/** The traffic of a client since it was made. `sent` and `received` are bytes of bodies. */
export interface Counters {
  readonly calls: number
  readonly batches: number
  readonly sent: number
  readonly received: number
}

/** The result of one call of a batch. */
export type CallResult = Either.Either<unknown, RpcError>

/** The client of one provider of one chain. */
export interface RpcClient {
  readonly host: string
  /** The results in the order of the calls, unchecked. A call that fails, or has no response, fails the batch. */
  readonly send: (calls: ReadonlyArray<RpcRequest>) => Effect.Effect<ReadonlyArray<unknown>, RpcError>
  /** The same, with a result or error for each call. Fails where the batch fails as a whole. */
  readonly sendEach: (calls: ReadonlyArray<RpcRequest>) => Effect.Effect<ReadonlyArray<CallResult>, RpcError>
  /** Current values. */
  readonly counters: Counters
  /** The most calls of a batch that the provider takes, as far as it has refused longer ones; else infinite. */
  readonly batchLimit?: Effect.Effect<number>
}

/** Run after each response of a provider, by the fiber that sent the calls. The watcher notes its progress with it. */
export const onAnswer = FiberRef.unsafeMake<Effect.Effect<void>>(Effect.void)

/** Completes a client. Its `send` fails with an error that the provider reports before one for a missing response. */
export const makeClient = ({ sendEach: exchange, ...client }: Omit<RpcClient, "send">): RpcClient => {
  const sendEach: RpcClient["sendEach"] = (calls) =>
    Effect.tap(exchange(calls), () => Effect.flatten(FiberRef.get(onAnswer)))
  return {
    ...client,
    sendEach,
    send: (calls) =>
      Effect.flatMap(sendEach(calls), (replies) => {
        const errors = replies.flatMap((reply) => (Either.isLeft(reply) ? [reply.left] : []))
        const error = errors.find(({ reason }) => reason !== "missing") ?? errors[0]
        return error ?? Effect.succeed(replies.map(Either.getOrThrow))
      })
  }
}

/** Makes clients from providers' URLs. */
export class Rpc extends Context.Tag("tilld/Chains/Rpc")<
  Rpc,
  { readonly client: (url: Redacted.Redacted<string>) => RpcClient }
>() {
  /** JSON-RPC 2.0 batches over HTTP, on kept connections. */
  static readonly layer = Layer.scoped(
    Rpc,
    Effect.gen(function* () {
      const client = yield* makeHttpClient(keepAlive)
      return { client: (url) => providerClient(client, new URL(Redacted.value(url))) }
    })
  )
}

/** Removes anything that could be the key of its URL from a provider's error text, and shortens it. */
const scrubber = (url: URL): ((text: string) => string) => {
  const given = [...url.pathname.split("/"), ...url.searchParams.values(), url.username, url.password]
  const secrets = given.flatMap((part) => [part, percentDecoded(part)]).filter((part) => part.length >= 6)
  return (text) => {
    const scrubbed = secrets.reduce((rest, secret) => rest.replaceAll(secret, "***"), text).replaceAll(/\s+/g, " ")
    return cut(scrubbed, maxDetail, "…")
  }
}

const reasonOf = ({ cause, code }: RequestFailed): RpcReason => {
  // A smaller request has fewer bytes and values in its response, but the same depth.
  if (cause instanceof ResponseTooLarge) return cause.excess === "depth" ? "garbage" : "too_large"
  if (code === tooLong) return "too_large"
  // The names of Node's errors for what is no HTTP, and no gzip.
  return /^(HPE|Z)_/.test(code) ? "garbage" : "unreachable"
}

const providerClient = (client: HttpClient, url: URL): RpcClient => {
  const scrub = scrubber(url)
  const headers = { "content-type": "application/json", accept: "application/json" }
  const slots = Effect.unsafeMakeSemaphore(maxConnections)
  const counters = { calls: 0, batches: 0, sent: 0, received: 0 }

  /** One HTTP request and response. */
  const post = (body: string, bounds: JsonBounds, failed: MakeRpcError) =>
    client.send({ url, method: "POST", headers, body, maxBytes: 2 * bounds.bytes + framing }).pipe(
      Effect.flatMap((response) => {
        const { headers, statusCode: status = 0 } = response
        const isGood = status >= 200 && status <= 299
        return readBody(response, async (body) => ({
          ...{ status, isGood, retryAfter: headers["retry-after"] },
          ...(isGood ? { text: "", ...(await readResponse(body, bounds)) } : await readErrorResponse(body))
        }))
      }),
      slots.withPermits(1),
      Effect.mapError((error) => failed(reasonOf(error), error.message || error.code)),
      Effect.timeoutFail({
        duration: deadline,
        onTimeout: () => failed("timeout", `no response within ${Duration.format(deadline)}`)
      }),
      Effect.tap(({ bytes }) => {
        counters.received += bytes
      })
    )

  const exchange = Effect.fn("Rpc.send")(function* (calls: ReadonlyArray<RpcRequest>) {
    const methods = methodsOf(calls)
    const failed: MakeRpcError = (reason, detail, { method = methods, ...more } = {}) =>
      new RpcError({ host: url.host, method, reason, detail: scrub(detail), ...more })
    // Some providers lose an id of 0, take no batches, or no list of one call.
    const objects = calls.map(({ method, params }, i) => ({ jsonrpc: "2.0", id: i + 1, method, params }))
    const body = JSON.stringify(objects.length === 1 ? objects[0] : objects)
    counters.calls += calls.length
    counters.batches += 1
    counters.sent += Buffer.byteLength(body)

    const { isGood, retryAfter, status, text, value } = yield* post(body, boundsOfBatch(calls), failed)
    if (!isGood) {
      const now = yield* Clock.currentTimeMillis
      return yield* badStatus(status, text, value, retryAfterOf(status, retryAfter, now), methods, failed)
    }
    if (value === undefined) return yield* failed("garbage", "no JSON")
    // Many calls may follow each other alone: each response is progress.
    yield* Effect.flatten(FiberRef.get(onAnswer))
    return yield* resultsInOrder(calls, value, failed)
  })

  return makeClient({ host: url.host, counters, ...makeBatching(exchange) })
}
