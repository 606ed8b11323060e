import { randomBytes } from "node:crypto"
import { Clock, Duration, Effect, Redacted } from "effect"
import type { Owner } from "../Domain/Owner.ts"
import { RotationUnderWay, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { Secrets } from "../Secrets.ts"
import { type Db, Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"

/** An account's default secrets in one mode. They sign deliveries to payments' own webhookUrls. */
export interface DefaultSecrets {
  readonly current: Redacted.Redacted<string>
  /** The previous secret during a rotation, and until when it also signs: Unix milliseconds. */
  readonly previous: { readonly secret: Redacted.Redacted<string>; readonly until: number } | undefined
}

interface Row {
  readonly secret: Uint8Array
  readonly previous_secret: Uint8Array | null
  readonly previous_until: number | null
}

const rowOf = (db: Db, { account, mode }: Owner) =>
  db.get<Row>("SELECT secret, previous_secret, previous_until FROM default_secrets WHERE account_id = ? AND mode = ?", [
    account,
    mode
  ])

/** The sealing context of an owner's default secret: the value can be opened only as this column of this row. */
export const contextOf = ({ account, mode }: Owner, column: string): string =>
  `default_secrets.${column}/${account}/${mode}`

/** A new random secret in the form of Standard Webhooks, sealed. */
const sealedFresh = (secrets: Secrets["Type"], owner: Owner) =>
  secrets.seal(`whsec_${randomBytes(32).toString("base64")}`, contextOf(owner, "secret"))

const open = (secrets: Secrets["Type"], owner: Owner, row: Row): Effect.Effect<DefaultSecrets, SecretUnreadable> =>
  Effect.try({
    try: () => {
      const { previous_secret: previous, previous_until: until } = row
      return {
        current: secrets.open(row.secret, contextOf(owner, "secret")),
        previous:
          previous === null || until === null
            ? undefined
            : { secret: secrets.open(previous, contextOf(owner, "previous_secret")), until }
      }
    },
    catch: () => SecretUnreadable.ofOwner(owner)
  })

/** Stores a first secret unless a concurrent call has stored one since it was read. Returns the row that is stored. */
const storeFirst = (owner: Owner, sealed: Uint8Array, at: number): Effect.Effect<Row, StoreUnavailable, Tx> =>
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
  const row = stored ?? (yield* writer.write(storeFirst(owner, sealedFresh(secrets, owner), now)))
  const { current, previous } = yield* open(secrets, owner, row)
  return { current, previous: previous !== undefined && now < previous.until ? previous : undefined }
})

/**
 * Gives the account a new secret at `now`, Unix milliseconds; the current one also signs for `overlap` longer. During an
 * overlap only a rotation without one is accepted: there are never three valid secrets.
 */
export const replaceSecret = (
  secrets: Secrets["Type"],
  owner: Owner,
  overlap: Duration.Duration,
  now: number
): Effect.Effect<DefaultSecrets, RotationUnderWay | SecretUnreadable | StoreUnavailable, Tx> =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const stored = yield* rowOf(tx, owner)
    const hasOverlap = Duration.greaterThan(overlap, Duration.zero)
    if (hasOverlap && stored?.previous_until != null && now < stored.previous_until) {
      return yield* RotationUnderWay.of(stored.previous_until)
    }
    const former = hasOverlap && stored !== undefined ? (yield* open(secrets, owner, stored)).current : undefined
    const row: Row = {
      secret: sealedFresh(secrets, owner),
      ...(former !== undefined
        ? {
            previous_secret: secrets.seal(Redacted.value(former), contextOf(owner, "previous_secret")),
            previous_until: now + Duration.toMillis(overlap)
          }
        : { previous_secret: null, previous_until: null })
    }
    yield* tx.run(
      `INSERT OR REPLACE INTO default_secrets (account_id, mode, secret, created_at, previous_secret, previous_until)
       VALUES (?, ?, ?, ?, ?, ?)`,
      [owner.account, owner.mode, row.secret, now, row.previous_secret, row.previous_until]
    )
    return yield* open(secrets, owner, row)
  })
