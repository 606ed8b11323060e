import { Clock, Context, type Duration, Effect, Layer } from "effect"
import type { EndpointId } from "../Domain/Ids.ts"
import type { Owner } from "../Domain/Owner.ts"
import { type RotationUnderWay, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { Secrets } from "../Secrets.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { type DefaultSecrets, defaultSecrets, replaceSecret } from "./DefaultSecrets.ts"
import * as EndpointsRepo from "./queue/EndpointsRepo.ts"
import { overlapping, type SigningKey, signingKey } from "./signature.ts"

/** Most unsealed secrets that are held in memory. */
const capacity = 1024

/** The sealing context of an endpoint's secret. */
export const endpointContext = (endpoint: EndpointId): string => `endpoints.secret/${endpoint}`

const nameOf = ({ account, mode }: Owner) => `${account} ${mode}`

/** The signing key at a given time, Unix milliseconds. */
type KeyAt = (now: number) => SigningKey

const keyAt = ({ current, previous }: DefaultSecrets): KeyAt => {
  const key = signingKey(current)
  if (previous === undefined) return () => key
  const both = overlapping(signingKey(previous.secret), key)
  return (now) => (now < previous.until ? both : key)
}

/**
 * Signing keys of endpoints and accounts. Cached: opening a sealed secret for each attempt would cost more than signing.
 */
export class SigningKeys extends Context.Tag("tilld/Webhooks/SigningKeys")<
  SigningKeys,
  {
    readonly ofEndpoint: (endpoint: EndpointId) => Effect.Effect<SigningKey, SecretUnreadable | StoreUnavailable>
    /** The account's default key, which signs for webhookUrls that are not an endpoint's URL. */
    readonly ofOwner: (owner: Owner) => Effect.Effect<SigningKey, SecretUnreadable | StoreUnavailable>
    /** Makes a new default secret for an existing account; the current one also signs for `overlap` longer. */
    readonly rotate: (
      owner: Owner,
      overlap: Duration.Duration
    ) => Effect.Effect<DefaultSecrets, RotationUnderWay | SecretUnreadable | StoreUnavailable>
  }
>() {
  static readonly layer = Layer.effect(
    SigningKeys,
    Effect.gen(function* () {
      const secrets = yield* Secrets
      const reader = yield* Reader
      const writer = yield* Writer
      const context = yield* Effect.context<Reader | Writer | Secrets>()
      const kept = new Map<string, KeyAt>()

      const keep = (name: string, key: KeyAt): KeyAt => {
        kept.delete(name)
        const [oldest] = kept.size < capacity ? [] : kept.keys()
        if (oldest !== undefined) kept.delete(oldest)
        kept.set(name, key)
        return key
      }

      const openEndpoint = Effect.fn("SigningKeys.openEndpoint")(function* (endpoint: EndpointId) {
        const sealed = yield* EndpointsRepo.sealedSecret(reader, endpoint)
        if (sealed === undefined) return yield* Effect.dieMessage(`There is no endpoint ${endpoint}`)
        const secret = yield* Effect.try({
          try: () => secrets.open(sealed, endpointContext(endpoint)),
          catch: () => SecretUnreadable.ofEndpoint(endpoint)
        })
        const key = signingKey(secret)
        return keep(endpoint, () => key)
      })

      const openOwner = Effect.fn("SigningKeys.openOwner")(function* (owner: Owner) {
        const read = yield* defaultSecrets(owner)
        // A rotation may have cached a newer key meanwhile.
        return kept.get(nameOf(owner)) ?? keep(nameOf(owner), keyAt(read))
      }, Effect.provide(context))

      const now = <E>(key: KeyAt | undefined, opened: Effect.Effect<KeyAt, E>): Effect.Effect<SigningKey, E> =>
        Effect.zipWith(key === undefined ? opened : Effect.succeed(key), Clock.currentTimeMillis, (at, time) =>
          at(time)
        )

      const rotate = Effect.fn("SigningKeys.rotate")(function* (owner: Owner, overlap: Duration.Duration) {
        const at = yield* Clock.currentTimeMillis
        const command = Effect.gen(function* () {
          const tx = yield* Tx
          const rotated = yield* replaceSecret(secrets, owner, overlap, at)
          tx.afterCommit(() => void keep(nameOf(owner), keyAt(rotated)))
          return rotated
        })
        return yield* writer.write(command)
      })

      return {
        ofEndpoint: (endpoint) => now(kept.get(endpoint), openEndpoint(endpoint)),
        ofOwner: (owner) => now(kept.get(nameOf(owner)), openOwner(owner)),
        rotate
      }
    })
  )
}
