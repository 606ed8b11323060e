import { Array as Arr, Clock, Context, Duration, Effect, Either, FiberRef, Layer, Predicate, Redacted } from "effect"
import { Agent, type Dispatcher } from "undici"
import type { JsonBounds } from "../../Domain/JsonScan.ts"
import { badStatus, type MakeRpcError, methodsOf, resultsInOrder, retryAfterOf } from "./batchResponse.ts"
import { RateLimiter } from "./RateLimiter.ts"
import { RpcError, type RpcReason } from "./RpcError.ts"
import { boundsOfBatch, ResponseTooLarge, readErrorResponse, readResponse } from "./readResponse.ts"

/** For one batch, once it is its turn: connecting, sending, waiting and reading the answer to its end. */
const deadline = Duration.seconds(5)
/** How long an unused connection is kept, unless the provider says less. */
const keepAlive = Duration.seconds(30)
/** What a provider says is shown up to this length. */
const maxDetail = 300

/** One JSON-RPC call. */
export interface RpcRequest {
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}

/** What a client has cost since it was made. Bytes are those of the bodies. */
export interface Counters {
  readonly calls: number
  readonly batches: number
  readonly sent: number
  readonly received: number
}

/** The answer to one call of a batch. */
export type CallResult = Either.Either<unknown, RpcError>

/** One provider of one chain. */
export interface RpcClient {
  readonly host: string
  /** The results in the order of the calls, unchecked. One call that fails, or is not answered, fails the batch. */
  readonly send: (calls: ReadonlyArray<RpcRequest>) => Effect.Effect<ReadonlyArray<unknown>, RpcError>
  /** The same, where one call may fail and the others count. */
  readonly sendEach: (calls: ReadonlyArray<RpcRequest>) => Effect.Effect<ReadonlyArray<CallResult>, RpcError>
  /** As they are at the moment. */
  readonly counters: Counters
}

/** Run whenever a provider has answered, by the fiber that asked. */
export const onAnswer = FiberRef.unsafeMake<Effect.Effect<void>>(Effect.void)

/** A client whose `send` fails with the error of one call: with what a provider says, before what it leaves out. */
export const makeClient = ({ counters, host, sendEach: answer }: Omit<RpcClient, "send">): RpcClient => {
  const sendEach: RpcClient["sendEach"] = (calls) =>
    Effect.tap(answer(calls), () => Effect.flatten(FiberRef.get(onAnswer)))
  return {
    host,
    sendEach,
    counters,
    send: (calls) =>
      Effect.flatMap(sendEach(calls), (replies) => {
        const errors = replies.flatMap((reply) => (Either.isLeft(reply) ? [reply.left] : []))
        const error = errors.find(({ reason }) => reason !== "missing") ?? errors[0]
        return error ?? Effect.succeed(replies.map(Either.getOrThrow))
      })
  }
}

/** How to reach providers. The URL is a secret, and nothing of it but the host is ever shown. */
export class Rpc extends Context.Tag("tilld/Chains/Rpc")<
  Rpc,
  { readonly client: (url: Redacted.Redacted<string>) => RpcClient }
>() {
  /** JSON-RPC 2.0 batches over HTTP, on connections that are kept. */
  static readonly layer = Layer.scoped(
    Rpc,
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(
          () =>
            new Agent({
              connections: 8,
              connectTimeout: Duration.toMillis(deadline),
              headersTimeout: Duration.toMillis(deadline),
              bodyTimeout: Duration.toMillis(deadline),
              keepAliveTimeout: Duration.toMillis(keepAlive)
            })
        ),
        (agent) => Effect.promise(() => agent.destroy())
      ),
      (agent) => ({ client: (url) => httpClient(agent, new URL(Redacted.value(url))) })
    )
  )
}

/** Takes everything out of a provider's words that could be the key in its URL. */
const scrubber = (url: URL): ((text: string) => string) => {
  const secrets = [...url.pathname.split("/"), ...url.searchParams.values(), url.username, url.password].filter(
    (part) => part.length >= 6
  )
  return (text) => {
    const scrubbed = secrets.reduce((rest, secret) => rest.replaceAll(secret, "***"), text).replaceAll(/\s+/g, " ")
    return scrubbed.length > maxDetail ? `${scrubbed.slice(0, maxDetail)}…` : scrubbed
  }
}

const codeOf = (cause: unknown): unknown => (Predicate.hasProperty(cause, "code") ? cause.code : undefined)

