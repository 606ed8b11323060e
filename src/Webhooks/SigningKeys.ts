import { Context, Effect, Layer } from "effect"
import type { EndpointId } from "../Domain/Ids.ts"
import type { Owner } from "../Domain/Owner.ts"
import { Secrets } from "../Secrets.ts"
import { Reader, type StoreUnavailable, type Writer } from "../Sql.ts"
import { defaultSecret } from "./DefaultSecrets.ts"
import * as EndpointsRepo from "./EndpointsRepo.ts"
import { type SigningKey, signingKey } from "./signature.ts"

/** Unsealed secrets that are held in memory at most. */
const capacity = 1024

/** What an endpoint's secret is sealed for. */
export const endpointContext = (endpoint: EndpointId): string => `webhook endpoint ${endpoint}`

/** Secrets made ready for signing. They are kept: opening one for each attempt would cost more than the signature. */
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
      const kept = new Map<string, SigningKey>()

      const keep = (name: string, key: SigningKey): SigningKey => {
        const [oldest] = kept.size < capacity ? [] : kept.keys()
        if (oldest !== undefined) kept.delete(oldest)
        kept.set(name, key)
        return key
      }

      const openEndpoint = Effect.fn("SigningKeys.openEndpoint")(function* (endpoint: EndpointId) {
        const sealed = yield* EndpointsRepo.sealedSecret(reader, endpoint)
        if (sealed === undefined) return yield* Effect.dieMessage(`There is no endpoint ${endpoint}`)
        return keep(endpoint, signingKey(secrets.open(sealed, endpointContext(endpoint))))
      })

      const openOwner = Effect.fn("SigningKeys.openOwner")(function* (name: string, { account, mode }: Owner) {
        return keep(name, signingKey(yield* defaultSecret(account, mode)))
      }, Effect.provide(context))

      return {
        ofEndpoint: (endpoint) => {
          const key = kept.get(endpoint)
          return key === undefined ? openEndpoint(endpoint) : Effect.succeed(key)
        },
        ofOwner: (owner) => {
          const name = `${owner.account} ${owner.mode}`
          const key = kept.get(name)
          return key === undefined ? openOwner(name, owner) : Effect.succeed(key)
        }
      }
    })
  )
}
