import type { ErrorCode } from "./types.ts"

/** The content of an error response. */
export interface Refusal {
  /** HTTP status. */
  readonly status: number
  /** `INVALID_RESPONSE`: the response is not tilld's, but that of something in between, such as a proxy. */
  readonly code: ErrorCode | "INVALID_RESPONSE" | (string & Record<never, never>)
  /** What was wrong and what to do, for developers. */
  readonly message: string
  /** Depends on `code`: `[{path, message}]` of a `VALIDATION_ERROR`, `{paymentId}` of a `DUPLICATE_MERCHANT_REF`. */
  readonly details?: unknown
  /** Names the request in the operator's log. */
  readonly requestId: string | undefined
  /** Seconds to wait before the request may be repeated. */
  readonly retryAfter: number | undefined
}

/** The message, and the first problem of a request that is not valid: what most programs log is the message alone. */
const messageOf = ({ details, message }: Refusal): string => {
  const [first, ...others] = Array.isArray(details) ? details : []
  if (typeof first?.path !== "string" || typeof first.message !== "string") return message
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`
  return `${message} ${[first.path, first.message].filter((part) => part !== "").join(" ")}${more}`
}

/** The request got an error response. `message` also has the first problem of `details`. */
export class TilldError extends Error implements Refusal {
  override readonly name: string = "TilldError"
  readonly status: number
  readonly code: Refusal["code"]
  readonly details: unknown
  readonly requestId: string | undefined
  readonly retryAfter: number | undefined

  constructor(refusal: Refusal) {
    super(messageOf(refusal))
    this.status = refusal.status
    this.code = refusal.code
    this.details = refusal.details
    this.requestId = refusal.requestId
    this.retryAfter = refusal.retryAfter
  }
}

/** There was no response: the request may have been carried out or not. `cause` is what `fetch` threw, if it did. */
export class TilldConnectionError extends Error {
  override readonly name: string = "TilldConnectionError"
}

/** The request is not a webhook of tilld: respond with a 400, and ignore its content. */
export class WebhookVerificationError extends Error {
  override readonly name: string = "WebhookVerificationError"
}

/**
 * A webhook that tilld signed, but not recently: it is a replay, or one of the two clocks is wrong. Respond as to any other
 * `WebhookVerificationError`: tilld signs each attempt anew.
 */
export class WebhookTimestampError extends WebhookVerificationError {
  override readonly name: string = "WebhookTimestampError"
  readonly reason: "too_old" | "too_new"
  /** Unix milliseconds. */
  readonly signedAt: number

  /** `age` and `tolerance` in seconds; a negative age is in the future. */
  constructor(signedAt: number, age: number, tolerance: number) {
    const seconds = Math.round(Math.abs(age))
    super(
      `The webhook was signed ${seconds} seconds ${age < 0 ? "from now" : "ago"}, and ${tolerance} are allowed: it is a recording that ` +
        "somebody sends again, or this machine's clock is wrong."
    )
    this.reason = age < 0 ? "too_new" : "too_old"
    this.signedAt = signedAt
  }
}
