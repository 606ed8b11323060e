import { Effect } from "effect"
import { type Act, audited, keyActor } from "../Auth/auditLog.ts"
import { ApiError, invalid, notFound, quotaExceeded } from "../Domain/ApiError.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { newEndpointId } from "../Domain/Ids.ts"
import { iso } from "../Domain/Timestamp.ts"
import type { Endpoint } from "../Domain/Webhook.ts"
import { answer, type Handlers, storeReplayAs } from "../Http/Handler.ts"
import { Writer } from "../Sql.ts"
import { Webhooks } from "../Webhooks.ts"
import type { WebhooksApi } from "./Api.ts"

const toObject = ({ createdAt, events, id, url }: Endpoint) => ({
  id,
  url,
  events,
  createdAt: iso(createdAt)
})

const created = (endpoint: Endpoint) => answer(toObject(endpoint))

export const webhookHandlers = Effect.gen(function* () {
  const webhooks = yield* Webhooks
  const writer = yield* Writer
  /** Changes to an account's endpoints are administrative acts: they are recorded in the audit log. */
  const administer = <A, E>(key: ApiKey, act: string, detail: Act["detail"], work: Effect.Effect<A, E>) =>
    Effect.provideService(
      audited(keyActor(key), { act, detail }, () => work),
      Writer,
      writer
    )

  const handlers: Handlers<typeof WebhooksApi> = {
    create: ({ key, payload, storeReplay: remember }) => {
      const id = newEndpointId()
      // Only the host is logged: the rest of a URL may contain a secret of the merchant.
      const host = URL.canParse(payload.url) ? new URL(payload.url).host : undefined
      const detail = { endpoint: id, host, events: payload.events }
      const work = webhooks.create(key, { ...payload, id }, storeReplayAs(remember, created))
      return administer(key, "webhooks register", detail, work).pipe(
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
      )
    },

    list: ({ key }) => Effect.map(webhooks.list(key), (endpoints) => answer({ data: endpoints.map(toObject) })),

    remove: ({ key, path: { id } }) =>
      administer(
        key,
        "webhooks delete",
        { endpoint: id },
        Effect.gen(function* () {
          const removed = yield* webhooks.remove(key, id)
          return removed ? answer({ id, deleted: true as const }) : yield* notFound("webhook endpoint")
        })
      )
  }
  return handlers
})
