import { Clock, Effect, Redacted } from "effect"
import type { Owner } from "../Domain/Account.ts"
import { type RotationUnderWay, type SecretReplaced, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { Secrets } from "../Secrets.ts"
import { type Db, Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import type { SealedPair } from "./queue/EndpointsRepo.ts"
import { isForStored, openPair, type PairRow, type Rotation, rotatePair, type SecretPair } from "./secretPair.ts"
import { freshSecret } from "./signature.ts"

// An account's default secrets in one mode. They sign deliveries to payments' own webhookUrls.

const rowOf = (db: Db, { account, mode }: Owner) =>
  db.get<SealedPair>(
    "SELECT secret, previous_secret, previous_until FROM default_secrets WHERE account_id = ? AND mode = ?",
    [account, mode]
  )

/** The sealing context of an owner's default secret: the value can be opened only as this column of this row. */
export const contextOf = ({ account, mode }: Owner, column: string): string =>
  `default_secrets.${column}/${account}/${mode}`

const pairRow = (secrets: Secrets["Type"], owner: Owner): PairRow => ({
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
  const { current, previous } = yield* openPair(pairRow(secrets, owner), row)
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
    const place = pairRow(secrets, owner)
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
