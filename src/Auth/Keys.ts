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
  /** Drawn unless it is given. */
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

const isDead = (key: ApiKey, now: number) =>
  key.revokedAt !== undefined || (key.expiresAt !== undefined && key.expiresAt <= now)

const makeKeys = Effect.gen(function* () {
  const reader = yield* Reader
  const writer = yield* Writer
  const alive = (yield* Workers).worker("keys", useInterval)
  const clock = yield* Effect.clock
  // By hash. Only keys that are in the store get in, so it holds no more than there are.
  const live = new Map<string, ApiKey>()
  let revocations = 0
  let uses = new Map<ApiKeyId, number>()

  const find = (hash: Buffer, at: string): Effect.Effect<ApiKey | undefined, StoreUnavailable> =>
    Effect.suspend(() => {
      const before = revocations
      return Effect.tap(Repo.byHash(reader, hash), (key) => {
        // What was read before a revocation must not come back to life after it.
        if (key !== undefined && before === revocations) live.set(at, key)
      })
    })

  const use = (key: ApiKey, at: string): ApiKey | undefined => {
    const now = clock.unsafeCurrentTimeMillis()
    if (isDead(key, now)) {
      live.delete(at)
      return undefined
    }
    uses.set(key.id, now)
    return key
  }

  const authenticate = (presented: string): Effect.Effect<ApiKey | undefined, StoreUnavailable> =>
    Effect.suspend(() => {
      if (!isKey(presented)) return Effect.succeed(undefined)
      const hash = hashOf(presented)
      const at = hash.toString("latin1")
      const known = live.get(at)
      return known === undefined
        ? Effect.map(find(hash, at), (key) => key && use(key, at))
        : Effect.succeed(use(known, at))
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
          for (const [at, cached] of live) if (cached.id === key.id) live.delete(at)
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
      return key !== undefined && !isDead(key, yield* Clock.currentTimeMillis)
    }),
    run: Effect.forever(Effect.delay(alive(recordUses), useInterval))
  }
})

/** API keys. The key itself is given once; the store has its SHA-256. */
export class Keys extends Context.Tag("tilld/Auth/Keys")<
  Keys,
  {
    readonly create: (
      key: NewKey
    ) => Effect.Effect<
      { readonly key: Redacted.Redacted<string>; readonly record: ApiKey },
      UnknownAccount | StoreUnavailable
    >
    /** All keys, dead ones too, in the order of their making. */
    readonly list: Effect.Effect<ReadonlyArray<ApiKey>, StoreUnavailable>
    /** From its return on nobody gets in with the key. Undefined: there is no such key. */
    readonly revoke: (id: string) => Effect.Effect<ApiKey | undefined, StoreUnavailable>
    /** The key that `presented` is, undefined where it is none, expired or revoked. */
    readonly authenticate: (presented: string) => Effect.Effect<ApiKey | undefined, StoreUnavailable>
    /** Whether a key that got in is neither expired nor revoked meanwhile: for what goes on longer than a request. */
    readonly isLive: (id: ApiKeyId) => Effect.Effect<boolean, StoreUnavailable>
    /** Worker: writes once a minute when each key was last used, and not with every request. The end of the layer does too. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.scoped(Keys, makeKeys)
}
