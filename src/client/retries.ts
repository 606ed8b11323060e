import { TilldConnectionError, TilldError } from "./errors.ts"

const firstDelay = 500
const longestDelay = 8_000

/** Longest `Retry-After` that is waited for, in seconds; beyond, the error says when to come back. */
const longestRetryAfter = 60

const transient: ReadonlySet<number> = new Set([429, 500, 502, 503, 504])

/** Whether asking again may be answered otherwise. */
const isTransient = (error: TilldError | TilldConnectionError): boolean =>
  error instanceof TilldConnectionError || transient.has(error.status) || error.code === "IDEMPOTENCY_KEY_IN_USE"

/**
 * How long to wait, in milliseconds, before the `retry`-th time of asking again, from 1 on; undefined where asking again
 * is of no use. Doubling from half a second, and each time by chance up to one half less, so that clients that failed
 * together do not come back together. `random` is in [0, 1).
 */
export const delayBefore = (retry: number, error: unknown, random: number): number | undefined => {
  if (!(error instanceof TilldError || error instanceof TilldConnectionError) || !isTransient(error)) return undefined
  const retryAfter = error instanceof TilldError ? (error.retryAfter ?? 0) : 0
  if (retryAfter > longestRetryAfter) return undefined
  return retryAfter * 1_000 + Math.min(firstDelay * 2 ** (retry - 1), longestDelay) * (1 - random / 2)
}

/** Who answers so has changed nothing. */
const untouched: ReadonlySet<string> = new Set([
  "SHUTTING_DOWN",
  "STORE_UNAVAILABLE",
  "TOO_MANY_CONNECTIONS",
  "OVERLOADED"
])

/** Whether the request may have been carried out although it failed. */
export const mayHaveHappened = (error: unknown): boolean =>
  error instanceof TilldConnectionError
    ? !/\((?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN)\)$/.test(error.message)
    : error instanceof TilldError && error.status >= 500 && !untouched.has(error.code)
