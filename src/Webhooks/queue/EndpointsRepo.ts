import { Effect } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import type { Mode } from "../../Domain/Chain.ts"
import type { AccountId, EndpointId } from "../../Domain/Ids.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import { allRows, allValues, type Db, execute, oneValue, type Param, Tx } from "../../Sql.ts"

interface EndpointRow extends Omit<Endpoint, "events"> {
  /** As JSON. */
  readonly events: string
}

const columns =
  "id, account_id AS account, mode, url, events, created_at AS createdAt, previous_until AS formerSecretUntil"

const select = (db: Db, where: string, params: ReadonlyArray<Param>) =>
  Effect.map(
    allRows<EndpointRow>(db, `SELECT ${columns} FROM endpoints WHERE deleted_at IS NULL AND ${where}`, params),
    (rows) => rows.map((row): Endpoint => ({ ...row, events: JSON.parse(row.events) }))
  )

/** A signing secret and, during a rotation, the one before it, which also signs until then (Unix milliseconds). Sealed. */
export interface SealedPair {
  readonly secret: Uint8Array
  readonly previous_secret: Uint8Array | null
  readonly previous_until: number | null
}

/** The endpoints of an owner that are not deleted, oldest first. */
export const list = (db: Db, { account, mode }: Owner) =>
  select(db, "account_id = ? AND mode = ? ORDER BY rowid", [account, mode])

/** An endpoint of any owner, unless it is deleted. */
export const byId = (db: Db, id: string) => Effect.map(select(db, "id = ?", [id]), ([endpoint]) => endpoint)

/** The owner and URL of an endpoint, deleted or not. */
export const ownerOf = (db: Db, id: string) =>
  Effect.map(
    db.get<{ id: EndpointId; account: AccountId; mode: Mode; url: string }>(
      "SELECT id, account_id AS account, mode, url FROM endpoints WHERE id = ?",
      [id]
    ),
    (row) => row && { endpoint: row.id, owner: { account: row.account, mode: row.mode }, url: row.url }
  )

export const insert = (endpoint: Endpoint, sealedSecret: Uint8Array) =>
  execute(
    "INSERT INTO endpoints (id, account_id, mode, url, events, secret, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
    [
      endpoint.id,
      endpoint.account,
      endpoint.mode,
      endpoint.url,
      JSON.stringify(endpoint.events),
      sealedSecret,
      endpoint.createdAt
    ]
  )

/** An endpoint of this owner, unless it is deleted. */
export const find = (db: Db, { account, mode }: Owner, id: string) =>
  Effect.map(byId(db, id), (endpoint) =>
    endpoint?.account === account && endpoint.mode === mode ? endpoint : undefined
  )

export const replaceTarget = ({ events, id, url }: Endpoint) =>
  execute("UPDATE endpoints SET url = ?, events = ? WHERE id = ?", [url, JSON.stringify(events), id])

/** Marks an endpoint as deleted; undefined when the owner has none of that id. */
export const markDeleted = (owner: Owner, id: string, at: number) =>
  Effect.flatMap(Tx, (tx) =>
    oneValue<EndpointId>(
      tx,
      `UPDATE endpoints SET deleted_at = ? WHERE id = ? AND account_id = ? AND mode = ? AND deleted_at IS NULL
       RETURNING id`,
      [at, id, owner.account, owner.mode]
    )
  )

/** The sealed secrets of an endpoint, deleted or not: an attempt under way during the deletion still needs them. */
export const sealedPair = (db: Db, id: EndpointId) =>
  db.get<SealedPair>("SELECT secret, previous_secret, previous_until FROM endpoints WHERE id = ?", [id])

export const replaceSecrets = (id: EndpointId, { previous_secret, previous_until, secret }: SealedPair) =>
  execute("UPDATE endpoints SET secret = ?, previous_secret = ?, previous_until = ? WHERE id = ?", [
    secret,
    previous_secret,
    previous_until,
    id
  ])

const selectHalfDeleted = `SELECT id FROM endpoints AS e WHERE deleted_at IS NOT NULL AND (
  EXISTS (SELECT 1 FROM deliveries WHERE target = e.id AND next_attempt_at IS NOT NULL)
  OR EXISTS (SELECT 1 FROM deliveries WHERE endpoint_id = e.id AND after_sequence IS NOT NULL))`

/** Deleted endpoints whose queue is not empty because tilld stopped while it emptied the queue. */
export const halfDeleted = (db: Db) => allValues<EndpointId>(db, selectHalfDeleted)

/** The same, of one endpoint of this owner. */
export const halfDeletedOf = (db: Db, { account, mode }: Owner, id: string) =>
  oneValue<EndpointId>(db, `${selectHalfDeleted} AND id = ? AND account_id = ? AND mode = ?`, [id, account, mode])
