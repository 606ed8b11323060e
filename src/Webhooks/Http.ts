import { Duration, Effect } from "effect"
import { ApiError, invalid, mustFind, quotaExceeded } from "../Domain/ApiError.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { newEndpointId } from "../Domain/Ids.ts"
import { type Endpoint, loggedHost } from "../Domain/Webhook.ts"
import { answer, type Handlers, storeReplayAs } from "../Http/Handler.ts"
import { iso } from "../lib/moment.ts"
import { type Act, audited, keyActor, type Note } from "../Operations/auditLog.ts"
import { Writer } from "../Sql.ts"
import { Webhooks } from "../Webhooks.ts"
import type { WebhooksApi } from "./Api.ts"

const toObject = ({ createdAt, events, formerSecretUntil = 0, id, url }: Endpoint, now: number) => ({
  ...{ id, url, events, createdAt: iso(createdAt) },
  ...(formerSecretUntil > now ? { formerSecretUntil: iso(formerSecretUntil) } : {})
})

const nothingToChange = "must have at least one of url, events and secret"

export const webhookHandlers = Effect.gen(function* () {
  const webhooks = yield* Webhooks
  const writer = yield* Writer
  const clock = yield* Effect.clock
  const object = (endpoint: Endpoint) => toObject(endpoint, clock.unsafeCurrentTimeMillis())
  const shown = (endpoint: Endpoint) => answer(object(endpoint))
  /** Changes to an account's endpoints are administrative acts: they are recorded in the audit log. */
  const administer = <A, E>(
    key: ApiKey,
    act: string,
    detail: Act["detail"],
    work: (note: Note) => Effect.Effect<A, E>
  ) => Effect.provideService(audited(keyActor(key), { act, detail }, work), Writer, writer)

  const handlers: Handlers<typeof WebhooksApi> = {
    create: ({ key, payload, storeReplay: remember }) => {
      const id = newEndpointId()
      const detail = { endpoint: id, host: loggedHost(payload.url), events: payload.events }
      const created = (endpoint: Endpoint) => answer(object(endpoint), endpoint.id === id ? {} : { status: 200 })
      const work = (note: Note) =>
        webhooks.create(key, { ...payload, id }, (endpoint) => {
          note({ endpoint: endpoint.id })
          return storeReplayAs(remember, created)?.(endpoint) ?? Effect.void
        })
      return administer(key, "webhooks register", detail, work).pipe(
        Effect.map(created),
        Effect.catchTags({
          QuotaExceeded: (error) => quotaExceeded(error),
          EndpointExists: Effect.die,
          EndpointAlike: ({ id }) =>
            invalid([
              {
                path: "secret",
                message: `must be that of ${id}, which has this URL and these kinds: PATCH /v1/webhooks/:id replaces a secret, and both sign for an overlap`
              }
            ]),
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
        const { events, secret, url } = change
        if (overlapSeconds !== undefined && secret === undefined) {
          return yield* invalid([{ path: "overlapSeconds", message: "must come with a secret" }])
        }
        const detail = { endpoint: id, host: loggedHost(url), events, secret: secret && "replaced" }
        const overlap = overlapSeconds === undefined ? undefined : Duration.seconds(overlapSeconds)
        const work = () => webhooks.change(key, id, { ...change, overlap }, storeReplayAs(remember, shown))
        return yield* mustFind("webhook endpoint", administer(key, "webhooks change", detail, work)).pipe(
          Effect.map(shown),
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
                { path: "overlapSeconds", message: "must be 0: the stored secret is damaged, and signs no longer" }
              ])
          })
        )
      }),

    get: ({ key, path: { id } }) => Effect.map(mustFind("webhook endpoint", webhooks.get(key, id)), shown),

    list: ({ key }) => Effect.map(webhooks.list(key), (endpoints) => answer({ data: endpoints.map(object) })),

    remove: ({ key, path: { id } }) =>
      administer(key, "webhooks delete", { endpoint: id }, () =>
        Effect.map(mustFind("webhook endpoint", webhooks.remove(key, id)), (cancelled) =>
          answer({ id, deleted: true as const, cancelled })
        )
      )
  }
  return handlers
})
