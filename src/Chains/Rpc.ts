import { Context, Data, Duration, Effect, Layer, Predicate, Redacted } from "effect"
import { Agent, type Dispatcher } from "undici"

/** For one batch: connecting, sending, waiting and reading the answer to its end. */
const deadline = Duration.seconds(5)
/** The largest block that Ethereum's gas limit allows is about 12 MB of JSON. What is larger is asked for in smaller parts. */
const maxAnswerBytes = 32 * 1024 * 1024
/** How long an unused connection is kept, unless the provider says less. */
const keepAlive = Duration.seconds(30)
/** What a provider says is shown up to this length. */
const maxDetail = 300

/** One JSON-RPC call. */
export interface RpcRequest {
  readonly method: string
  readonly params: ReadonlyArray<unknown>
}

/**
 * What went wrong: no connection, no answer in time, an HTTP status, an answer over the size limit, an error of the
 * provider's, something that the node should have and does not, blocks that do not belong together, or bytes that are
 * no such answer.
 */
export type RpcReason =
  | "unreachable"
  | "timeout"
  | "http"
  | "too_large"
  | "refused"
  | "missing"
  | "inconsistent"
  | "garbage"

const remedies: Readonly<Record<RpcReason, string>> = {
  unreachable: "check the address in rpc_urls and that the node runs",
  timeout: "the provider is slow or hangs; tilld tries again with smaller parts",
  http: "check the key in rpc_urls and the provider's limits",
  too_large: "tilld tries again with smaller parts",
  refused: "check the provider's limits and which methods it serves",
  missing: "the node is behind or does not keep enough; tilld tries again",
  inconsistent: "the chain moved or a balancer mixed its nodes; tilld reads again",
  garbage: "check that rpc_urls points to an Ethereum JSON-RPC endpoint"
}

/** Reasons whose detail is in the provider's own words. */
const theirWords: ReadonlySet<RpcReason> = new Set(["http", "refused", "garbage"])

/** A provider gave no usable answer. Nothing of it was stored; the watcher tries again. */
export class RpcError extends Data.TaggedError("RpcError")<{
  /** Without the path: that carries the provider's key. */
  readonly host: string
  readonly method: string
  readonly reason: RpcReason
  readonly detail: string
}> {
  override get message() {
    return `${this.method} at ${this.host} failed (${this.reason}): ${this.detail}. Remedy: ${remedies[this.reason]}.`
  }

  /** The message without the provider's words, which may tell of the operator's account: for those who need no key. */
  get summary() {
    const detail = theirWords.has(this.reason) ? "" : `: ${this.detail}`
    return `${this.method} at ${this.host} failed (${this.reason})${detail}`
  }
}

/** One provider of one chain. */
export interface RpcClient {
  readonly host: string
  /** The results in the order of the calls, unchecked. One call that fails, or is not answered, fails the batch. */
  readonly send: (calls: ReadonlyArray<RpcRequest>) => Effect.Effect<ReadonlyArray<unknown>, RpcError>
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
              keepAliveTimeout: Duration.toMillis(keepAlive),
              maxResponseSize: maxAnswerBytes
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
  const code = codeOf(cause)
  if (code === "UND_ERR_RES_EXCEEDED_MAX_SIZE") return "too_large"
  return typeof code === "string" && /^UND_ERR_.*TIMEOUT$/.test(code) ? "timeout" : "unreachable"
}

/** What a provider says of an error: JSON-RPC's own form, or whatever else is there. */
const errorText = (error: unknown): string =>
  Predicate.isRecord(error) && typeof error.message === "string"
    ? `${error.message}${typeof error.code === "number" ? ` (${error.code})` : ""}`
    : (JSON.stringify(error) ?? "an error without words")

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

  const send = Effect.fn("Rpc.send")(function* (calls: ReadonlyArray<RpcRequest>) {
    const method = [...new Set(calls.map((call) => call.method))].join(", ")
    const failed = (reason: RpcReason, detail: string) =>
      new RpcError({ host: url.host, method, reason, detail: scrub(detail) })
    const body = JSON.stringify(
      calls.map((call, id) => ({ jsonrpc: "2.0", id, method: call.method, params: call.params }))
    )

    const { status, text } = yield* Effect.tryPromise({
      try: (signal) =>
        agent
          .request({ ...target, method: "POST", headers, body, signal })
          .then((response) => response.body.text().then((text) => ({ status: response.statusCode, text }))),
      // A host with several addresses fails with an error that has a code and no message.
      catch: (cause) => failed(reasonOf(cause), (cause instanceof Error && cause.message) || String(codeOf(cause)))
    }).pipe(
      Effect.timeoutFail({
        duration: deadline,
        onTimeout: () => failed("timeout", `no answer within ${Duration.format(deadline)}`)
      })
    )
    if (status < 200 || status > 299)
      return yield* failed("http", `HTTP ${status}${text === "" ? "" : `: ${text.slice(0, 1000)}`}`)
    const answers = yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => failed("garbage", "no JSON")
    })
    return yield* inOrder(calls, answers, failed)
  })

  return { host: url.host, send }
}

/** Results by the calls' order: a provider may answer a batch in any. */
const inOrder = (
  calls: ReadonlyArray<RpcRequest>,
  answers: unknown,
  failed: (reason: RpcReason, detail: string) => RpcError
): Effect.Effect<ReadonlyArray<unknown>, RpcError> => {
  if (!Array.isArray(answers)) {
    // A batch that is refused as a whole is answered by one error.
    return Predicate.isRecord(answers) && answers.error !== undefined
      ? failed("refused", errorText(answers.error))
      : failed("garbage", "a batch was not answered by a list")
  }
  const results = new Map<number, unknown>()
  for (const answer of answers as ReadonlyArray<unknown>) {
    if (!Predicate.isRecord(answer)) return failed("garbage", "an answer is not an object")
    if (answer.error !== undefined && answer.error !== null) return failed("refused", errorText(answer.error))
    const { id, result } = answer
    if (typeof id !== "number" || calls[id] === undefined || results.has(id) || result === undefined) {
      return failed("garbage", "an answer belongs to no call, or has no result")
    }
    results.set(id, result)
  }
  return results.size === calls.length
    ? Effect.succeed(calls.map((_, id) => results.get(id)))
    : failed("missing", `${calls.length - results.size} of ${calls.length} calls were not answered`)
}
