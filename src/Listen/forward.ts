import { Clock, Effect } from "effect"
import type { Agent } from "undici"
import { type SigningKey, signatureHeaders } from "../Webhooks/signature.ts"
import { requestHeaders } from "../Webhooks/transport/requestHeaders.ts"
import { reasonOf } from "./askApi.ts"

/** The deadlines of a real delivery: for the status, which alone decides, and then for the end of the body. */
const statusDeadline = "30 seconds"
const bodyDeadline = "5 seconds"

/** Outcome of forwarding an event: the server's status, or why there is none. */
export interface Forwarded {
  readonly status: number | undefined
  readonly error: string | undefined
  readonly durationMillis: number
}

/** Posts an event as its webhook would be: the same bytes and headers. */
export const forward = Effect.fn("Listen.forward")(function* (
  agent: Agent,
  url: URL,
  key: SigningKey,
  event: { readonly id: string; readonly data: string }
) {
  const startedAt = yield* Clock.currentTimeMillis
  const body = Buffer.from(event.data, "utf8")
  const signed = signatureHeaders(key, event.id, body, startedAt)
  const headers = { ...requestHeaders, ...signed }
  const { origin, pathname, search } = url
  const outcome = yield* Effect.tryPromise({
    try: (signal) =>
      agent.request({ origin, path: pathname + search, method: "POST", headers, body, signal, headersTimeout: 0 }),
    catch: reasonOf
  }).pipe(
    Effect.timeoutFail({ duration: statusDeadline, onTimeout: () => `no answer within ${statusDeadline}` }),
    Effect.tap(({ body: answer }) =>
      Effect.ignore(
        Effect.timeout(
          Effect.tryPromise((signal) => answer.dump({ limit: 16_384, signal })),
          bodyDeadline
        )
      )
    ),
    Effect.match({
      onSuccess: ({ statusCode }) => ({ status: statusCode, error: undefined }),
      onFailure: (error) => ({ status: undefined, error })
    })
  )
  const endedAt = yield* Clock.currentTimeMillis
  return { ...outcome, durationMillis: endedAt - startedAt } satisfies Forwarded
})
