import { Clock, Context, Data, Duration, Effect, Layer, Redacted } from "effect"
import { KeyEnded, KeyExists, UnknownAccount } from "../Domain/AccountErrors.ts"
import type { ApiKey, KeyTerms, Permission } from "../Domain/ApiKey.ts"
import type { Mode } from "../Domain/Chain.ts"
import { type AccountId, type ApiKeyId, newApiKeyId } from "../Domain/Ids.ts"
import { inRanges } from "../Domain/IpRange.ts"
import type { Owner } from "../Domain/Owner.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import * as AccountsRepo from "./AccountsRepo.ts"
import * as Repo from "./KeysRepo.ts"
import { hashOf, isKey, newKey } from "./keyFormat.ts"
import type { ListPage } from "./listPage.ts"

export interface NewKey extends Partial<KeyTerms> {
  /** Default: a new random id. Given, it makes a request that is sent twice fail the second time. */
  readonly id?: ApiKeyId
  readonly account: AccountId
  readonly mode: Mode
  readonly name: string
  readonly permissions: ReadonlyArray<Permission>
  /** From now. Undefined: never. */
  readonly expiresIn: Duration.Duration | undefined
}

/** A key with its text, which is known only now. */
export interface MadeKey {
  readonly key: Redacted.Redacted<string>
  readonly record: ApiKey
}

/** The key is valid, and may not be used from this address. */
export class WrongAddress extends Data.TaggedError("WrongAddress")<{
  readonly key: ApiKeyId
  readonly address: string
}> {}

const useInterval = "1 minute"

const insert = Effect.fn("Keys.insert")(function* (request: NewKey, key: Redacted.Redacted<string>) {
  const tx = yield* Tx
  const exists = yield* AccountsRepo.exists(tx, request.account)
  if (!exists) return yield* UnknownAccount.of(request.account)
  const now = yield* Clock.currentTimeMillis
  const { expiresIn, id = newApiKeyId(), ips = [], perHour, perMinute, ...rest } = request
  const stored: ApiKey = {
    ...rest,
    ...{ id, ips, perHour, perMinute },
    lastFour: Redacted.value(key).slice(-4),
    createdAt: now,
    expiresAt: expiresIn === undefined ? undefined : now + Duration.toMillis(expiresIn),
    revokedAt: undefined,
    rolledTo: undefined,
    lastUsedAt: undefined
  }
  const isNew = yield* Repo.insert(stored, hashOf(Redacted.value(key)))
  return isNew ? stored : yield* new KeyExists({ id })
})

const isExpiredOrRevoked = (key: ApiKey, now: number) =>
  key.revokedAt !== undefined || (key.expiresAt !== undefined && key.expiresAt <= now)

/** Why a key can be neither rolled nor changed at `now`, Unix milliseconds. */
const endOf = ({ expiresAt, id, revokedAt }: ApiKey, now: number): KeyEnded | undefined => {
  if (revokedAt !== undefined) return KeyEnded.of(id, "was revoked", revokedAt)
  return expiresAt !== undefined && expiresAt <= now ? KeyEnded.of(id, "expired", expiresAt) : undefined
}

/** A key that was rolled at `now` ends after the overlap, and no later than it would have without. */
const rolledAt = (key: ApiKey, to: ApiKeyId, overlap: Duration.Duration, now: number): ApiKey => ({
  ...key,
  rolledTo: to,
  expiresAt: Math.min(key.expiresAt ?? Number.POSITIVE_INFINITY, now + Duration.toMillis(overlap)),
  // A clock that is set back does not revive it.
  revokedAt: Duration.equals(overlap, Duration.zero) ? now : undefined
})

/** A key in memory. */
interface Known {
  readonly key: ApiKey
  /** Whether an address is on the key's list. */
  readonly isListed: (address: string) => boolean
}

