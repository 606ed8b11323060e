import type { AttemptOutcome } from "../transport/DeliveryClient.ts"
import { succeeded } from "./retryPolicy.ts"

/** The attempt was not made because the signing secret cannot be opened. */
export const secretUnreadable = "secret unreadable"

/** Every `AttemptOutcome.error`: how an attempt can end without a status. */
const errors = [
  "timeout",
  "tls",
  "connection refused",
  "connection reset",
  "connection closed",
  "connection failed",
  "unreachable",
  "out of descriptors",
  "invalid response",
  "name not resolved",
  "target refused",
  secretUnreadable
]

/** Without the details that follow a colon. */
const nameOf = (error: string): string => error.replace(/:.*/s, "").replaceAll(" ", "_")

/** Every way in which an attempt can end, as a label value of metrics. */
export const outcomeClasses: ReadonlyArray<string> = [
  "delivered",
  "http_3xx",
  "http_4xx",
  "http_5xx",
  ...errors.map(nameOf),
  "other"
]

/** The outcome class of an attempt: one of `outcomeClasses`. */
export const outcomeClass = ({ error = "", status }: AttemptOutcome): string => {
  if (succeeded(status)) return "delivered"
  const name = status === undefined ? nameOf(error) : `http_${Math.floor(status / 100)}xx`
  return outcomeClasses.includes(name) ? name : "other"
}
