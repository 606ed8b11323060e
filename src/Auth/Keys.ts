import { Clock, Context, Duration, Effect, Layer, Redacted } from "effect"
import { UnknownAccount } from "../Domain/AccountErrors.ts"
import type { ApiKey, Permission } from "../Domain/ApiKey.ts"
import type { Mode } from "../Domain/Chain.ts"
import { type AccountId, type ApiKeyId, newApiKeyId } from "../Domain/Ids.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import * as AccountsRepo from "./AccountsRepo.ts"
import * as Repo from "./KeysRepo.ts"
import { hashOf, isKey, newKey } from "./keyFormat.ts"

export interface NewKey {
  /** Default: a new random id. */
  readonly id?: ApiKeyId
  readonly account: AccountId
  readonly mode: Mode
  readonly name: string
  readonly permissions: ReadonlyArray<Permission>
  /** From now. Undefined: never. */
  readonly expiresIn: Duration.Duration | undefined
}

const useInterval = "1 minute"

const insert = Effect.fn("Keys.insert")(function* (request: NewKey, key: Redacted.Redacted<string>) {
  const tx = yield* Tx
  const exists = yield* AccountsRepo.exists(tx, request.account)
  if (!exists) return yield* UnknownAccount.of(request.account)
  const now = yield* Clock.currentTimeMillis
  const { expiresIn, id = newApiKeyId(), ...rest } = request
  const stored: ApiKey = {
    ...rest,
    id,
    lastFour: Redacted.value(key).slice(-4),
    createdAt: now,
    expiresAt: expiresIn === undefined ? undefined : now + Duration.toMillis(expiresIn),
    revokedAt: undefined,
    lastUsedAt: undefined
  }
  yield* Repo.insert(stored, hashOf(Redacted.value(key)))
  return stored
})

const isExpiredOrRevoked = (key: ApiKey, now: number) =>
  key.revokedAt !== undefined || (key.expiresAt !== undefined && key.expiresAt <= now)

const makeKeys = Effect.gen(function* () {
  const reader = yield* Reader
  const writer = yield* Writer
  const heartbeat = (yield* Workers).worker("keys", useInterval)
  const clock = yield* Effect.clock
  // By hash. Holds only keys that are in the store, so it is as large as their number at most.
  const live = new Map<string, ApiKey>()
  let revocations = 0
  let uses = new Map<ApiKeyId, number>()

  const find = (hash: Buffer, cacheKey: string): Effect.Effect<ApiKey | undefined, StoreUnavailable> =>
    Effect.suspend(() => {
      const before = revocations
      return Effect.tap(Repo.byHash(reader, hash), (key) => {
        // A key that was read before a revocation must not be cached after it.
        if (key !== undefined && before === revocations) live.set(cacheKey, key)
      })
    })

  const use = (key: ApiKey, cacheKey: string): ApiKey | undefined => {
    const now = clock.unsafeCurrentTimeMillis()
    if (isExpiredOrRevoked(key, now)) {
      live.delete(cacheKey)
      return undefined
    }
    uses.set(key.id, now)
    return key
  }

  const authenticate = (presented: string): Effect.Effect<ApiKey | undefined, StoreUnavailable> =>
    Effect.suspend(() => {
      if (!isKey(presented)) return Effect.succeed(undefined)
      const hash = hashOf(presented)
      const cacheKey = hash.toString("latin1")
      const known = live.get(cacheKey)
      return known === undefined
        ? Effect.map(find(hash, cacheKey), (key) => key && use(key, cacheKey))
        : Effect.succeed(use(known, cacheKey))
    })

  const recordUses = Effect.suspend(() => {
    const recorded = uses
    uses = new Map()
    return recorded.size === 0
      ? Effect.void
      : Effect.tapError(writer.write(Repo.recordUse(recorded)), () =>
          Effect.sync(() => {
            uses = new Map([...recorded, ...uses])
          })
        )
  }).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logWarning(message)))

  const revoke = Effect.fn("Keys.revoke")(function* (id: string) {
    const now = yield* Clock.currentTimeMillis
    return yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const key = yield* Repo.byId(tx, id)
        if (key === undefined) return undefined
        yield* Repo.revoke(key.id, now)
        tx.afterCommit(() => {
          revocations += 1
          for (const [cacheKey, cached] of live) if (cached.id === key.id) live.delete(cacheKey)
        })
        return { ...key, revokedAt: key.revokedAt ?? now }
      })
    )
  })

  yield* Effect.addFinalizer(() => recordUses)

  return {
    create: Effect.fn("Keys.create")(function* (request: NewKey) {
      const key = newKey(request.mode)
      return { key, record: yield* writer.write(insert(request, key)) }
    }),
    list: Effect.map(Repo.list(reader), (keys) =>
      keys.map((key): ApiKey => ({ ...key, lastUsedAt: uses.get(key.id) ?? key.lastUsedAt }))
    ),
    revoke,
    authenticate,
    isLive: Effect.fn("Keys.isLive")(function* (id: ApiKeyId) {
      const key = yield* Repo.byId(reader, id)
      return key !== undefined && !isExpiredOrRevoked(key, yield* Clock.currentTimeMillis)
    }),
    run: Effect.forever(Effect.delay(heartbeat(recordUses), useInterval))
  }
})

/**
 * API keys: create, list, revoke, authenticate. The key itself is returned once, at its creation; the store has only its
 * SHA-256. Keys in use are cached, so that a request reads no database; a revocation takes effect at once. `respond`
 * authenticates every request here; the operator's commands and the portal manage keys.
 */
export class Keys extends Context.Tag("tilld/Auth/Keys")<
  Keys,
  {
    readonly create: (
      key: NewKey
    ) => Effect.Effect<
      { readonly key: Redacted.Redacted<string>; readonly record: ApiKey },
      UnknownAccount | StoreUnavailable
    >
    /** All keys, expired and revoked ones too, oldest first. */
    readonly list: Effect.Effect<ReadonlyArray<ApiKey>, StoreUnavailable>
    /** Once it returns, the key authenticates no request. Undefined: there is no such key. */
    readonly revoke: (id: string) => Effect.Effect<ApiKey | undefined, StoreUnavailable>
    /** The key for the text of a header; undefined when it is unknown, expired or revoked. */
    readonly authenticate: (presented: string) => Effect.Effect<ApiKey | undefined, StoreUnavailable>
    /** Whether a key is still neither expired nor revoked: for streams, which outlast their authentication. */
    readonly isLive: (id: ApiKeyId) => Effect.Effect<boolean, StoreUnavailable>
    /** Worker: stores once a minute when keys were last used. The end of the layer stores it too. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.scoped(Keys, makeKeys)
}
