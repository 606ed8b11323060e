import { Effect } from "effect"
import { type ApiKey, type Permission, permissions } from "../Domain/ApiKey.ts"
import type { Mode } from "../Domain/Chain.ts"
import { AccountId, ApiKeyId } from "../Domain/Ids.ts"
import type { Owner } from "../Domain/Owner.ts"
import { type Db, Tx } from "../Sql.ts"
import { behind, type ListPage } from "./listPage.ts"

interface Row {
  readonly id: string
  readonly account_id: string
  readonly mode: Mode
  readonly name: string
  readonly last_four: string
  /** Comma-separated. */
  readonly permissions: string
  /** Comma-separated; null for none. */
  readonly ips: string | null
  readonly per_minute: number | null
  readonly per_hour: number | null
  readonly lowered_per_minute: number | null
  readonly lowered_per_hour: number | null
  readonly created_at: number
  readonly expires_at: number | null
  readonly revoked_at: number | null
  readonly rolled_to: string | null
  readonly last_used_at: number | null
}

const columns = `id, account_id, mode, name, last_four, permissions, ips, per_minute, per_hour,
  lowered_per_minute, lowered_per_hour, created_at, expires_at, revoked_at, rolled_to, last_used_at`

const toKey = (row: Row): ApiKey => ({
  id: ApiKeyId.make(row.id, true),
  account: AccountId.make(row.account_id, true),
  mode: row.mode,
  name: row.name,
  lastFour: row.last_four,
  permissions: row.permissions
    .split(",")
    .filter((text): text is Permission => permissions.some((each) => each === text)),
  ips: row.ips?.split(",") ?? [],
  granted: { perMinute: row.per_minute ?? undefined, perHour: row.per_hour ?? undefined },
  perMinute: row.lowered_per_minute ?? row.per_minute ?? undefined,
  perHour: row.lowered_per_hour ?? row.per_hour ?? undefined,
  createdAt: row.created_at,
  expiresAt: row.expires_at ?? undefined,
  revokedAt: row.revoked_at ?? undefined,
  rolledTo: row.rolled_to === null ? undefined : ApiKeyId.make(row.rolled_to, true),
  lastUsedAt: row.last_used_at ?? undefined
})

const ipsText = (ips: ApiKey["ips"]) => (ips.length === 0 ? null : ips.join(","))

const orUndefined = (row: Row | undefined) => (row === undefined ? undefined : toKey(row))

/** The four columns of a key's limits: what the operator gave it, and what an admin of its account set below that. */
const limitColumns = ({ granted, perHour, perMinute }: ApiKey) => [
  granted.perMinute ?? null,
  granted.perHour ?? null,
  perMinute === granted.perMinute ? null : (perMinute ?? null),
  perHour === granted.perHour ? null : (perHour ?? null)
]

/** Stores a key. False, and nothing stored, where there is one with its id. */
export const insert = Effect.fn("KeysRepo.insert")(function* (key: ApiKey, hash: Uint8Array) {
  const tx = yield* Tx
  const stored = yield* tx.get(
    `INSERT INTO api_keys (id, account_id, mode, name, hash, last_four, permissions, ips, per_minute, per_hour,
       lowered_per_minute, lowered_per_hour, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING id`,
    [
      key.id,
      key.account,
      key.mode,
      key.name,
      hash,
      key.lastFour,
      key.permissions.join(","),
      ipsText(key.ips),
      ...limitColumns(key),
      key.createdAt,
      key.expiresAt ?? null
    ]
  )
  return stored !== undefined
})

export const byId = (db: Db, id: string) =>
  Effect.map(db.get<Row>(`SELECT ${columns} FROM api_keys WHERE id = ?`, [id]), orUndefined)

export const byHash = (db: Db, hash: Uint8Array) =>
  Effect.map(db.get<Row>(`SELECT ${columns} FROM api_keys WHERE hash = ?`, [hash]), orUndefined)

/** A page of all keys, oldest first. */
export const list = (db: Db, page: ListPage) => {
  const [isBehind, params] = behind("api_keys", page)
  const sql = `SELECT ${columns} FROM api_keys WHERE ${isBehind} ORDER BY created_at, id LIMIT ?`
  return Effect.map(db.all<Row>(sql, [...params, page.limit]), (rows) => rows.map(toKey))
}

/** A page of an owner's keys, newest first: `after` is the id of the last key of the page before. */
export const ofOwner = (db: Db, { account, mode }: Owner, { after, limit }: ListPage) => {
  const older =
    after === undefined
      ? "1"
      : "(created_at, id) < (SELECT created_at, id FROM api_keys WHERE id = ? AND account_id = ? AND mode = ?)"
  const sql = `SELECT ${columns} FROM api_keys WHERE account_id = ? AND mode = ? AND ${older}
    ORDER BY created_at DESC, id DESC LIMIT ?`
  const place = after === undefined ? [] : [after, account, mode]
  return Effect.map(db.all<Row>(sql, [account, mode, ...place, limit]), (rows) => rows.map(toKey))
}

/** Revokes a key. A second revocation does not change the time of the first. */
export const revoke = Effect.fn("KeysRepo.revoke")(function* (id: ApiKeyId, at: number) {
  const tx = yield* Tx
  yield* tx.run("UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", [at, id])
})

/** Stores the end of a key and its replacement. */
export const roll = Effect.fn("KeysRepo.roll")(function* ({ expiresAt, id, revokedAt, rolledTo }: ApiKey) {
  const tx = yield* Tx
  yield* tx.run("UPDATE api_keys SET rolled_to = ?, expires_at = ?, revoked_at = ? WHERE id = ?", [
    rolledTo ?? null,
    expiresAt ?? null,
    revokedAt ?? null,
    id
  ])
})

/** Stores where a key may be used from, and its limits. */
export const change = Effect.fn("KeysRepo.change")(function* (key: ApiKey) {
  const tx = yield* Tx
  yield* tx.run(
    `UPDATE api_keys SET ips = ?, per_minute = ?, per_hour = ?, lowered_per_minute = ?, lowered_per_hour = ? WHERE id = ?`,
    [ipsText(key.ips), ...limitColumns(key), key.id]
  )
})

/** How many keys of an owner work at `now`, Unix milliseconds: rolled ones, or those that are not. */
export const countWorking = (db: Db, { account, mode }: Owner, isRolled: boolean, now: number) =>
  Effect.map(
    db.get<{ count: number }>(
      `SELECT count(*) AS count FROM api_keys WHERE account_id = ? AND mode = ? AND (rolled_to IS NOT NULL) = ?
         AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`,
      [account, mode, isRolled ? 1 : 0, now]
    ),
    (row) => row?.count ?? 0
  )

export const recordUse = Effect.fn("KeysRepo.recordUse")(function* (uses: ReadonlyMap<ApiKeyId, number>) {
  const tx = yield* Tx
  yield* Effect.forEach(uses, ([id, at]) => tx.run("UPDATE api_keys SET last_used_at = ? WHERE id = ?", [at, id]), {
    concurrency: 1,
    discard: true
  })
})
