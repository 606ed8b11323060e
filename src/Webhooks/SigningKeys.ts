/** Secrets that sign webhooks, of endpoints and by default of accounts: their rows, their rotation, and the keys in memory. */
import { createHash } from "node:crypto"
import { Clock, Context, Duration, Effect, Layer, Redacted } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { EndpointId } from "../Domain/Ids.ts"
import { RotationUnderWay, SecretReplaced, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { BoundedMap } from "../lib/BoundedMap.ts"
import { Secrets, type SecretsShape } from "../Secrets.ts"
import { type Db, Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import type { SealedPair } from "./queue/EndpointsRepo.ts"
import * as EndpointsRepo from "./queue/EndpointsRepo.ts"
import { freshSecret, overlapping, type SigningKey, signingKey } from "./signature.ts"

/** Maximum number of unsealed secrets in memory. */
const capacity = 1024

/** The sealing context of an endpoint's secrets: the value can be opened only as this column of this row. */
export const endpointContext = (endpoint: EndpointId, column: keyof EndpointsRepo.SealedPair = "secret"): string =>
  `endpoints.${column}/${endpoint}`

const endpointRow = (secrets: Secrets["Type"], endpoint: EndpointId): PairRow => ({
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
        const read = yield* openPair(endpointRow(secrets, endpoint), sealed)
        // A rotation may have cached a newer key meanwhile.
        return kept.get(endpoint) ?? keep(endpoint, keyAt(read))
      })

      const openOwner = Effect.fn("SigningKeys.openOwner")(function* (owner: Owner) {
        const read = yield* defaultSecrets(owner)
        // A rotation may have cached a newer key meanwhile.
        return kept.get(nameOf(owner)) ?? keep(nameOf(owner), keyAt(read))
      }, Effect.provide(context))

      const now = <E>(name: string, open: () => Effect.Effect<KeyAt, E>): Effect.Effect<SigningKey, E> => {
        const key = kept.get(name)
        // Not opened in vain: even to begin that takes a part of the time of a delivery.
        return Effect.zipWith(key ? Effect.succeed(key) : open(), Clock.currentTimeMillis, (at, time) => at(time))
      }

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
        const row = endpointRow(secrets, endpoint)
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
        return stored !== undefined && (yield* isCurrent(endpointRow(secrets, endpoint), stored, secret))
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

/** Fails unless a rotation replaces what is stored. */
export const isForStored = ({ replaces }: Rotation, stored: SealedPair | undefined) =>
  replaces === undefined || replaces === markOf(stored) ? Effect.void : new SecretReplaced()

/** Where a pair is stored. */
export interface PairRow {
  readonly secrets: SecretsShape
  /** The sealing context of a column: a value can be opened only as this column of this row. */
  readonly context: (column: keyof SealedPair) => string
  readonly unreadable: () => SecretUnreadable
}

/** Unseals a pair. */
export const openPair = ({ context, secrets, unreadable }: PairRow, row: SealedPair) =>
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

/**
 * The pair after a rotation to `next` at `now`, Unix milliseconds: the stored secret also signs for `overlap` longer. During
 * an overlap only a rotation without one is accepted: there are never three valid secrets.
 */
export const rotatePair = Effect.fnUntraced(function* (
  row: PairRow,
  stored: SealedPair | undefined,
  next: Redacted.Redacted<string>,
  overlap: Duration.Duration,
  now: number
) {
  const sealed = (secret: Redacted.Redacted<string>, column: keyof SealedPair) =>
    row.secrets.seal(Redacted.value(secret), row.context(column))
  const alone: SealedPair = { secret: sealed(next, "secret"), previous_secret: null, previous_until: null }
  if (stored === undefined || Duration.equals(overlap, Duration.zero)) return alone
  if (stored.previous_until !== null && now < stored.previous_until) {
    return yield* RotationUnderWay.of(stored.previous_until)
  }
  const { current } = yield* openPair(row, stored)
  return {
    ...alone,
    previous_secret: sealed(current, "previous_secret"),
    previous_until: now + Duration.toMillis(overlap)
  }
})

// An account's default secrets in one mode. They sign deliveries to payments' own webhookUrls.

const rowOf = (db: Db, { account, mode }: Owner) =>
  db.get<SealedPair>(
    "SELECT secret, previous_secret, previous_until FROM default_secrets WHERE account_id = ? AND mode = ?",
    [account, mode]
  )

/** The sealing context of an owner's default secret: the value can be opened only as this column of this row. */
export const contextOf = ({ account, mode }: Owner, column: string): string =>
  `default_secrets.${column}/${account}/${mode}`

const ownerRow = (secrets: Secrets["Type"], owner: Owner): PairRow => ({
  secrets,
  context: (column) => contextOf(owner, column),
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

/** Stores a first secret unless a concurrent call has stored one since it was read. Returns the row that is stored. */
const storeFirst = (owner: Owner, sealed: Uint8Array, at: number): Effect.Effect<SealedPair, StoreUnavailable, Tx> =>
  Effect.gen(function* () {
    const tx = yield* Tx
    yield* tx.run(
      `INSERT INTO default_secrets (account_id, mode, secret, created_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (account_id, mode) DO NOTHING`,
      [owner.account, owner.mode, sealed, at]
    )
    return (yield* rowOf(tx, owner)) ?? { secret: sealed, previous_secret: null, previous_until: null }
  })

/** The default secrets of an owner. Made when they are first needed; two during a rotation. */
export const defaultSecrets = Effect.fn("DefaultSecrets.defaultSecrets")(function* (owner: Owner) {
  const secrets = yield* Secrets
  const writer = yield* Writer
  const now = yield* Clock.currentTimeMillis
  const stored = yield* rowOf(yield* Reader, owner)
  const sealedFirst = () => secrets.seal(Redacted.value(freshSecret()), contextOf(owner, "secret"))
  const row = stored ?? (yield* writer.write(storeFirst(owner, sealedFirst(), now)))
  const { current, previous } = yield* openPair(ownerRow(secrets, owner), row)
  return { current, previous: previous !== undefined && now < previous.until ? previous : undefined }
})

/**
 * Gives the account a new secret at `now`, Unix milliseconds; the current one also signs for the overlap. During an
 * overlap only a rotation without one is accepted: there are never three valid secrets.
 */
export const replaceSecret = (
  secrets: Secrets["Type"],
  owner: Owner,
  rotation: Rotation,
  now: number
): Effect.Effect<SecretPair, RotationUnderWay | SecretReplaced | SecretUnreadable | StoreUnavailable, Tx> =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const place = ownerRow(secrets, owner)
    const stored = yield* rowOf(tx, owner)
    yield* isForStored(rotation, stored)
    const row = yield* rotatePair(place, stored, freshSecret(), rotation.overlap, now)
    yield* tx.run(
      `INSERT OR REPLACE INTO default_secrets (account_id, mode, secret, created_at, previous_secret, previous_until)
       VALUES (?, ?, ?, ?, ?, ?)`,
      [owner.account, owner.mode, row.secret, now, row.previous_secret, row.previous_until]
    )
    return yield* openPair(place, row)
  })
