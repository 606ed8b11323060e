/** Secrets that sign webhooks, of endpoints and by default of accounts: their rows, their rotation, and the keys in memory. */
import { createHash } from "node:crypto"
import { Clock, Context, Duration, Effect, Layer, Redacted } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { EndpointId } from "../Domain/Ids.ts"
import { RotationUnderWay, SecretReplaced, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { BoundedMap } from "../lib/BoundedMap.ts"
import { Secrets, type SecretsShape } from "../Secrets.ts"
import { type Db, Reader, replaceRow, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import type { SealedPair } from "./queue/EndpointsRepo.ts"
import * as EndpointsRepo from "./queue/EndpointsRepo.ts"
import { freshSecret, overlapping, type SigningKey, signingKey } from "./signature.ts"

/** Maximum number of unsealed secrets in memory. */
const capacity = 1024

/** The sealing context of an endpoint's secrets: the value can be opened only as this column of this row. */
export const endpointContext = (endpoint: EndpointId, column: string = "secret"): string =>
  `endpoints.${column}/${endpoint}`

/** The same of an owner's default secrets. */
export const contextOf = ({ account, mode }: Owner, column: string): string =>
  `default_secrets.${column}/${account}/${mode}`

/** Where a pair of secrets is stored: in the row of an endpoint, or of an account's default in one mode. */
interface Place {
  readonly context: (column: keyof SealedPair) => string
  readonly read: (db: Db) => Effect.Effect<SealedPair | undefined, StoreUnavailable>
  readonly store: (pair: SealedPair, at: number) => Effect.Effect<void, StoreUnavailable, Tx>
  readonly unreadable: () => SecretUnreadable
}

const placeOf = (endpoint: EndpointId): Place => ({
  context: (column) => endpointContext(endpoint, column),
  read: (db) => EndpointsRepo.sealedPair(db, endpoint),
  store: (pair) => EndpointsRepo.replaceSecrets(endpoint, pair),
  unreadable: () => SecretUnreadable.ofEndpoint(endpoint)
})

// Default secrets sign deliveries to payments' own webhookUrls.
const placeOfOwner = (owner: Owner): Place => ({
  context: (column) => contextOf(owner, column),
  read: (db) =>
    db.get<SealedPair>(
      "SELECT secret, previous_secret, previous_until FROM default_secrets WHERE account_id = ? AND mode = ?",
      [owner.account, owner.mode]
    ),
  store: (secrets, at) => {
    const row = { account_id: owner.account, mode: owner.mode, ...secrets, created_at: at }
    return replaceRow("default_secrets", ["account_id", "mode"], row)
  },
  unreadable: () => SecretUnreadable.ofOwner(owner)
})

export interface DefaultSecretAge {
  /** When it was made, and until when the one before also signs; Unix milliseconds. */
  readonly createdAt: number
  readonly previousUntil: number | null
  /** Sealed. */
  readonly secret: Uint8Array
}

/** Undefined before the first one is needed. */
export const ageOf = (db: Db, { account, mode }: Owner) =>
  db.get<DefaultSecretAge>(
    `SELECT created_at AS createdAt, previous_until AS previousUntil, secret FROM default_secrets
     WHERE account_id = ? AND mode = ?`,
    [account, mode]
  )

/** A signing secret and, during a rotation, the one before it. */
export interface SecretPair {
  readonly current: Redacted.Redacted<string>
  /** The previous secret, and until when it also signs: Unix milliseconds. */
  readonly previous: { readonly secret: Redacted.Redacted<string>; readonly until: number } | undefined
}

/** How a secret is replaced. */
export interface Rotation {
  /** How long the present secret also signs. */
  readonly overlap: Duration.Duration
  /** `markOf` the secret that it replaces, so that a request that is made twice rotates once; undefined: any. */
  readonly replaces?: string | undefined
}

/** Identifies a stored secret without revealing it. Each rotation makes another mark, also to the same secret. */
export const markOf = (stored: Pick<SealedPair, "secret"> | undefined): string =>
  stored === undefined ? "none" : createHash("sha256").update(stored.secret).digest("base64url").slice(0, 22)

/** Unseals a pair. */
const openPair = (secrets: SecretsShape, { context, unreadable }: Place, row: SealedPair) =>
  Effect.try({
    try: (): SecretPair => {
      const { previous_secret: previous, previous_until: until } = row
      return {
        current: secrets.open(row.secret, context("secret")),
        previous:
          previous === null || until === null
            ? undefined
            : { secret: secrets.open(previous, context("previous_secret")), until }
      }
    },
    catch: unreadable
  })

/** False for a stored secret that cannot be read: another one replaces it. */
const isCurrent = (secrets: SecretsShape, place: Place, stored: SealedPair, secret: Redacted.Redacted<string>) =>
  openPair(secrets, place, stored).pipe(
    Effect.map(({ current }) => Redacted.value(current) === Redacted.value(secret)),
    Effect.orElseSucceed(() => false)
  )

/**
 * Puts `next` at a place at `at`, Unix milliseconds: the stored secret also signs for the overlap. During an overlap only a
 * rotation without one is accepted: there are never three valid secrets.
 */
const replace = Effect.fnUntraced(function* (
  secrets: SecretsShape,
  place: Place,
  next: Redacted.Redacted<string>,
  { overlap, replaces }: Rotation,
  at: number
) {
  const stored = yield* place.read(yield* Tx)
  if (replaces !== undefined && replaces !== markOf(stored)) return yield* new SecretReplaced()
  const sealed = (secret: Redacted.Redacted<string>, column: keyof SealedPair) =>
    secrets.seal(Redacted.value(secret), place.context(column))
  let pair: SealedPair = { secret: sealed(next, "secret"), previous_secret: null, previous_until: null }
  if (stored !== undefined && Duration.greaterThan(overlap, Duration.zero)) {
    // A repeated request must neither be refused nor end the overlap that the first one began.
    if (yield* isCurrent(secrets, place, stored, next)) return yield* openPair(secrets, place, stored)
    if (stored.previous_until !== null && at < stored.previous_until) {
      return yield* RotationUnderWay.of(stored.previous_until)
    }
    const { current } = yield* openPair(secrets, place, stored)
    const until = at + Duration.toMillis(overlap)
    pair = { ...pair, previous_secret: sealed(current, "previous_secret"), previous_until: until }
  }
  yield* place.store(pair, at)
  return yield* openPair(secrets, place, pair)
})

/** Gives an account a new default secret, in the caller's transaction. */
export const replaceSecret = (secrets: SecretsShape, owner: Owner, rotation: Rotation, at: number) =>
  replace(secrets, placeOfOwner(owner), freshSecret(), rotation, at)

/** The default secrets of an owner. Made when they are first needed; two during a rotation. */
export const defaultSecrets = Effect.fn("DefaultSecrets.defaultSecrets")(function* (owner: Owner) {
  const secrets = yield* Secrets
  const writer = yield* Writer
  const now = yield* Clock.currentTimeMillis
  const place = placeOfOwner(owner)
  /** Unless a concurrent call has stored one since it was read. */
  const first = Effect.gen(function* () {
    const stored = yield* place.read(yield* Tx)
    if (stored !== undefined) return stored
    const secret = secrets.seal(Redacted.value(freshSecret()), place.context("secret"))
    const pair: SealedPair = { secret, previous_secret: null, previous_until: null }
    yield* place.store(pair, now)
    return pair
  })
  const row = (yield* place.read(yield* Reader)) ?? (yield* writer.write(first))
  const { current, previous } = yield* openPair(secrets, place, row)
  return { current, previous: previous !== undefined && now < previous.until ? previous : undefined }
})

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

      // A rotation may have cached a newer key while one was read.
      const openEndpoint = Effect.fn("SigningKeys.openEndpoint")(function* (endpoint: EndpointId) {
        const place = placeOf(endpoint)
        const sealed = yield* place.read(reader)
        if (sealed === undefined) return yield* Effect.dieMessage(`There is no endpoint ${endpoint}`)
        const read = yield* openPair(secrets, place, sealed)
        return kept.get(endpoint) ?? keep(endpoint, keyAt(read))
      })

      const openOwner = Effect.fn("SigningKeys.openOwner")(function* (owner: Owner) {
        const read = yield* defaultSecrets(owner)
        return kept.get(nameOf(owner)) ?? keep(nameOf(owner), keyAt(read))
      }, Effect.provide(context))

      const now = <E>(name: string, open: () => Effect.Effect<KeyAt, E>): Effect.Effect<SigningKey, E> => {
        const key = kept.get(name)
        // Not opened in vain: even to begin that takes a part of the time of a delivery.
        return Effect.zipWith(key ? Effect.succeed(key) : open(), Clock.currentTimeMillis, (at, time) => at(time))
      }

      const keeping = <A extends SecretPair, E, R>(name: string, replaced: Effect.Effect<A, E, R>) =>
        Effect.flatMap(Tx, (tx) =>
          Effect.tap(replaced, (pair) => Effect.sync(() => tx.afterCommit(() => void keep(name, keyAt(pair)))))
        )

      const rotate = Effect.fn("SigningKeys.rotate")(function* (owner: Owner, rotation: Rotation) {
        const at = yield* Clock.currentTimeMillis
        return yield* writer.write(keeping(nameOf(owner), replaceSecret(secrets, owner, rotation, at)))
      })

      const rotateEndpoint = Effect.fn("SigningKeys.rotateEndpoint")(
        (endpoint: EndpointId, next: Redacted.Redacted<string>, rotation: Rotation, at: number) =>
          Effect.asVoid(keeping(endpoint, replace(secrets, placeOf(endpoint), next, rotation, at)))
      )

      const isOfEndpoint = Effect.fnUntraced(function* (endpoint: EndpointId, secret: Redacted.Redacted<string>) {
        const place = placeOf(endpoint)
        const stored = yield* place.read(yield* Tx)
        return stored !== undefined && (yield* isCurrent(secrets, place, stored, secret))
      })

      return {
        isOfEndpoint,
        rotateEndpoint,
        ofEndpoint: (endpoint) => now(endpoint, () => openEndpoint(endpoint)),
        ofOwner: (owner) => now(nameOf(owner), () => openOwner(owner)),
        rotate
      }
    })
  )
}
