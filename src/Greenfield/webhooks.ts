/** Webhook endpoints as shop plugins register, replace and delete them. The own API's endpoints are not among them. */
import { Duration, Effect, Redacted, Schema } from "effect"
import { ApiError, invalid, quotaExceeded } from "../Domain/ApiError.ts"
import { newEndpointId, randomToken } from "../Domain/Ids.ts"
import { type Endpoint, loggedHost, type PluginEndpoint } from "../Domain/Webhook.ts"
import { maybe, must } from "../lib/annotations.ts"
import { HttpsUrl } from "../lib/Url.ts"
import { audited, keyActor } from "../Operations/auditLog.ts"
import { Writer } from "../Sql.ts"
import { Webhooks } from "../Webhooks.ts"
import { notFound } from "./errors.ts"
import { type Asking, operation, withBody } from "./operations.ts"

const Yes = Schema.optionalWith(must("be a boolean", Schema.Boolean), { exact: true, default: () => true })

/** Kinds that there are not are kept, and never sent: a bound keeps strangers from storing more. */
const Kinds = Schema.Array(Schema.String.pipe(Schema.maxLength(100))).pipe(Schema.maxItems(100))

const AuthorizedEvents = Schema.Struct({
  everything: Yes,
  specificEvents: Schema.optionalWith(must("be a list of at most 100 kinds of events", Kinds), {
    exact: true,
    default: () => []
  })
})

const WebhookBody = Schema.Struct({
  url: HttpsUrl,
  enabled: Yes,
  automaticRedelivery: Yes,
  authorizedEvents: Schema.optionalWith(AuthorizedEvents, {
    exact: true,
    default: () => ({ everything: true, specificEvents: [] })
  }),
  secret: maybe(
    must("be 1 to 256 visible characters", Schema.String.pipe(Schema.pattern(/^[^\s\p{C}]{1,256}$/u)), {
      log: "hidden"
    })
  )
})
type WebhookBody = typeof WebhookBody.Type

const everything: PluginEndpoint = {
  enabled: true,
  automaticRedelivery: true,
  everything: true,
  specificEvents: []
}

const view = ({ id, plugin: { automaticRedelivery, enabled, ...authorizedEvents } = everything, url }: Endpoint) => ({
  ...{ id, enabled, automaticRedelivery, url, authorizedEvents }
})

const pluginOf = ({ authorizedEvents, automaticRedelivery, enabled }: WebhookBody): PluginEndpoint => ({
  ...{ enabled, automaticRedelivery },
  ...authorizedEvents
})

const urlProblem = ({ message }: { readonly message: string }) => invalid([{ path: "url", message }])

const canModify = "btcpay.store.webhooks.canmodifywebhooks"

export const webhookOperations = Effect.gen(function* () {
  const webhooks = yield* Webhooks
  const writer = yield* Writer

  const idOf = ({ path }: Asking<unknown>) => path["webhook"] ?? ""

  /** Who gets an account's events is an administrative act. */
  const administer = <A, E>(
    { body, key }: Asking<unknown>,
    act: string,
    endpoint: string,
    work: Effect.Effect<A, E>
  ) => {
    const { url } = (body ?? {}) as Partial<WebhookBody>
    const detail = { endpoint, host: loggedHost(url), plugin: true }
    return Effect.provideService(
      audited(keyActor(key), { act, detail }, () => work),
      Writer,
      writer
    )
  }

  const found = <A, E>(effect: Effect.Effect<A | undefined, E>) =>
    Effect.flatMap(effect, (one) => (one === undefined ? notFound("webhook") : Effect.succeed(one)))

  // The answer has the secret: it is not kept for a repeated request.
  const create = (asking: Asking<WebhookBody>) => {
    const { body, key } = asking
    const { secret = randomToken(), url } = body
    const id = newEndpointId()
    const endpoint = { id, url, events: [], plugin: pluginOf(body), secret: Redacted.make(secret) }
    return administer(asking, "webhooks register", id, webhooks.create(key, endpoint)).pipe(
      Effect.map((made) => ({ ...view(made), secret })),
      Effect.catchTags({
        TargetRefused: urlProblem,
        QuotaExceeded: (error) => quotaExceeded(error),
        TooManyEndpoints: ({ message }) => new ApiError({ code: "TOO_MANY_ENDPOINTS", message }),
        EndpointAlike: Effect.die,
        EndpointExists: Effect.die
      })
    )
  }

  const replace = (asking: Asking<WebhookBody>) => {
    const { body, key, storeReplay } = asking
    const change = {
      ...{ url: body.url, plugin: pluginOf(body), overlap: Duration.zero },
      secret: body.secret === undefined ? undefined : Redacted.make(body.secret)
    }
    const kept = (endpoint: Endpoint) => storeReplay?.(view(endpoint)) ?? Effect.void
    const changed = webhooks.change(key, idOf(asking), change, kept)
    return found(administer(asking, "webhooks change", idOf(asking), changed)).pipe(
      Effect.map(view),
      Effect.catchTags({
        TargetRefused: urlProblem,
        QuotaExceeded: (error) => quotaExceeded(error),
        // Only an overlap can be refused.
        RotationUnderWay: Effect.die,
        SecretReplaced: Effect.die,
        SecretUnreadable: Effect.die
      })
    )
  }

  const get = (asking: Asking<unknown>) => Effect.map(found(webhooks.get(asking.key, idOf(asking), true)), view)

  const list = ({ key }: Asking<unknown>) => Effect.map(webhooks.list(key, true), (all) => all.map(view))

  const remove = (asking: Asking<unknown>) => {
    const id = idOf(asking)
    return Effect.as(found(administer(asking, "webhooks delete", id, webhooks.remove(asking.key, id, true))), {})
  }

  return [
    operation("GET", "stores/:store/webhooks", canModify, list),
    withBody("POST", "stores/:store/webhooks", canModify, WebhookBody, create),
    operation("GET", "stores/:store/webhooks/:webhook", canModify, get),
    withBody("PUT", "stores/:store/webhooks/:webhook", canModify, WebhookBody, replace),
    operation("DELETE", "stores/:store/webhooks/:webhook", canModify, remove),
    operation("GET", "webhooks/:webhook", canModify, get)
  ]
})
