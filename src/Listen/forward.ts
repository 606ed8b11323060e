import { Clock, Effect } from "effect"
import type { HttpClient } from "../lib/httpClient.ts"
import { type SigningKey, signatureHeaders } from "../Webhooks/signature.ts"
import { readStart, webhookHeaders } from "../Webhooks/transport/DeliveryClient.ts"
import { reasonOf } from "./askApi.ts"

/** The deadline of a real delivery for the status, which alone decides. */
const statusDeadline = "30 seconds"

/** Outcome of forwarding an event: the server's status, or why there is none. */
export interface Forwarded {
  readonly status: number | undefined
  readonly error: string | undefined
  readonly durationMillis: number
}

/** Posts an event as its webhook would be: the same bytes and headers. */
export const forward = Effect.fn("Listen.forward")(function* (
  client: HttpClient,
  url: URL,
  key: SigningKey,
  event: { readonly id: string; readonly data: string }
) {
  const startedAt = yield* Clock.currentTimeMillis
  const body = Buffer.from(event.data, "utf8")
  const signed = signatureHeaders(key, event.id, body, startedAt)
  const headers = { ...webhookHeaders, ...signed }
  const outcome = yield* client.send({ url, method: "POST", headers, body, maxBytes: 64 * 1024 }).pipe(
    Effect.mapError(reasonOf),
    Effect.timeoutFail({ duration: statusDeadline, onTimeout: () => `no answer within ${statusDeadline}` }),
    Effect.tap(readStart),
    Effect.match({
      onSuccess: (response) => ({ status: response.statusCode, error: undefined }),
      onFailure: (error) => ({ status: undefined, error })
    })
  )
  const endedAt = yield* Clock.currentTimeMillis
  return { ...outcome, durationMillis: endedAt - startedAt } satisfies Forwarded
})