const makeKeys = Effect.gen(function* () {
  const reader = yield* Reader
  const writer = yield* Writer
  const heartbeat = (yield* Workers).worker("keys", useInterval)
  const clock = yield* Effect.clock
  // By hash. Holds only keys that are in the store, so it is as large as their number at most.
  const live = new Map<string, Known>()
  let changes = 0
  let uses = new Map<ApiKeyId, number>()

  const find = (hash: Buffer, cacheKey: string): Effect.Effect<Known | undefined, StoreUnavailable> =>
    Effect.suspend(() => {
      const before = changes
      return Effect.map(Repo.byHash(reader, hash), (key) => {
        const known = key && { key, isListed: inRanges(key.ips) }
        // A key that was read before a change must not be cached after it.
        if (known !== undefined && before === changes) live.set(cacheKey, known)
        return known
      })
    })

  const use = ({ isListed, key }: Known, cacheKey: string, from: () => string) => {
    const now = clock.unsafeCurrentTimeMillis()
    if (isExpiredOrRevoked(key, now)) {
      live.delete(cacheKey)
      return Effect.succeed(undefined)
    }
    if (key.ips.length > 0) {
      const address = from()
      if (!isListed(address)) return new WrongAddress({ key: key.id, address })
    }
    uses.set(key.id, now)
    return Effect.succeed(key)
  }

  const authenticate = (presented: string, from: () => string) =>
    Effect.suspend((): Effect.Effect<ApiKey | undefined, WrongAddress | StoreUnavailable> => {
      if (!isKey(presented)) return Effect.succeed(undefined)
      const hash = hashOf(presented)
      const cacheKey = hash.toString("latin1")
      const known = live.get(cacheKey)
      return known === undefined
        ? Effect.flatMap(find(hash, cacheKey), (found) =>
            found === undefined ? Effect.succeed(undefined) : use(found, cacheKey, from)
          )
        : use(known, cacheKey, from)
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

  /** Runs a transaction that changes a key: the next request with it reads it again. Undefined: there is no such key. */
  const changing = <A, E>(id: string, change: (key: ApiKey, now: number) => Effect.Effect<A, E, Tx>) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const command = Effect.gen(function* () {
        const tx = yield* Tx
        const key = yield* Repo.byId(tx, id)
        if (key === undefined) return undefined
        const result = yield* change(key, now)
        tx.afterCommit(() => {
          changes += 1
          for (const [cacheKey, known] of live) if (known.key.id === key.id) live.delete(cacheKey)
        })
        return result
      })
      return yield* writer.write(command)
    })

  const revoke = Effect.fn("Keys.revoke")((id: string) =>
    changing(id, (key, now) => Effect.as(Repo.revoke(key.id, now), { ...key, revokedAt: key.revokedAt ?? now }))
  )

  const change = Effect.fn("Keys.change")((id: string, given: Partial<KeyTerms>) =>
    changing(
      id,
      Effect.fnUntraced(function* (key, now) {
        const ended = endOf(key, now)
        if (ended !== undefined) return yield* ended
        const changed: ApiKey = { ...key, ...given }
        yield* Repo.change(changed)
        return changed
      })
    )
  )

  const roll = Effect.fn("Keys.roll")((id: string, to: ApiKeyId, overlap: Duration.Duration) =>
    changing(
      id,
      Effect.fnUntraced(function* (former, now) {
        if (former.rolledTo !== undefined) return yield* KeyEnded.rolled(former.id, former.rolledTo)
        const ended = endOf(former, now)
        if (ended !== undefined) return yield* ended
        const { account, createdAt, expiresAt, ips, mode, name, perHour, perMinute, permissions } = former
        const key = newKey(mode)
        const expiresIn = expiresAt === undefined ? undefined : Duration.millis(expiresAt - createdAt)
        const request = { id: to, account, mode, name, permissions, expiresIn, ips, perMinute, perHour }
        const record = yield* Effect.catchTags(insert(request, key), {
          UnknownAccount: Effect.die,
          KeyExists: Effect.die
        })
        yield* Repo.roll(rolledAt(former, to, overlap, now))
        return { key, record } satisfies MadeKey
      })
    )
  )

  const withLastUse = (key: ApiKey): ApiKey => ({ ...key, lastUsedAt: uses.get(key.id) ?? key.lastUsedAt })

  yield* Effect.addFinalizer(() => recordUses)

  return {
    create: Effect.fn("Keys.create")(function* (request: NewKey) {
      const key = newKey(request.mode)
      return { key, record: yield* writer.write(insert(request, key)) }
    }),
    list: (page: ListPage) => Effect.map(Repo.list(reader, page), (keys) => keys.map(withLastUse)),
    listOf: (owner: Owner, page: ListPage) =>
      Effect.map(Repo.ofOwner(reader, owner, page), (keys) => keys.map(withLastUse)),
    find: ({ account, mode }: Owner, id: string) =>
      Effect.map(Repo.byId(reader, id), (key) =>
        key?.account === account && key.mode === mode ? withLastUse(key) : undefined
      ),
    revoke,
    roll,
    change,
    authenticate,
    isLive: Effect.fn("Keys.isLive")(function* ({ id, ips }: ApiKey) {
      const key = yield* Repo.byId(reader, id)
      if (key === undefined || isExpiredOrRevoked(key, yield* Clock.currentTimeMillis)) return false
      return key.ips.join() === ips.join()
    }),
    run: Effect.forever(Effect.delay(heartbeat(recordUses), useInterval))
  }
})

