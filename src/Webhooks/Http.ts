import { Effect } from "effect"
import { CurrentKey } from "../Auth/Api.ts"
import { ApiError, invalid, notFound } from "../Domain/ApiError.ts"
import type { Endpoint } from "../Domain/Webhook.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import { Webhooks } from "../Webhooks.ts"
import type { WebhooksApi } from "./Api.ts"

const toObject = ({ createdAt, events, id, url }: Endpoint) => ({
  id,
  url,
  events,
  createdAt: new Date(createdAt).toISOString()
})

export const webhookHandlers = Effect.map(
  Webhooks,
  (webhooks): Handlers<typeof WebhooksApi> => ({
    create: ({ payload }) =>
      Effect.gen(function* () {
        const endpoint = yield* webhooks.create(yield* CurrentKey, payload)
        return answer(toObject(endpoint))
      }).pipe(
        Effect.catchTags({
          TargetRefused: ({ message }) => invalid([{ path: "url", message }]),
          TooManyEndpoints: ({ limit }) =>
            new ApiError({
              code: "TOO_MANY_ENDPOINTS",
              message: `There are ${limit} endpoints, which is as many as an account may have in a mode: delete one first.`
            })
        })
      ),

    list: () =>
      Effect.gen(function* () {
        const endpoints = yield* webhooks.list(yield* CurrentKey)
        return answer({ data: endpoints.map(toObject) })
      }),

    remove: ({ path: { id } }) =>
      Effect.gen(function* () {
        const removed = yield* webhooks.remove(yield* CurrentKey, id)
        return removed ? answer({ id, deleted: true as const }) : yield* notFound("webhook endpoint")
      })
  })
)
