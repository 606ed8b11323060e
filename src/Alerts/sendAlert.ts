import { readFileSync } from "node:fs"
import { rootCertificates } from "node:tls"
import { Clock, Effect, type Redacted } from "effect"
import { Agent } from "undici"
import type { SettingsShape } from "../Settings.ts"
import { signatureHeaders, signingKey } from "../Webhooks/signature.ts"
import type { AlertMessage } from "./Condition.ts"

/** From the start of an attempt to the status. */
const deadline = "10 seconds"

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
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const ca = extraCaFile === "" ? {} : { ca: [...rootCertificates, readFileSync(extraCaFile, "utf8")] }
        return new Agent({ connect: ca })
      }),
      (agent) => Effect.promise(() => agent.destroy())
    ),
    (agent) => {
      const key = signingKey(secret)
      return Effect.fn("Alerts.send")(function* ({ body, id }: Pick<AlertMessage, "body" | "id">) {
        const bytes = Buffer.from(body)
        const headers = signatureHeaders(key, id, bytes, yield* Clock.currentTimeMillis)
        return yield* Effect.tryPromise({
          try: async (signal): Promise<Attempt> => {
            const { origin, pathname, search } = new URL(alerts.url)
            const response = await agent.request({
              ...{ origin, path: pathname + search, method: "POST", body: bytes, signal },
              headers: { ...headers, "content-type": "application/json", "user-agent": "tilld" }
            })
            await response.body.dump()
            return { status: response.statusCode }
          },
          catch: (cause): Attempt => ({ error: cause instanceof Error ? cause.message : String(cause) })
        }).pipe(
          Effect.timeoutFail({ duration: deadline, onTimeout: (): Attempt => ({ error: `no answer in ${deadline}` }) }),
          Effect.merge
        )
      })
    }
  )
