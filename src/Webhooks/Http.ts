import { Effect } from "effect"
import { ApiError, invalid, notFound, quotaExceeded } from "../Domain/ApiError.ts"
import { iso } from "../Domain/Timestamp.ts"
import type { Endpoint } from "../Domain/Webhook.ts"
import { answer, type Handlers, rememberAs } from "../Http/Handler.ts"
import { Webhooks } from "../Webhooks.ts"
import type { WebhooksApi } from "./Api.ts"

const toObject = ({ createdAt, events, id, url }: Endpoint) => ({
  id,
  url,
  events,
  createdAt: iso(createdAt)
})

const created = (endpoint: Endpoint) => answer(toObject(endpoint))

export const webhookHandlers = Effect.map(
  Webhooks,
  (webhooks): Handlers<typeof WebhooksApi> => ({
    create: ({ key, payload, remember }) =>
      webhooks.create(key, payload, rememberAs(remember, created)).pipe(
        Effect.map(created),
        Effect.catchTags({
          QuotaExceeded: (error) => quotaExceeded(error),
          TargetRefused: ({ message }) => invalid([{ path: "url", message }]),
          TooManyEndpoints: ({ limit }) =>
            new ApiError({
              code: "TOO_MANY_ENDPOINTS",
              message: `There are ${limit} endpoints, as many as an account may have in a mode: delete one first.`
            })
        })
      ),

    list: ({ key }) => Effect.map(webhooks.list(key), (endpoints) => answer({ data: endpoints.map(toObject) })),

    remove: ({ key, path: { id } }) =>
      Effect.gen(function* () {
        const removed = yield* webhooks.remove(key, id)
        return removed ? answer({ id, deleted: true as const }) : yield* notFound("webhook endpoint")
      })
  })
)
