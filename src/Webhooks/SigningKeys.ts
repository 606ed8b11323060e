import { Clock, Context, Duration, Effect, Layer, Redacted } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { EndpointId } from "../Domain/Ids.ts"
import { type RotationUnderWay, type SecretReplaced, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { BoundedMap } from "../lib/BoundedMap.ts"
import { Secrets } from "../Secrets.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { defaultSecrets, replaceSecret } from "./DefaultSecrets.ts"
import * as EndpointsRepo from "./queue/EndpointsRepo.ts"
import { isForStored, openPair, type PairRow, type Rotation, rotatePair, type SecretPair } from "./secretPair.ts"
import { overlapping, type SigningKey, signingKey } from "./signature.ts"

/** Maximum number of unsealed secrets in memory. */
const capacity = 1024

/** The sealing context of an endpoint's secrets: the value can be opened only as this column of this row. */
export const endpointContext = (endpoint: EndpointId, column: keyof EndpointsRepo.SealedPair = "secret"): string =>
  `endpoints.${column}/${endpoint}`

const pairRow = (secrets: Secrets["Type"], endpoint: EndpointId): PairRow => ({
  secrets,
  context: (column) => endpointContext(endpoint, column),
  unreadable: () => SecretUnreadable.ofEndpoint(endpoint)
})

/** False for a stored secret that cannot be read: another one replaces it. */
const isCurrent = (row: PairRow, stored: EndpointsRepo.SealedPair, secret: Redacted.Redacted<string>) =>
  openPair(row, stored).pipe(
    Effect.map(({ current }) => Redacted.value(current) === Redacted.value(secret)),
    Effect.orElseSucceed(() => false)
  )

const nameOf = ({ account, mode }: Owner) => `${account} ${mode}`

/** The signing key at a given time, Unix milliseconds. */
type KeyAt = (now: number) => SigningKey

const keyAt = ({ current, previous }: SecretPair): KeyAt => {
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
    /** Makes a new default secret for an existing account; the current one also signs for the overlap. */
    readonly rotate: (
      owner: Owner,
      rotation: Rotation
    ) => Effect.Effect<SecretPair, RotationUnderWay | SecretReplaced | SecretUnreadable | StoreUnavailable>
    /** Whether it is the present secret of an endpoint, in the caller's transaction. */
    readonly isOfEndpoint: (
      endpoint: EndpointId,
      secret: Redacted.Redacted<string>
    ) => Effect.Effect<boolean, StoreUnavailable, Tx>
    /**
     * Gives an endpoint another secret, in the caller's transaction; the current one also signs for the overlap. `at` in
     * Unix milliseconds.
     */
    readonly rotateEndpoint: (
      endpoint: EndpointId,
      next: Redacted.Redacted<string>,
      rotation: Rotation,
      at: number
    ) => Effect.Effect<void, RotationUnderWay | SecretReplaced | SecretUnreadable | StoreUnavailable, Tx>
  }
>() {
  static readonly layer = Layer.effect(
    SigningKeys,
    Effect.gen(function* () {
      const secrets = yield* Secrets
      const reader = yield* Reader
      const writer = yield* Writer
      const context = yield* Effect.context<Reader | Writer | Secrets>()
      const kept = new BoundedMap<string, KeyAt>(capacity)

      const keep = (name: string, key: KeyAt): KeyAt => {
        kept.set(name, key)
        return key
      }

      const openEndpoint = Effect.fn("SigningKeys.openEndpoint")(function* (endpoint: EndpointId) {
        const sealed = yield* EndpointsRepo.sealedPair(reader, endpoint)
        if (sealed === undefined) return yield* Effect.dieMessage(`There is no endpoint ${endpoint}`)
        const read = yield* openPair(pairRow(secrets, endpoint), sealed)
        // A rotation may have cached a newer key meanwhile.
        return kept.get(endpoint) ?? keep(endpoint, keyAt(read))
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

      const rotate = Effect.fn("SigningKeys.rotate")(function* (owner: Owner, rotation: Rotation) {
        const at = yield* Clock.currentTimeMillis
        const command = Effect.gen(function* () {
          const tx = yield* Tx
          const rotated = yield* replaceSecret(secrets, owner, rotation, at)
          tx.afterCommit(() => void keep(nameOf(owner), keyAt(rotated)))
          return rotated
        })
        return yield* writer.write(command)
      })

      const rotateEndpoint = Effect.fn("SigningKeys.rotateEndpoint")(function* (
        endpoint: EndpointId,
        next: Redacted.Redacted<string>,
        rotation: Rotation,
        at: number
      ) {
        const tx = yield* Tx
        const row = pairRow(secrets, endpoint)
        const stored = yield* EndpointsRepo.sealedPair(tx, endpoint)
        yield* isForStored(rotation, stored)
        const { overlap } = rotation
        const isRepeated = stored !== undefined && (yield* isCurrent(row, stored, next))
        // A repeated request must neither be refused nor end the overlap that the first one began.
        if (isRepeated && Duration.greaterThan(overlap, Duration.zero)) return
        const sealed = yield* rotatePair(row, stored, next, overlap, at)
        yield* EndpointsRepo.replaceSecrets(endpoint, sealed)
        const rotated = yield* openPair(row, sealed)
        tx.afterCommit(() => void keep(endpoint, keyAt(rotated)))
      })

      const isOfEndpoint = Effect.fnUntraced(function* (endpoint: EndpointId, secret: Redacted.Redacted<string>) {
        const stored = yield* EndpointsRepo.sealedPair(yield* Tx, endpoint)
        return stored !== undefined && (yield* isCurrent(pairRow(secrets, endpoint), stored, secret))
      })

      return {
        isOfEndpoint,
        rotateEndpoint,
        ofEndpoint: (endpoint) => now(kept.get(endpoint), openEndpoint(endpoint)),
        ofOwner: (owner) => now(kept.get(nameOf(owner)), openOwner(owner)),
        rotate
      }
    })
  )
}
