import { Duration, Effect } from "effect"
import { ApiError, invalid, notFound, quotaExceeded } from "../Domain/ApiError.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { newEndpointId } from "../Domain/Ids.ts"
import type { Endpoint } from "../Domain/Webhook.ts"
import { answer, type Handlers, storeReplayAs } from "../Http/Handler.ts"
import { iso } from "../lib/moment.ts"
import { type Act, audited, keyActor } from "../Operations/auditLog.ts"
import { Writer } from "../Sql.ts"
import { Webhooks } from "../Webhooks.ts"
import type { WebhooksApi } from "./Api.ts"

const toObject = ({ createdAt, events, id, url }: Endpoint) => ({
  id,
  url,
  events,
  createdAt: iso(createdAt)
})

/** The loggable part of a URL: the rest may contain a secret of the merchant. */
const hostOf = (url: string): string | undefined => (URL.canParse(url) ? new URL(url).host : undefined)

const nothingToChange = "must have at least one of url, events and secret"

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
      const detail = { endpoint: id, host: hostOf(payload.url), events: payload.events }
      const work = webhooks.create(key, { ...payload, id }, storeReplayAs(remember, created))
      return administer(key, "webhooks register", detail, work).pipe(
        Effect.map(created),
        Effect.catchTags({
          QuotaExceeded: (error) => quotaExceeded(error),
          EndpointExists: Effect.die,
          TargetRefused: ({ message }) => invalid([{ path: "url", message }]),
          TooManyEndpoints: ({ limit }) =>
            new ApiError({
              code: "TOO_MANY_ENDPOINTS",
              message: `There are ${limit} endpoints, as many as an account may have in a mode: delete one first.`
            })
        })
      )
    },

    change: ({ key, path: { id }, payload: { overlapSeconds, ...change }, storeReplay: remember }) =>
      Effect.gen(function* () {
        if (Object.keys(change).length === 0) return yield* invalid([{ path: "", message: nothingToChange }])
        if (overlapSeconds !== undefined && change.secret === undefined) {
          return yield* invalid([{ path: "overlapSeconds", message: "must come with a secret" }])
        }
        const host = change.url === undefined ? undefined : hostOf(change.url)
        const detail = { endpoint: id, host, events: change.events, secret: change.secret && "replaced" }
        const overlap = overlapSeconds === undefined ? undefined : Duration.seconds(overlapSeconds)
        const work = webhooks.change(key, id, { ...change, overlap }, storeReplayAs(remember, created))
        const changed = yield* administer(key, "webhooks change", detail, work).pipe(
          Effect.catchTags({
            QuotaExceeded: (error) => quotaExceeded(error),
            TargetRefused: ({ message }) => invalid([{ path: "url", message }]),
            RotationUnderWay: ({ until }) =>
              new ApiError({
                code: "ROTATION_UNDER_WAY",
                message: `The secret before the last one still signs until ${iso(until)}: wait for that, or send overlapSeconds 0, which ends both at once.`
              }),
            SecretReplaced: Effect.die,
            SecretUnreadable: () =>
              invalid([
                {
                  path: "overlapSeconds",
                  message: "must be 0: the stored secret is damaged, and cannot sign any longer"
                }
              ])
          })
        )
        return changed === undefined ? yield* notFound("webhook endpoint") : created(changed)
      }),

    list: ({ key }) => Effect.map(webhooks.list(key), (endpoints) => answer({ data: endpoints.map(toObject) })),

    remove: ({ key, path: { id } }) =>
      administer(
        key,
        "webhooks delete",
        { endpoint: id },
        Effect.gen(function* () {
          const cancelled = yield* webhooks.remove(key, id)
          return cancelled === undefined
            ? yield* notFound("webhook endpoint")
            : answer({ id, deleted: true as const, cancelled })
        })
      )
  }
  return handlers
})
