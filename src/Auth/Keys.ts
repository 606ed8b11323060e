import { Clock, Context, Data, Duration, Effect, Either, Layer, Redacted } from "effect"
import { KeyEnded, KeyExists, LimitRefused, type Owner, TooMany, UnknownAccount } from "../Domain/Account.ts"
import { type ApiKey, type KeyLimits, type KeyTerms, mostKeys, type Permission } from "../Domain/ApiKey.ts"
import type { Mode } from "../Domain/Chain.ts"
import { type AccountId, type ApiKeyId, newApiKeyId } from "../Domain/Ids.ts"
import type { PluginPermission } from "../Domain/Plugin.ts"
import { inRanges } from "../lib/IpRange.ts"
import { Settings } from "../Settings.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import type { ListPage } from "./AccountsRepo.ts"
import * as AccountsRepo from "./AccountsRepo.ts"
import * as Repo from "./KeysRepo.ts"
import { hashOf, hasKeyForm, isKey, newKey } from "./keyFormat.ts"
import type { RateLimit } from "./rateLimitWindows.ts"
import { keepWithin } from "./UsageRepo.ts"

export interface NewKey extends Partial<KeyTerms> {
  /** Default: a new random id. Given, it makes a request that is sent twice fail the second time. */
  readonly id?: ApiKeyId
  readonly account: AccountId
  readonly mode: Mode
  readonly name: string
  readonly permissions: ReadonlyArray<Permission>
  /** Of a shop plugin's key, whose `permissions` are none. */
  readonly pluginPermissions?: ReadonlyArray<PluginPermission>
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

/**
 * The limits of a key after a change. Without `configured` the operator sets them, to any value; an admin of the
 * account may only set lower ones than the key was given or, where it was given none, than are configured.
 */
const limitsAfter = (
  before: Pick<ApiKey, "granted" | "perMinute" | "perHour">,
  change: Partial<KeyLimits>,
  configured: RateLimit | undefined
) =>
  Effect.gen(function* () {
    if (configured === undefined) {
      const granted = { ...before.granted, ...change }
      const { perHour = granted.perHour, perMinute = granted.perMinute } = change
      return {
        granted,
        perMinute: "perMinute" in change ? perMinute : before.perMinute,
        perHour: "perHour" in change ? perHour : before.perHour
      }
    }
    for (const limit of ["perMinute", "perHour"] as const) {
      const most = before.granted[limit] ?? configured[limit]
      if ((change[limit] ?? 0) <= most) continue
      return yield* new LimitRefused({ limit, rule: `must be ${most} at most: only the operator raises it` })
    }
    const limitOf = (limit: keyof KeyLimits) =>
      limit in change ? (change[limit] ?? before.granted[limit]) : before[limit]
    return { granted: before.granted, perMinute: limitOf("perMinute"), perHour: limitOf("perHour") }
  })

/**
 * Fails where an owner has more working keys than it may, or, with `isRolled`, more rolled ones, and where its account has used
 * up its quota: keys are never deleted. Runs after the change.
 */
const keepBelow = Effect.fnUntraced(function* (
  { account, mode }: Owner,
  isRolled: boolean,
  now: number,
  quotaBytes: number
) {
  yield* keepWithin({ account, mode }, quotaBytes)
  const working = yield* Repo.countWorking(yield* Tx, { account, mode }, isRolled, now)
  if (working <= mostKeys) return
  return yield* isRolled ? TooMany.rolledKeys(mostKeys, mode) : TooMany.keys(mostKeys, mode)
})

const insert = Effect.fn("Keys.insert")(function* (
  {
    account,
    expiresIn,
    id,
    ips,
    mode,
    name,
    permissions,
    pluginPermissions,
    ...limits
  }: Required<Omit<NewKey, "perMinute" | "perHour">> & Pick<ApiKey, "granted" | "perMinute" | "perHour">,
  key: Redacted.Redacted<string>,
  now: number
) {
  const stored: ApiKey = {
    ...{ id, account, mode, name, permissions, pluginPermissions, ips },
    ...limits,
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

const noLimits = { granted: { perMinute: undefined, perHour: undefined }, perMinute: undefined, perHour: undefined }

const create = Effect.fn("Keys.create")(function* (
  request: NewKey,
  key: Redacted.Redacted<string>,
  configured: RateLimit | undefined,
  quotaBytes: number
) {
  const exists = yield* AccountsRepo.exists(yield* Tx, request.account)
  if (!exists) return yield* UnknownAccount.of(request.account)
  const now = yield* Clock.currentTimeMillis
  const { id = newApiKeyId(), ips = [], perHour, perMinute, pluginPermissions = [] } = request
  const limits = yield* limitsAfter(noLimits, { perMinute, perHour }, configured)
  const stored = yield* insert({ ...request, id, ips, pluginPermissions, ...limits }, key, now)
  // After the insertion, so that a form that was sent twice gets that error.
  yield* keepBelow(request, false, now, quotaBytes)
  return stored
})

/** Whether a key has ended at `now`, Unix milliseconds. */
export const isExpiredOrRevoked = (key: ApiKey, now: number): boolean =>
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
  // Setting the clock back does not revive it.
  revokedAt: Duration.equals(overlap, Duration.zero) ? now : undefined
})

/** A key in memory. */
interface Known {
  readonly key: ApiKey
  /** Whether an address is on the key's list. */
  readonly isListed: (address: string) => boolean
}

const makeKeys = Effect.gen(function* () {
  const { quotaBytes } = (yield* Settings).accounts
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

  const use = (
    { isListed, key }: Known,
    cacheKey: string,
    from: () => string
  ): Either.Either<ApiKey | undefined, WrongAddress> => {
    const now = clock.unsafeCurrentTimeMillis()
    if (isExpiredOrRevoked(key, now)) {
      live.delete(cacheKey)
      return Either.right(undefined)
    }
    if (key.ips.length > 0) {
      const address = from()
      if (!isListed(address)) return Either.left(new WrongAddress({ key: key.id, address }))
    }
    uses.set(key.id, now)
    return Either.right(key)
  }

  /**
   * The key for the text of a header; undefined when it is unknown, expired or revoked. `from` gives the client's address,
   * and is called only for a key that has a list of them. It is an `Either`, unless the store has to be asked.
   */
  const authenticate = (
    presented: string,
    from: () => string
  ): Effect.Effect<ApiKey | undefined, WrongAddress | StoreUnavailable> => {
    if (!hasKeyForm(presented)) return Either.right(undefined)
    const hash = hashOf(presented)
    const cacheKey = hash.toString("latin1")
    const known = live.get(cacheKey)
    if (known !== undefined) return use(known, cacheKey, from)
    if (!isKey(presented)) return Either.right(undefined)
    return Effect.flatMap(find(hash, cacheKey), (found) =>
      found === undefined ? Either.right(undefined) : use(found, cacheKey, from)
    )
  }

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

  /** Once it returns, the key authenticates no request. Undefined: there is no such key. */
  const revoke = Effect.fn("Keys.revoke")((id: string) =>
    changing(id, (key, now) => Effect.as(Repo.revoke(key.id, now), { ...key, revokedAt: key.revokedAt ?? now }))
  )

  /**
   * Changes where a key may be used from, and its limits. `configured` is given where an admin of the account does it, who
   * may lower a limit that the operator gave, and no more. Undefined: there is no such key.
   */
  const change = Effect.fn("Keys.change")((id: string, given: Partial<KeyTerms>, configured?: RateLimit) =>
    changing(
      id,
      Effect.fnUntraced(function* (key, now) {
        const ended = endOf(key, now)
        if (ended !== undefined) return yield* ended
        const { ips = key.ips, ...limits } = given
        const changed: ApiKey = { ...key, ips, ...(yield* limitsAfter(key, limits, configured)) }
        yield* Repo.change(changed)
        return changed
      })
    )
  )

  /**
   * Makes a key like this one, with the id `to`; this one ends after `overlap`. The new one lasts as long as this one was
   * made for, and its rate limit windows are unused. Undefined: there is no such key.
   */
  const roll = Effect.fn("Keys.roll")((id: string, to: ApiKeyId, overlap: Duration.Duration) =>
    changing(
      id,
      Effect.fnUntraced(function* (former, now) {
        if (former.rolledTo !== undefined) return yield* KeyEnded.rolled(former.id, former.rolledTo)
        const ended = endOf(former, now)
        if (ended !== undefined) return yield* ended
        const key = newKey(former.mode)
        const expiresIn =
          former.expiresAt === undefined ? undefined : Duration.millis(former.expiresAt - former.createdAt)
        const record = yield* insert({ ...former, id: to, expiresIn }, key, now)
        yield* Repo.roll(rolledAt(former, to, overlap, now))
        yield* keepBelow(former, true, now, quotaBytes)
        return { key, record } satisfies MadeKey
      })
    )
  )

  const withLastUse = (key: ApiKey): ApiKey => ({ ...key, lastUsedAt: uses.get(key.id) ?? key.lastUsedAt })

  yield* Effect.addFinalizer(() => recordUses)

  return {
    /** `configured` is given where an admin of the account makes it: its limits must be lower than these. */
    create: Effect.fnUntraced(function* (request: NewKey, configured?: RateLimit) {
      const key = newKey(request.mode)
      const made: MadeKey = { key, record: yield* writer.write(create(request, key, configured, quotaBytes)) }
      return made
    }),
    exists: (id: string) => Effect.map(Repo.byId(reader, id), (key) => key !== undefined),
    /** A page of all keys, expired and revoked ones too, oldest first. */
    list: (page: ListPage) => Effect.map(Repo.list(reader, page), (keys) => keys.map(withLastUse)),
    /** A page of an owner's keys, expired and revoked ones too, newest first. */
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
    /** Whether a key still works, from the same addresses: for streams, which outlast their authentication. */
    isLive: Effect.fn("Keys.isLive")(function* ({ id, ips }: ApiKey) {
      const key = yield* Repo.byId(reader, id)
      if (key === undefined || isExpiredOrRevoked(key, yield* Clock.currentTimeMillis)) return false
      return key.ips.join() === ips.join()
    }),
    /** Worker: stores once a minute when keys were last used. The end of the layer stores it too. */
    run: Effect.forever(Effect.delay(heartbeat(recordUses), useInterval))
  }
})

/**
 * API keys: create, list, roll, change, revoke, authenticate. The key itself is returned once, at its creation; the store
 * has only its SHA-256. Keys in use are cached, so that a request reads no database; every change is in force before it
 * returns. `respond` authenticates every request here; the operator's commands and the portal manage keys.
 */
export class Keys extends Context.Tag("tilld/Auth/Keys")<Keys, Effect.Effect.Success<typeof makeKeys>>() {
  static readonly layer = Layer.scoped(Keys, makeKeys)
}
