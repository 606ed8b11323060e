import { Clock, Effect } from "effect"
import { randomToken } from "../Domain/Ids.ts"
import type { Endpoint } from "../Domain/Webhook.ts"
import { iso } from "../lib/moment.ts"
import { SigningKeys } from "./SigningKeys.ts"
import { signatureHeaders } from "./signature.ts"
import { DeliveryClient } from "./transport/DeliveryClient.ts"

/**
 * Sends an endpoint a test message, signed like its webhooks. It cannot be taken for an event: its id and its kind are
 * not those of events, and it contains no payment.
 */
export const sendTest = Effect.fn("Webhooks.sendTest")(function* ({ id: endpoint, url }: Endpoint) {
  const client = yield* DeliveryClient
  const key = yield* Effect.flatMap(SigningKeys, (keys) => keys.ofEndpoint(endpoint))
  const startedAt = yield* Clock.currentTimeMillis
  const id = `test_${randomToken()}`
  const message = "A test of this endpoint. It tells of no payment."
  const body = Buffer.from(JSON.stringify({ id, event: "test", createdAt: iso(startedAt), endpoint, message }))
  const outcome = yield* client.post({ url, body, headers: signatureHeaders(key, id, body, startedAt) })
  const endedAt = yield* Clock.currentTimeMillis
  return { ...outcome, id, endpoint, url, durationMillis: endedAt - startedAt }
})
