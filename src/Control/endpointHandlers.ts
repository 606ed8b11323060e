import { Effect, Redacted } from "effect"
import { NotFound } from "../Auth/inputFields.ts"
import { iso } from "../Domain/Timestamp.ts"
import type { Endpoint } from "../Domain/Webhook.ts"
import { Reader } from "../Sql.ts"
import * as EndpointsRepo from "../Webhooks/queue/EndpointsRepo.ts"
import { Webhooks } from "../Webhooks.ts"
import { administering, reading } from "./controlHandler.ts"
import { ChangeEndpoint, ChangeRefused, type EndpointView, ListEndpoints } from "./endpointRequests.ts"

const endpointView = ({ createdAt, ...endpoint }: Endpoint): EndpointView => ({
  ...endpoint,
  createdAt: iso(createdAt)
})

export const listEndpoints = reading(
  ListEndpoints,
  Effect.fnUntraced(function* ({ account, modes }) {
    const reader = yield* Reader
    const lists = yield* Effect.forEach(modes, (mode) => EndpointsRepo.list(reader, { account, mode }), {
      concurrency: 1
    })
    return lists.flat().map(endpointView)
  })
)

/** Only the host is logged: the rest of a URL may contain a secret of the merchant. */
const hostOf = (url: string | undefined) => (url !== undefined && URL.canParse(url) ? new URL(url).host : undefined)

export const changeEndpoint = administering(
  ChangeEndpoint,
  ({ events, id, secret, url }) => ({
    act: "webhooks change",
    detail: { endpoint: id, host: hostOf(url), events, secret: secret && "replaced" }
  }),
  Effect.fnUntraced(function* ({ id, secret, ...change }) {
    const webhooks = yield* Webhooks
    const noEndpoint = new NotFound({ message: `There is no endpoint ${id}: tilld webhooks endpoints names them` })
    const endpoint = yield* EndpointsRepo.byId(yield* Reader, id)
    if (endpoint === undefined) return yield* noEndpoint
    const changed = yield* webhooks
      .change(endpoint, id, { ...change, secret: secret === undefined ? undefined : Redacted.make(secret) })
      .pipe(
        Effect.catchTags({
          SecretReplaced: Effect.die,
          TargetRefused: ({ message }) => new ChangeRefused({ message: `--url ${message}` }),
          QuotaExceeded: ({ message }) => new ChangeRefused({ message })
        })
      )
    return changed === undefined ? yield* noEndpoint : endpointView(changed)
  })
)
