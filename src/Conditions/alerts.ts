/** The messages to `alerts.url`: which have not arrived yet, and how one is sent. One is retried as a webhook is, with the same bytes. */
import { Clock, Duration, Effect, type Redacted, Schema } from "effect"
import type { Severity } from "../Domain/Condition.ts"
import { retryDelays } from "../Domain/DeliveryObject.ts"
import { newAlertId } from "../Domain/Ids.ts"
import { makeHttpClient } from "../lib/httpClient.ts"
import { iso } from "../lib/moment.ts"
import { Secrets } from "../Secrets.ts"
import type { SettingsShape } from "../Settings.ts"
import { afterAttempt } from "../Webhooks/queue/retryPolicy.ts"
import { signatureHeaders, signingKey } from "../Webhooks/signature.ts"
import { keyOf, type Look } from "./standing.ts"

/** An undelivered message. */
export const AlertMessage = Schema.Struct({
  id: Schema.String,
  /** The bytes that every attempt sends. */
  body: Schema.String,
  /** Attempts so far; the next is due at `nextAt`, Unix milliseconds. */
  attempts: Schema.Number,
  nextAt: Schema.Number
})
export type AlertMessage = typeof AlertMessage.Type

/** Maximum number of queued messages. Beyond it the oldest are dropped: the receiver has long been down. */
export const mostUnsent = 200

type AlertType = "alert.opened" | "alert.closed" | "alert.test"

interface About {
  readonly kind: string
  readonly subject: string
  readonly severity: Severity
  readonly summary: string
  readonly remedy: string
  readonly openedAt?: number
}

/** A message, due at once. */
export const messageOf = (type: AlertType, about: About, now: number): AlertMessage => {
  const id = newAlertId(now)
  const { openedAt = now, remedy, severity, summary } = about
  const alert = {
    key: keyOf(about),
    ...{ severity, summary, remedy, openedAt: iso(openedAt) },
    ...(type === "alert.closed" ? { closedAt: iso(now) } : {})
  }
  return { id, body: JSON.stringify({ id, type, createdAt: iso(now), alert }), attempts: 0, nextAt: now }
}

/** A retry that was planned by a clock that was ahead comes no later than the schedule says from now. */
const inTime = (message: AlertMessage, now: number): AlertMessage => {
  const wait = Duration.toMillis(retryDelays[message.attempts - 1] ?? 0)
  return { ...message, nextAt: Math.min(message.nextAt, now + wait) }
}

/** The messages after a look. A note is no message. */
export const queued = (
  unsent: ReadonlyArray<AlertMessage>,
  { began, ended }: Look,
  now: number
): ReadonlyArray<AlertMessage> => {
  const told = ({ severity }: About) => severity !== "note"
  return [
    ...unsent.map((one) => inTime(one, now)),
    ...began.filter(told).map((one) => messageOf("alert.opened", one, now)),
    ...ended.filter(told).map((one) => messageOf("alert.closed", one, now))
  ].slice(-mostUnsent)
}

/** The messages after an attempt to send one, which ended at `now` with the receiver's status, if there was one. */
export const attempted = (
  unsent: ReadonlyArray<AlertMessage>,
  id: string,
  status: number | undefined,
  now: number
): ReadonlyArray<AlertMessage> =>
  unsent.flatMap((message) => {
    if (message.id !== id) return [message]
    const attempts = message.attempts + 1
    const { nextAttemptAt } = afterAttempt(attempts, status, now)
    return nextAttemptAt === undefined ? [] : [{ ...message, attempts, nextAt: nextAttemptAt }]
  })

/** The messages that are due, oldest first; only the oldest of each condition, so that its end is not reported first. */
export const dueOf = (unsent: ReadonlyArray<AlertMessage>, now: number): ReadonlyArray<AlertMessage> => {
  const earlier = new Set<string>()
  return unsent.filter(({ body, nextAt }) => {
    const { key } = JSON.parse(body).alert
    const isOldest = !earlier.has(key)
    earlier.add(key)
    return isOldest && nextAt <= now
  })
}

/** From the start of an attempt to the status. */
const deadline = "10 seconds"

/** Of a response, whose body is not looked at. */
const maxBytes = 64 * 1024

/** How an attempt ended: the receiver's status, or why there was none. */
export interface Attempt {
  readonly status?: number
  readonly error?: string
}

/** The secret that signs messages to the operator. */
export const alertSecret = Effect.map(Secrets, ({ signing }) => signing("alerts"))

/**
 * Makes the function that sends a message to `alerts.url`. The operator has chosen this address: unlike a merchant's it may
 * be on this machine or in its network. Redirects are not followed. Never fails. Lives as long as the scope.
 */
export const makeSendAlert = (
  { alerts, webhooks: { extraCaFile } }: Pick<SettingsShape, "alerts" | "webhooks">,
  secret: Redacted.Redacted<string>
) =>
  Effect.map(makeHttpClient("4 seconds", extraCaFile), (client) => {
    const key = signingKey(secret)
    return Effect.fn("Conditions.sendAlert")(function* ({ body, id }: Pick<AlertMessage, "body" | "id">) {
      const bytes = Buffer.from(body)
      const signed = signatureHeaders(key, id, bytes, yield* Clock.currentTimeMillis)
      const headers = { ...signed, "content-type": "application/json" }
      return yield* client.send({ url: new URL(alerts.url), method: "POST", body: bytes, headers, maxBytes }).pipe(
        Effect.map((response): Attempt => ({ status: response.resume().statusCode ?? 0 })),
        Effect.mapError(({ code, message }): Attempt => ({ error: message || code })),
        Effect.timeoutFail({ duration: deadline, onTimeout: (): Attempt => ({ error: `no answer in ${deadline}` }) }),
        Effect.merge
      )
    })
  })
