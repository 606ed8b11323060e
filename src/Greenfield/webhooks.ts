/** Webhook endpoints as shop plugins register, replace and delete them. The own API's endpoints are not among them. */
import { Duration, Effect, Redacted, Schema } from "effect"
import { ApiError, quotaExceeded } from "../Domain/ApiError.ts"
import { newEndpointId, randomToken } from "../Domain/Ids.ts"
import { type Endpoint, loggedHost } from "../Domain/Webhook.ts"
import { maybe, must } from "../lib/annotations.ts"
import { HttpsUrl } from "../lib/Url.ts"
import { audited, keyActor } from "../Operations/auditLog.ts"
import { Writer } from "../Sql.ts"
import { Webhooks } from "../Webhooks.ts"
import { fieldProblem, noSuch } from "./errors.ts"
import { type Asking, pluginOperation, withBody } from "./operations.ts"

const otherwise = <A, I>(schema: Schema.Schema<A, I>, value: A) =>
  Schema.optionalWith(schema, { exact: true, default: () => value })

const Yes = otherwise(must("be a boolean", Schema.Boolean), true)

// Kinds that there are not are kept, and never sent: a bound keeps strangers from storing more.
const Kinds = must(
  "be a list of at most 100 kinds of events",
  Schema.Array(Schema.String.pipe(Schema.maxLength(100))).pipe(Schema.maxItems(100))
)

const AuthorizedEvents = Schema.Struct({ everything: Yes, specificEvents: otherwise(Kinds, []) })

const WebhookBody = Schema.Struct({
  url: HttpsUrl,
  enabled: Yes,
  automaticRedelivery: Yes,
  authorizedEvents: otherwise(AuthorizedEvents, { everything: true, specificEvents: [] }),
  secret: maybe(must("be 1 to 256 visible characters", Schema.String.pipe(Schema.pattern(/^[^\s\p{C}]{1,256}$/u))))
})
type Body = typeof WebhookBody.Type

const targetOf = ({ authorizedEvents, automaticRedelivery, enabled, url }: Body) => ({
  url,
  plugin: { enabled, automaticRedelivery, ...authorizedEvents }
})

const view = ({ id, plugin, url }: Endpoint) => {
  const { enabled, automaticRedelivery, ...authorizedEvents } = { ...plugin }
  return { id, enabled, automaticRedelivery, url, authorizedEvents }
}

const canModify = "btcpay.store.webhooks.canmodifywebhooks"

export const webhookOperations = Effect.gen(function* () {
  const webhooks = yield* Webhooks
  const writer = yield* Writer

  const idOf = ({ path }: Asking<unknown>) => path["webhook"] ?? ""

  const found = <A, E>(effect: Effect.Effect<A | undefined, E>) =>
    Effect.flatMap(effect, (one) => (one === undefined ? noSuch("webhook") : Effect.succeed(one)))

  /** Who gets an account's events is an administrative act. */
  const administer = <A, E>(
    act: string,
    { key }: Asking<unknown>,
    endpoint: string,
    work: Effect.Effect<A, E>,
    url?: string
  ) =>
    audited(keyActor(key), { act, detail: { endpoint, host: loggedHost(url), plugin: true } }, () => work).pipe(
      Effect.provideService(Writer, writer)
    )

  const refusals = {
    TargetRefused: ({ message }: { readonly message: string }) => fieldProblem("url", message),
    QuotaExceeded: quotaExceeded
  }

  // The answer has the secret: it is not kept for a repeated request.
  const create = (asking: Asking<Body>) => {
    const { body, key } = asking
    const { secret = randomToken() } = body
    const endpoint = { ...targetOf(body), id: newEndpointId(), events: [], secret: Redacted.make(secret) }
    return administer("webhooks register", asking, endpoint.id, webhooks.create(key, endpoint), body.url).pipe(
      Effect.map((made) => ({ ...view(made), secret })),
      Effect.catchTags({
        ...refusals,
        TooManyEndpoints: ({ message }) => new ApiError({ code: "TOO_MANY_ENDPOINTS", message }),
        EndpointAlike: Effect.die,
        EndpointExists: Effect.die
      })
    )
  }

  const replace = (asking: Asking<Body>) => {
    const { body, key, storeReplay } = asking
    const secret = body.secret === undefined ? undefined : Redacted.make(body.secret)
    const change = { ...targetOf(body), secret, overlap: Duration.zero }
    const kept = (endpoint: Endpoint) => storeReplay?.(view(endpoint)) ?? Effect.void
    const changed = webhooks.change(key, idOf(asking), change, kept)
    return found(administer("webhooks change", asking, idOf(asking), changed, body.url)).pipe(
      Effect.map(view),
      // Only an overlap is refused.
      Effect.catchTags({
        ...refusals,
        ...{ RotationUnderWay: Effect.die, SecretReplaced: Effect.die, SecretUnreadable: Effect.die }
      })
    )
  }

  const get = (asking: Asking<unknown>) => Effect.map(found(webhooks.get(asking.key, idOf(asking), true)), view)

  const list = ({ key }: Asking<unknown>) => Effect.map(webhooks.list(key, true), (all) => all.map(view))

  const remove = (asking: Asking<unknown>) =>
    administer("webhooks delete", asking, idOf(asking), webhooks.remove(asking.key, idOf(asking), true)).pipe(
      found,
      Effect.as({})
    )

  const [all, one] = ["stores/:store/webhooks", "stores/:store/webhooks/:webhook"]
  return [
    pluginOperation("GET", all, canModify, list),
    withBody("POST", all, canModify, WebhookBody, create),
    ...[one, "webhooks/:webhook"].map((path) => pluginOperation("GET", path, canModify, get)),
    withBody("PUT", one, canModify, WebhookBody, replace),
    pluginOperation("DELETE", one, canModify, remove)
  ]
})
