import type { AttemptOutcome } from "../transport/DeliveryClient.ts"
import { succeeded } from "./retryPolicy.ts"

/** The attempt was not made, since what it would be signed with does not open. */
export const secretUnreadable = "secret unreadable"

/** What an attempt can end with where there is no status, as `Outcome.error` says it. */
const errors = [
  "timeout",
  "tls",
  "connection refused",
  "connection reset",
  "connection closed",
  "connection failed",
  "unreachable",
  "invalid response",
  "name not resolved",
  "target refused",
  secretUnreadable
]

const nameOf = (error: string): string => error.replaceAll(" ", "_")

/** Every way in which an attempt can end, as metrics name it. */
export const outcomeClasses: ReadonlyArray<string> = [
  "delivered",
  "http_3xx",
  "http_4xx",
  "http_5xx",
  ...errors.map(nameOf),
  "other"
]

/** One of them. */
export const outcomeClass = ({ error = "", status }: AttemptOutcome): string => {
  if (succeeded(status)) return "delivered"
  const name = status === undefined ? nameOf(error) : `http_${Math.floor(status / 100)}xx`
  return outcomeClasses.includes(name) ? name : "other"
}
