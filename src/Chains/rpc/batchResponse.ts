/**
 * Turns the HTTP response to a batch of JSON-RPC calls into a result or an `RpcError` for each call, in the order of
 * the calls, or into one error for the batch. Pure; used by the client in Rpc.ts.
 */
import { Effect, Either, Predicate } from "effect"
import type { CallResult, RpcRequest } from "./Rpc.ts"
import type { RpcError, RpcReason } from "./RpcError.ts"

// * The meaning of a JSON-RPC error, by its text: nodes and providers use the same few codes for very different refusals.
// A pure table of patterns; the client maps each error with it, so that callers see a reason and limits only.

/** The meaning of an error, and the limits that its text names. */
type ErrorMeaning = Pick<RpcError, "reason" | "maxBlocks" | "suggestedBlocks" | "maxCalls">

const means = (reason: RpcReason) => (pattern: RegExp) => ({ pattern, reason })

/**
 * Error texts of nodes and providers; the first match counts. Codes are ambiguous: -32600, -32602, -32000 and -32005
 * each stand for several of these. The groups `blocks` and `calls` are limits, `from` and `to` a suggestion. Collected from
 * issue trackers and clients' tests; the test has each text in full.
 */
const known = [
  // The rest of these texts is chosen by a contract, so no limit may be read from it.
  ...[/^[a-z ]{0,30}revert/i, /^VM (?:exception|execution)/i].map(means("refused")),

  ...[
    /batch of more than (?<calls>\d+) requests/i, // dRPC, 1RPC
    /batch limit (?<calls>\d+) exceeded/i, // erigon, geth
    /batch request was too large Exceeded max limit of (?<calls>\d+)/i // reth and others by jsonrpsee
  ].map(means("refused")),

  // Not a limit: the range ends above the head of the node that a balancer picked (geth, reth).
  ...[/beyond current head/i].map(means("missing")),

  ...[
    /up to an? (?<blocks>[\d,.]+k?) block range/i, // Alchemy, Blast API
    /block range should work: \[(?<from>0x[0-9a-f]+), ?(?<to>0x[0-9a-f]+)\]/i, // Alchemy, Blast API
    /try with this block range \[(?<from>0x[0-9a-f]+), ?(?<to>0x[0-9a-f]+)\]/i, // Infura
    /range \d+ exceeds limit of (?<blocks>\d+)/i, // Infura
    // reth, LlamaRPC
    /retry with the range (?<from>\d+)-(?<to>\d+)/i,
    /max block range (?:= )?(?<blocks>\d+)/i,
    /range is too large, max is (?<blocks>[\d,.]+k?) blocks/i,
    // QuickNode, 1RPC ("0 - 50 blocks"), BlockPI, Polygon's zkEVM node
    /(?:logs|filter) (?:is|are) limited to (?:an? )?(?:0 - )?(?<blocks>[\d,.]+k?)/i,
    /block range is limited to (?<blocks>[\d,.]+k?)/i,
    /max range: (?<blocks>\d+)/i, // Cloudflare, Polygon's erigon
    /maximum block range: (?<blocks>[\d,.]+)/i, // PublicNode, Polygon bor
    /ranges over (?<blocks>[\d,.]+) blocks are not supported/i, // dRPC
    /maximum \[from, to\] blocks distance: (?<blocks>\d+)/i, // Ankr
    /exceeds the range allowed for your plan \(\d+ > (?<blocks>\d+)\)/i, // Blast API's paid plans
    /limit the query to at most (?<blocks>[\d,.]+) blocks/i, // Coinbase
    /block range exceeds server limit, narrow your filter: (?<blocks>\d+)/i, // erigon
    /bigger than range limit (?<blocks>\d+)/i, // Tenderly
    /number of requested blocks is (?<blocks>\d+)/i, // thirdweb
    /block range (?:is )?too (?:wide|large|high)/i, // Ankr, Base, Optimism
    /block range limit exceeded/i, // Chainstack
    // geth behind Infura, GetBlock and others
    /returned more than \d+ results/i,
    /query timeout exceeded/i,
    /exceeds max results/i, // reth
    /returns too many logs/i, // erigon
    /logs matched by query exceeds limit/i, // Arbitrum nitro
    // nethermind, whose error code others use for rate limits
    /too many logs requested/i,
    /log query timed out/i,
    /log response size exceeded/i // Alchemy, formerly
  ].map(means("range")),

  // Optimism's and Base's proxy, batches of geth and reth, 1RPC
  ...[/response (?:was )?too large/i, /response size should not/i].map(means("too_large")),

  ...[
    // Infura, Base, Tenderly, Ankr and most others
    /rate.?limit/i,
    /request rate/i,
    /too many requests/i,
    /request limit reached/i, // QuickNode
    /credits limited to/i, // QuickNode
    /compute units per second/i, // Alchemy
    /capacity limit exceeded/i, // Alchemy
    /exceeded the RPS limit/i, // Chainstack
    /timeout on the free tier/i, // dRPC, at the limit of its free tier
    // Infura, GetBlock, Polygon's gateway
    /request count exceeded/i,
    /quota/i,
    /maximum request limit/i
  ].map(means("rate_limited")),

  ...[
    // geth, Polygon bor, Arbitrum nitro
    /missing trie node/i,
    /historical state .{0,200}(?:not |un)available/i,
    /state 0x[0-9a-f]+ is not available/i,
    /state histories haven't been fully indexed/i,
    /pruned history unavailable/i,
    /no historical RPC/i, // Optimism before Bedrock
    /no state available for block/i, // nethermind
    /MissingTrieNodeException/i, // nethermind
    /state at block #?\d+ is pruned/i, // reth
    /exceeds maximum proof window/i, // reth
    /not available due to pruning/i, // erigon
    /data before txNum=\d+ is not available/i, // erigon
    /running with state pruning/i, // Parity
    /archive requests require/i // PublicNode
  ].map(means("state")),

  // A block or a transaction that the node does not have, or not yet
  ...[
    /header not found/i,
    /unknown block/i,
    /block not found/i,
    /transaction (?:0x[0-9a-f]{64} )?not found/i, // geth and its kin, reth, erigon, where it is to be traced
    /transaction indexing is in progress/i // geth
  ].map(means("missing")),

  ...[
    /does not exist.{0,5}is not available/i, // geth and its kin, reth
    /method not found/i, // geth and its kin, reth
    /method .{0,60}(?:is not available|not supported|unsupported)/i, // nethermind, dRPC
    /unsupported method/i, // nethermind, dRPC
    /not whitelisted/i, // PublicNode, GetBlock
    /not (?:included|available) (?:in|on) (?:your|the)[a-z ]{0,30}(?:plan|tier)/i, // Alchemy, QuickNode, Chainstack
    // A node without state overrides, or without the tracer
    /too many arguments/i,
    /invalid tracer/i
  ].map(means("unsupported"))
]

