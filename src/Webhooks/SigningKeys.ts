import { Cache, Context, Data, Duration, Effect, Exit, Layer } from "effect"
import type { EndpointId } from "../Domain/Ids.ts"
import type { Owner } from "../Domain/Owner.ts"
import { Secrets } from "../Secrets.ts"
import { Reader, type StoreUnavailable, type Writer } from "../Sql.ts"
import { defaultSecret } from "./DefaultSecrets.ts"
import * as EndpointsRepo from "./EndpointsRepo.ts"
import { type SigningKey, signingKey } from "./signature.ts"

/** Unsealed secrets that are held in memory at most, and for how long. */
const capacity = 1024
const timeToLive = Duration.minutes(10)

/** What an endpoint's secret is sealed for. */
export const endpointContext = (endpoint: EndpointId): string => `webhook endpoint ${endpoint}`

/** Secrets made ready for signing: opening one for each attempt would cost more than the signature. */
export class SigningKeys extends Context.Tag("tilld/Webhooks/SigningKeys")<
  SigningKeys,
  {
    readonly ofEndpoint: (endpoint: EndpointId) => Effect.Effect<SigningKey, StoreUnavailable>
    /** The default key, which signs for webhookUrls that are no endpoint's. */
    readonly ofOwner: (owner: Owner) => Effect.Effect<SigningKey, StoreUnavailable>
  }
>() {
  static readonly layer = Layer.effect(
    SigningKeys,
    Effect.gen(function* () {
      const secrets = yield* Secrets
      const reader = yield* Reader
      const context = yield* Effect.context<Reader | Writer | Secrets>()

      const endpoints = yield* cached((endpoint: EndpointId) =>
        Effect.flatMap(EndpointsRepo.sealedSecret(reader, endpoint), (sealed) =>
          sealed === undefined
            ? Effect.dieMessage(`There is no endpoint ${endpoint}`)
            : Effect.sync(() => signingKey(secrets.open(sealed, endpointContext(endpoint))))
        )
      )
      const owners = yield* cached((owner: Owner) =>
        Effect.map(defaultSecret(owner.account, owner.mode), signingKey).pipe(Effect.provide(context))
      )
      return {
        ofEndpoint: (endpoint) => endpoints.get(endpoint),
        ofOwner: ({ account, mode }) => owners.get(Data.struct({ account, mode }))
      }
    })
  )
}

const cached = <Key>(lookup: (key: Key) => Effect.Effect<SigningKey, StoreUnavailable>) =>
  Cache.makeWith({
    capacity,
    lookup,
    timeToLive: (exit) => (Exit.isSuccess(exit) ? timeToLive : Duration.zero)
  })