const reasonOf = (cause: unknown): RpcReason => {
  // Smaller parts have fewer bytes and values, and are no less deep.
  if (cause instanceof ResponseTooLarge) return cause.excess === "depth" ? "garbage" : "too_large"
  const code = codeOf(cause)
  return typeof code === "string" && /^UND_ERR_.*TIMEOUT$/.test(code) ? "timeout" : "unreachable"
}

const basicAuthorization = ({ password, username }: URL): string =>
  `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")}`

const httpClient = (agent: Dispatcher, url: URL): RpcClient => {
  const scrub = scrubber(url)
  const target = { origin: url.origin, path: `${url.pathname}${url.search}` }
  const headers = {
    "content-type": "application/json",
    accept: "application/json",
    ...(url.username === "" ? {} : { authorization: basicAuthorization(url) })
  }
  const counters = { calls: 0, batches: 0, sent: 0, received: 0 }
  let batchLimit = Number.POSITIVE_INFINITY
  const pace = new RateLimiter()

  /** Waits until the provider takes so many calls more. */
  const turn = (calls: number) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const wait = pace.reserve(calls, now)
      if (wait === 0) return Effect.void
      return Effect.onInterrupt(Effect.sleep(wait), () => Effect.sync(() => pace.giveBack(calls)))
    })

  const noteRefusal = Effect.map(Clock.currentTimeMillis, (now) => pace.refused(now))

  /** One exchange, counted. */
  const post = (body: string, bounds: JsonBounds, failed: MakeRpcError) =>
    Effect.tryPromise({
      try: async (signal) => {
        const response = await agent.request({ ...target, method: "POST", headers, body, signal })
        const status = response.statusCode
        const isGood = status >= 200 && status <= 299
        const answer = isGood
          ? { text: "", ...(await readResponse(response.body, bounds)) }
          : await readErrorResponse(response.body)
        counters.received += answer.bytes
        return { status, isGood, ...answer, retryAfter: response.headers["retry-after"] }
      },
      // A host with several addresses fails with an error that has a code and no message.
      catch: (cause) => failed(reasonOf(cause), (cause instanceof Error && cause.message) || String(codeOf(cause)))
    }).pipe(
      Effect.timeoutFail({
        duration: deadline,
        onTimeout: () => failed("timeout", `no answer within ${Duration.format(deadline)}`)
      })
    )

  const exchange = Effect.fn("Rpc.send")(
    function* (calls: ReadonlyArray<RpcRequest>) {
      const methods = methodsOf(calls)
      const failed: MakeRpcError = (reason, detail, { method = methods, ...more } = {}) =>
        new RpcError({ host: url.host, method, reason, detail: scrub(detail), ...more })
      const body = JSON.stringify(
        calls.map((call, id) => ({ jsonrpc: "2.0", id, method: call.method, params: call.params }))
      )
      yield* turn(calls.length)
      counters.calls += calls.length
      counters.batches += 1
      counters.sent += Buffer.byteLength(body)

      const { isGood, retryAfter, status, text, value } = yield* post(body, boundsOfBatch(calls), failed)
      if (!isGood) {
        const now = yield* Clock.currentTimeMillis
        return yield* badStatus(status, text, value, retryAfterOf(status, retryAfter, now), methods, failed)
      }
      if (value === undefined) return yield* failed("garbage", "no JSON")
      const replies = yield* resultsInOrder(calls, value, failed)
      const isRefusal = (reply: CallResult) => Either.isLeft(reply) && reply.left.reason === "rate_limited"
      if (replies.some(isRefusal)) yield* noteRefusal
      return replies
    },
    Effect.tapError(({ reason }) => (reason === "rate_limited" ? noteRefusal : Effect.void))
  )

  /** As one batch, or as many as the provider has been found to want. None is more than it takes in a second. */
  const sendEach = (calls: ReadonlyArray<RpcRequest>): Effect.Effect<ReadonlyArray<CallResult>, RpcError> =>
    Effect.suspend(() => {
      const atOnce = Math.min(batchLimit, Math.floor(pace.perSecond))
      return calls.length > atOnce
        ? Effect.map(Effect.forEach(Arr.chunksOf(calls, atOnce), sendEach, { concurrency: 1 }), Arr.flatten)
        : Effect.catchIf(
            exchange(calls),
            ({ maxCalls }) => maxCalls !== undefined && maxCalls < calls.length,
            ({ maxCalls = batchLimit }) => {
              batchLimit = maxCalls
              return sendEach(calls)
            }
          )
    })

  return makeClient({ host: url.host, sendEach, counters })
}
