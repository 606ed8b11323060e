import { Effect, Either, Predicate } from "effect"
import { classifyError, type ErrorMeaning } from "./classifyError.ts"
import type { CallResult, RpcRequest } from "./Rpc.ts"
import type { RpcError, RpcReason } from "./RpcError.ts"

/** Makes the errors of one batch, or of one of its calls. */
export type MakeRpcError = (
  reason: RpcReason,
  detail: string,
  more?: { readonly method?: string } & Partial<
    Pick<RpcError, "retryAfter" | "maxBlocks" | "suggestedBlocks" | "maxCalls">
  >
) => RpcError

/** What a provider says of an error: JSON-RPC's own form, or whatever else is there. */
const errorText = (error: unknown): string =>
  Predicate.isRecord(error) && typeof error.message === "string"
    ? `${error.message}${typeof error.code === "number" ? ` (${error.code})` : ""}`
    : (JSON.stringify(error) ?? "an error without words")

/** Longer than any words that say something. */
const maxWords = 1000

/** The verdict on an error of JSON-RPC's form. Some say what matters in `data` only. */
const verdictOn = (error: unknown, methods: string): ErrorMeaning => {
  const { code, data, message } = Predicate.isRecord(error) ? error : { message: error }
  const words = [message, data].map((part) => (typeof part === "string" ? part : (JSON.stringify(part) ?? "")))
  return classifyError(words.map((part) => part.slice(0, maxWords)).join(" "), code, methods)
}

/** The methods of a batch, each once. */
export const methodsOf = (calls: ReadonlyArray<RpcRequest>): string =>
  [...new Set(calls.map(({ method }) => method))].join(", ")

const refusal = (error: unknown, failed: MakeRpcError, method: string): RpcError => {
  const { reason, ...limits } = verdictOn(error, method)
  return failed(reason, errorText(error), { ...limits, method })
}

/**
 * A status other than 2xx. What the answer says in JSON-RPC's form tells more than the status, where it is known.
 *
 * @param said the answer's JSON, where it is any
 */
export const badStatus = (
  status: number,
  text: string,
  said: unknown,
  retryAfter: number | undefined,
  methods: string,
  failed: MakeRpcError
): RpcError => {
  const detail = `HTTP ${status}${text === "" ? "" : `: ${text.slice(0, maxWords)}`}`
  const [first] = (Array.isArray(said) ? said : [said]) as ReadonlyArray<unknown>
  const error = Predicate.isRecord(first) ? first.error : undefined
  const { reason, ...limits } = verdictOn(error ?? text, methods)
  if (status === 429) return failed("rate_limited", detail, { retryAfter })
  return failed(reason === "refused" ? "http" : reason, detail, { ...limits, retryAfter })
}

/** RFC 9110: seconds, or a date, as milliseconds from `now` on. */
export const retryAfterOf = (status: number, header: string | ReadonlyArray<string> | undefined, now: number) => {
  if ((status !== 429 && status !== 503) || typeof header !== "string") return undefined
  if (/^\d+$/.test(header)) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

/** Replies by the calls' order: a provider may answer a batch in any. */
export const resultsInOrder = (
  calls: ReadonlyArray<RpcRequest>,
  answers: unknown,
  failed: MakeRpcError
): Effect.Effect<ReadonlyArray<CallResult>, RpcError> => {
  if (!Array.isArray(answers)) {
    // A batch that is refused as a whole is answered by one error.
    return Predicate.isRecord(answers) && answers.error !== undefined
      ? refusal(answers.error, failed, methodsOf(calls))
      : failed("garbage", "a batch was not answered by a list")
  }
  const replies = new Map<number, CallResult>()
  for (const answer of answers as ReadonlyArray<unknown>) {
    if (!Predicate.isRecord(answer)) return failed("garbage", "an answer is not an object")
    const { error, id, result } = answer
    const call = typeof id === "number" ? calls[id] : undefined
    const refused = error !== undefined && error !== null
    // An error that is of no call is of all of them; geth and erigon give that of a batch to its first call.
    if (refused && (call === undefined || verdictOn(error, "").maxCalls !== undefined)) {
      return refusal(error, failed, methodsOf(calls))
    }
    if (typeof id !== "number" || call === undefined || replies.has(id) || (!refused && result === undefined)) {
      return failed("garbage", "an answer belongs to no call, or has no result")
    }
    replies.set(id, refused ? Either.left(refusal(error, failed, call.method)) : Either.right(result))
  }
  const unanswered = ({ method }: RpcRequest) =>
    Either.left(
      failed("missing", `${calls.length - replies.size} of ${calls.length} calls were not answered`, { method })
    )
  return Effect.succeed(calls.map((call, id) => replies.get(id) ?? unanswered(call)))
}