/** EIP-1474's "limit exceeded": of calls at most providers, of results at some. */
const limitExceeded = -32_005

/** Codes that count where the text is unknown: JSON-RPC 2.0, EIP-1474 and HTTP. */
const codes: ReadonlyMap<unknown, RpcReason> = new Map([
  [-32601, "unsupported"],
  [-32004, "unsupported"],
  [limitExceeded, "rate_limited"],
  [429, "rate_limited"]
])

/** "10,000", "2K" or "10.000". */
const count = (text: string): number =>
  Number.parseInt(text.replaceAll(/[,.]/g, ""), 10) * (/k$/i.test(text) ? 1000 : 1)

const positive = (limit: number): number | undefined => (Number.isSafeInteger(limit) && limit > 0 ? limit : undefined)

/**
 * The meaning of an error; `refused` where neither text nor code is known.
 *
 * @param words the error's message and data
 * @param methods the methods called. An unknown limit on `eth_getLogs` is taken for one of results, which smaller block
 * ranges avoid. If it is one of calls, the provider goes into cooldown once the range cannot become smaller
 */
export const classifyError = (words: string, code?: unknown, methods = ""): ErrorMeaning => {
  for (const { pattern, reason } of known) {
    const match = pattern.exec(words)
    if (match === null) continue
    const { blocks = "0", calls, from, to }: Readonly<Record<string, string | undefined>> = match.groups ?? {}
    return {
      reason,
      maxBlocks: positive(count(blocks)),
      suggestedBlocks: positive(Number(to) - Number(from) + 1),
      maxCalls: positive(Number(calls))
    }
  }
  const isOfLogs = code === limitExceeded && methods.includes("eth_getLogs")
  return { reason: isOfLogs ? "range" : (codes.get(code) ?? "refused") }
}

/** Makes the errors of one batch, or of one of its calls. */
export type MakeRpcError = (
  reason: RpcReason,
  detail: string,
  more?: Partial<Pick<RpcError, "method" | "retryAfter" | "maxBlocks" | "suggestedBlocks" | "maxCalls">>
) => RpcError