/**
 * API keys: create, list, roll, change, revoke, authenticate. The key itself is returned once, at its creation; the store
 * has only its SHA-256. Keys in use are cached, so that a request reads no database; every change is in force before it
 * returns. `respond` authenticates every request here; the operator's commands and the portal manage keys.
 */
export class Keys extends Context.Tag("tilld/Auth/Keys")<
  Keys,
  {
    readonly create: (key: NewKey) => Effect.Effect<MadeKey, UnknownAccount | KeyExists | StoreUnavailable>
    /** A page of all keys, expired and revoked ones too, oldest first. */
    readonly list: (page: ListPage) => Effect.Effect<ReadonlyArray<ApiKey>, StoreUnavailable>
    /** A page of an owner's keys, expired and revoked ones too, newest first. */
    readonly listOf: (owner: Owner, page: ListPage) => Effect.Effect<ReadonlyArray<ApiKey>, StoreUnavailable>
    /** A key of this owner. */
    readonly find: (owner: Owner, id: string) => Effect.Effect<ApiKey | undefined, StoreUnavailable>
    /** Once it returns, the key authenticates no request. Undefined: there is no such key. */
    readonly revoke: (id: string) => Effect.Effect<ApiKey | undefined, StoreUnavailable>
    /**
     * Makes a key like this one, with the id `to`; this one ends after `overlap`. The new one lasts as long as this one was
     * made for, and its rate limit windows are unused. Undefined: there is no such key.
     */
    readonly roll: (
      id: string,
      to: ApiKeyId,
      overlap: Duration.Duration
    ) => Effect.Effect<MadeKey | undefined, KeyEnded | StoreUnavailable>
    /** Changes where a key may be used from, and its limits. Undefined: there is no such key. */
    readonly change: (
      id: string,
      change: Partial<KeyTerms>
    ) => Effect.Effect<ApiKey | undefined, KeyEnded | StoreUnavailable>
    /**
     * The key for the text of a header; undefined when it is unknown, expired or revoked. `from` gives the client's address,
     * and is called only for a key that has a list of them.
     */
    readonly authenticate: (
      presented: string,
      from: () => string
    ) => Effect.Effect<ApiKey | undefined, WrongAddress | StoreUnavailable>
    /**
     * Whether a key is still neither expired nor revoked, and may be used from the same addresses: for streams, which
     * outlast their authentication.
     */
    readonly isLive: (key: ApiKey) => Effect.Effect<boolean, StoreUnavailable>
    /** Worker: stores once a minute when keys were last used. The end of the layer stores it too. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.scoped(Keys, makeKeys)
}
