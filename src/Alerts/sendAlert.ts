import { Clock, Effect, type Redacted } from "effect"
import { makeHttpClient } from "../lib/httpClient.ts"
import type { SettingsShape } from "../Settings.ts"
import { signatureHeaders, signingKey } from "../Webhooks/signature.ts"
import type { AlertMessage } from "./Condition.ts"

/** From the start of an attempt to the status. */
const deadline = "10 seconds"

/** Of a response, whose body is not looked at. */
const maxBytes = 64 * 1024

/** How an attempt ended: the receiver's status, or why there was none. */
export interface Attempt {
  readonly status?: number
  readonly error?: string
}

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
    return Effect.fn("Alerts.send")(function* ({ body, id }: Pick<AlertMessage, "body" | "id">) {
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