/** The text of an error: its message and code in JSON-RPC's form, otherwise its JSON. */
const errorText = (error: unknown): string =>
  Predicate.isRecord(error) && typeof error.message === "string"
    ? `${error.message}${typeof error.code === "number" ? ` (${error.code})` : ""}`
    : (JSON.stringify(error) ?? "an error without a message")

/** Characters of a text that are examined. */
const maxText = 1000

/** The meaning of an error in JSON-RPC's form. Some providers give the cause in `data` only. */
const meaningOf = (error: unknown, methods: string): ErrorMeaning => {
  const { code, data, message } = Predicate.isRecord(error) ? error : { message: error }
  const texts = [message, data].map((part) => (typeof part === "string" ? part : (JSON.stringify(part) ?? "")))
  return classifyError(texts.map((part) => part.slice(0, maxText)).join(" "), code, methods)
}

/** The methods of a batch, each once. */
export const methodsOf = (calls: ReadonlyArray<RpcRequest>): string =>
  [...new Set(calls.map(({ method }) => method))].join(", ")

const refusal = (error: unknown, failed: MakeRpcError, method: string): RpcError => {
  const { reason, ...limits } = meaningOf(error, method)
  return failed(reason, errorText(error), { ...limits, method })
}

/** The error of a status other than 2xx: a known JSON-RPC error in the body, where that is JSON, else the status. */
export const badStatus = (
  status: number,
  text: string,
  json: unknown,
  retryAfter: number | undefined,
  methods: string,
  failed: MakeRpcError
): RpcError => {
  const detail = `HTTP ${status}${text === "" ? "" : `: ${text.slice(0, maxText)}`}`
  const [first] = (Array.isArray(json) ? json : [json]) as ReadonlyArray<unknown>
  const error = Predicate.isRecord(first) ? first.error : undefined
  const { reason, ...limits } = meaningOf(error ?? text, methods)
  if (status === 429) return failed("rate_limited", detail, { retryAfter })
  // With 400, an error in JSON-RPC's form is of the calls; with other statuses it may be of the key or the gateway.
  const byStatus = status === 413 ? "too_large" : status === 400 && error !== undefined ? "refused" : "http"
  return failed(reason === "refused" ? byStatus : reason, detail, { ...limits, retryAfter })
}

/** Retry-After by RFC 9110, seconds or a date, as milliseconds from `now` on; undefined for other statuses. */
export const retryAfterOf = (status: number, header: string | ReadonlyArray<string> | undefined, now: number) => {
  if ((status !== 429 && status !== 503) || typeof header !== "string") return undefined
  if (/^\d+$/.test(header)) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

/** The results in the order of the calls, which a provider may answer in any. Fails where the whole batch fails. */
export const resultsInOrder = (
  calls: ReadonlyArray<RpcRequest>,
  responses: unknown,
  failed: MakeRpcError
): Effect.Effect<ReadonlyArray<CallResult>, RpcError> => {
  const isList = Array.isArray(responses)
  if (!isList && calls.length !== 1) {
    // A batch that is refused as a whole gets a single error.
    return Predicate.isRecord(responses) && responses.error !== undefined
      ? refusal(responses.error, failed, methodsOf(calls))
      : failed("garbage", "the response to a batch is not a list")
  }
  const replies = new Map<number, CallResult>()
  for (const response of (isList ? responses : [responses]) as ReadonlyArray<unknown>) {
    if (!Predicate.isRecord(response)) return failed("garbage", "a response is not an object")
    const { error, id: said, result } = response
    const id = typeof said === "number" || typeof said === "string" ? Number(said) - 1 : Number.NaN
    const call = calls[id]
    const refused = error !== undefined && error !== null
    // An error without a call's id concerns the whole batch; geth and erigon report a batch limit on its first call.
    if (refused && (call === undefined || meaningOf(error, "").maxCalls !== undefined)) {
      return refusal(error, failed, methodsOf(calls))
    }
    if (call === undefined || replies.has(id) || (!refused && result === undefined)) {
      return failed("garbage", "a response belongs to no call, or has no result")
    }
    replies.set(id, refused ? Either.left(refusal(error, failed, call.method)) : Either.right(result))
  }
  // No refusal in words, but no batch either.
  if (replies.size === 0 && calls.length > 1) return failed("garbage", "no call has a response")
  const unanswered = ({ method }: RpcRequest) =>
    Either.left(
      failed("missing", `${calls.length - replies.size} of ${calls.length} calls have no response`, { method })
    )
  return Effect.succeed(calls.map((call, id) => replies.get(id) ?? unanswered(call)))
}
