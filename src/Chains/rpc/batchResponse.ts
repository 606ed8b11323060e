/**
 * Turns the HTTP response to a batch of JSON-RPC calls into a result or an `RpcError` for each call, in the order of
 * the calls, or into one error for the batch. Pure; used by the client in Rpc.ts.
 */
import { Effect, Either, Predicate } from "effect"
import { classifyError, type ErrorMeaning } from "./classifyError.ts"
import type { CallResult, RpcRequest } from "./Rpc.ts"
import type { RpcError, RpcReason } from "./RpcError.ts"

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
