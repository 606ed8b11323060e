import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import { type ApiKey, permissions } from "../Domain/ApiKey.ts"
import type { ApiKeyId } from "../Domain/Ids.ts"
import { pluginPermissions } from "../Domain/Plugin.ts"
import { allOf, allRows, changes, countRows, type Db, execute, oneRow, type Param, Tx, when } from "../Sql.ts"
import { behind, type ListPage } from "./AccountsRepo.ts"

interface Row extends Omit<ApiKey, "granted" | "ips" | "permissions" | "pluginPermissions"> {
  readonly grantedPerMinute: number | undefined
  readonly grantedPerHour: number | undefined
  /** Comma-separated; undefined for none. */
  readonly ips: string | undefined
  /** Comma-separated. */
  readonly permissions: string
  /** Comma-separated; undefined for none. */
  readonly pluginPermissions: string | undefined
}

const columns = `id, account_id AS account, mode, name, last_four AS lastFour, permissions,
  plugin_permissions AS pluginPermissions, ips,
  per_minute AS grantedPerMinute, per_hour AS grantedPerHour,
  coalesce(lowered_per_minute, per_minute) AS perMinute, coalesce(lowered_per_hour, per_hour) AS perHour,
  created_at AS createdAt, expires_at AS expiresAt, revoked_at AS revokedAt, rolled_to AS rolledTo,
  last_used_at AS lastUsedAt`

/** Those of `known` that a column names, separated by commas. */
const namedOf = <A extends string>(known: ReadonlyArray<A>, stored: string | undefined): ReadonlyArray<A> =>
  (stored ?? "").split(",").filter((text): text is A => known.some((each) => each === text))

const toKey = ({ grantedPerHour, grantedPerMinute, ips, ...key }: Row): ApiKey => ({
  ...key,
  permissions: namedOf(permissions, key.permissions),
  pluginPermissions: namedOf(pluginPermissions, key.pluginPermissions),
  ips: ips?.split(",") ?? [],
  granted: { perMinute: grantedPerMinute, perHour: grantedPerHour }
})

const listText = (list: ReadonlyArray<string>) => (list.length === 0 ? null : list.join(","))

/** The four columns of a key's limits: what the operator gave it, and what an admin of its account set below that. */
const limitColumns = ({ granted, perHour, perMinute }: ApiKey) => [
  granted.perMinute ?? null,
  granted.perHour ?? null,
  perMinute === granted.perMinute ? null : (perMinute ?? null),
  perHour === granted.perHour ? null : (perHour ?? null)
]

/** Stores a key. False, and nothing stored, where there is one with its id. */
export const insert = (key: ApiKey, hash: Uint8Array) =>
  changes(
    `INSERT INTO api_keys (id, account_id, mode, name, hash, last_four, permissions, plugin_permissions, ips, per_minute,
       per_hour, lowered_per_minute, lowered_per_hour, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    [
      key.id,
      key.account,
      key.mode,
      key.name,
      hash,
      key.lastFour,
      key.permissions.join(","),
      listText(key.pluginPermissions),
      listText(key.ips),
      ...limitColumns(key),
      key.createdAt,
      key.expiresAt ?? null
    ]
  )

const select = (where: string) => `SELECT ${columns} FROM api_keys WHERE ${where}`

const one = (db: Db, where: string, params: ReadonlyArray<Param>) =>
  Effect.map(oneRow<Row>(db, select(where), params), (row) => row && toKey(row))

const all = (db: Db, where: string, params: ReadonlyArray<Param>) =>
  Effect.map(allRows<Row>(db, select(where), params), (rows) => rows.map(toKey))

export const byId = (db: Db, id: string) => one(db, "id = ?", [id])

export const byHash = (db: Db, hash: Uint8Array) => one(db, "hash = ?", [hash])

/** A page of all keys, oldest first. */
export const list = (db: Db, page: ListPage) => {
  const [isBehind, params] = behind("api_keys", page)
  return all(db, `${isBehind} ORDER BY created_at, id LIMIT ?`, [...params, page.limit])
}

/** A page of an owner's keys, newest first: `after` is the id of the last key of the page before. */
export const ofOwner = (db: Db, { account, mode }: Owner, { after, limit }: ListPage) => {
  const isOlder =
    "(created_at, id) < (SELECT created_at, id FROM api_keys WHERE id = ? AND account_id = ? AND mode = ?)"
  const { params, where } = allOf([
    ["account_id = ? AND mode = ?", account, mode],
    ...when(isOlder, after, account, mode)
  ])
  return all(db, `${where} ORDER BY created_at DESC, id DESC LIMIT ?`, [...params, limit])
}

/** Revokes a key. A second revocation does not change the time of the first. */
export const revoke = (id: ApiKeyId, at: number) =>
  execute("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", [at, id])

/** Stores the end of a key and its replacement. */
export const roll = ({ expiresAt, id, revokedAt, rolledTo }: ApiKey) =>
  execute("UPDATE api_keys SET rolled_to = ?, expires_at = ?, revoked_at = ? WHERE id = ?", [
    ...[rolledTo ?? null, expiresAt ?? null, revokedAt ?? null],
    id
  ])

/** Stores where a key may be used from, and its limits. */
export const change = (key: ApiKey) =>
  execute(
    `UPDATE api_keys SET ips = ?, per_minute = ?, per_hour = ?, lowered_per_minute = ?, lowered_per_hour = ? WHERE id = ?`,
    [listText(key.ips), ...limitColumns(key), key.id]
  )

/** How many keys of an owner work at `now`, Unix milliseconds: rolled ones, or those that are not. */
export const countWorking = (db: Db, { account, mode }: Owner, isRolled: boolean, now: number) =>
  countRows(
    db,
    `SELECT 1 FROM api_keys WHERE account_id = ? AND mode = ? AND rolled_to IS ${isRolled ? "NOT NULL" : "NULL"}
     AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`,
    [account, mode, now]
  )

export const recordUse = Effect.fn("KeysRepo.recordUse")(function* (uses: ReadonlyMap<ApiKeyId, number>) {
  const tx = yield* Tx
  yield* Effect.forEach(uses, ([id, at]) => tx.run("UPDATE api_keys SET last_used_at = ? WHERE id = ?", [at, id]), {
    concurrency: 1,
    discard: true
  })
})
