import { Effect } from "effect"
import type { Owner } from "../../Domain/Account.ts"
import type { Mode } from "../../Domain/Chain.ts"
import type { AccountId, EndpointId } from "../../Domain/Ids.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import { eventLoopTurn } from "../../lib/waiting.ts"
import { allRows, allValues, type Db, execute, oneRow, oneValue, type Param, Tx } from "../../Sql.ts"
import { countLimit, countWaiting, waiting } from "./LanesRepo.ts"

/** JSON where the endpoint has values. */
interface EndpointRow extends Omit<Endpoint, "events" | "plugin"> {
  readonly events: string
  readonly plugin: string | undefined
}

const columns =
  "id, account_id AS account, mode, url, events, plugin, created_at AS createdAt, previous_until AS formerSecretUntil"

const select = (db: Db, where: string, params: ReadonlyArray<Param>) =>
  Effect.map(
    allRows<EndpointRow>(db, `SELECT ${columns} FROM endpoints WHERE deleted_at IS NULL AND ${where}`, params),
    (rows) =>
      rows.map(
        (row): Endpoint => ({ ...row, events: JSON.parse(row.events), plugin: row.plugin && JSON.parse(row.plugin) })
      )
  )

/** A signing secret and, during a rotation, the one before it, which also signs until then (Unix milliseconds). Sealed. */
export interface SealedPair {
  readonly secret: Uint8Array
  readonly previous_secret: Uint8Array | null
  readonly previous_until: number | null
}

/** Whether it is a shop plugin's, or the own API's; anything where that is not asked. */
const isOf = ({ plugin }: Endpoint, plugins: boolean | undefined) =>
  plugins === undefined || plugins === (plugin !== undefined)

/** The endpoints of an owner that are not deleted, oldest first: those of shop plugins, of the own API, or both. */
export const list = (db: Db, { account, mode }: Owner, plugins?: boolean) =>
  Effect.map(select(db, "account_id = ? AND mode = ? ORDER BY rowid", [account, mode]), (endpoints) =>
    endpoints.filter((endpoint) => isOf(endpoint, plugins))
  )

/** An endpoint of any owner, unless it is deleted. */
export const byId = (db: Db, id: string) => Effect.map(select(db, "id = ?", [id]), ([endpoint]) => endpoint)

/** The owner of an endpoint, deleted or not. */
export const ownerOf = (db: Db, id: string) =>
  Effect.map(
    db.get<{ id: EndpointId; account: AccountId; mode: Mode; plugins: 0 | 1 }>(
      "SELECT id, account_id AS account, mode, plugin IS NOT NULL AS plugins FROM endpoints WHERE id = ?",
      [id]
    ),
    (row) => row && { endpoint: row.id, plugins: row.plugins === 1, owner: { account: row.account, mode: row.mode } }
  )

export const insert = (endpoint: Endpoint, sealedSecret: Uint8Array) =>
  execute(
    "INSERT INTO endpoints (id, account_id, mode, url, events, plugin, secret, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [
      endpoint.id,
      endpoint.account,
      endpoint.mode,
      endpoint.url,
      JSON.stringify(endpoint.events),
      pluginText(endpoint),
      sealedSecret,
      endpoint.createdAt
    ]
  )

/** An endpoint of this owner, unless it is deleted: as `list` has them. */
export const find = (db: Db, { account, mode }: Owner, id: string, plugins?: boolean) =>
  Effect.map(byId(db, id), (endpoint) =>
    endpoint?.account === account && endpoint.mode === mode && isOf(endpoint, plugins) ? endpoint : undefined
  )

const pluginText = ({ plugin }: Endpoint) => (plugin === undefined ? null : JSON.stringify(plugin))

export const replaceTarget = (endpoint: Endpoint) =>
  execute("UPDATE endpoints SET url = ?, events = ?, plugin = ? WHERE id = ?", [
    endpoint.url,
    JSON.stringify(endpoint.events),
    pluginText(endpoint),
    endpoint.id
  ])

/** Marks an endpoint as deleted; undefined when the owner has none of that id. */
export const markDeleted = (owner: Owner, id: string, plugins: boolean, at: number) =>
  Effect.flatMap(Tx, (tx) =>
    oneValue<EndpointId>(
      tx,
      `UPDATE endpoints SET deleted_at = ? WHERE id = ? AND account_id = ? AND mode = ? AND deleted_at IS NULL
         AND plugin IS ${plugins ? "NOT NULL" : "NULL"} RETURNING id`,
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

const selectHalfDeleted = `SELECT id FROM endpoints AS e WHERE (deleted_at IS NOT NULL OR CAST(plugin ->> 'enabled' AS BIGINT) = 0) AND (
  EXISTS (SELECT 1 FROM deliveries WHERE target = e.id AND next_attempt_at IS NOT NULL)
  OR EXISTS (SELECT 1 FROM deliveries WHERE endpoint_id = e.id AND after_sequence IS NOT NULL))`

/** Deleted or disabled endpoints whose queue is not empty because tilld stopped while it emptied the queue. */
export const halfDeleted = (db: Db) => allValues<EndpointId>(db, selectHalfDeleted)

/** The same of one endpoint, a deleted one of this owner. */
export const halfDeletedOf = (db: Db, { account, mode }: Owner, id: string) =>
  oneValue<EndpointId>(
    db,
    `${selectHalfDeleted} AND deleted_at IS NOT NULL AND id = ? AND account_id = ? AND mode = ?`,
    [id, account, mode]
  )

// The health of an owner's endpoints, for people. Only reads, by index. Newer is by the order of events: by their
// times, a success while the clock was ahead would hide all failures after it was set back, for as long.

export interface EndpointHealth {
  /** When the newest event that has arrived did so, Unix milliseconds; undefined before the first. */
  readonly deliveredAt: number | undefined
  /** Deliveries of which an attempt has failed and none has succeeded; at most `countLimit` are counted. */
  readonly failing: number
  /** Deliveries that have an attempt ahead, or wait for an earlier event's; at most `countLimit` are counted. */
  readonly waiting: number
}

/** Maximum number of endpoints in one look-up. */
export const mostEndpoints = 1_000

/** An event on its way to an endpoint. `at` is in Unix milliseconds, by a clock that may have been wrong. */
interface EventOutcome {
  /** Of all events on their way, in the order in which they happened. */
  readonly sequence: number
  readonly at: number
}

/** The outcomes of an endpoint's newest events. */
export interface EndpointOutcome {
  readonly endpoint: EndpointId
  readonly mode: Mode
  /** The newest event that has arrived, and when it did; undefined before the first. */
  readonly delivered: EventOutcome | undefined
  /** The first event after that of which an attempt has failed, and when it happened; undefined where there is none. */
  readonly failing: EventOutcome | undefined
}

/** The outcomes of all accounts' endpoints, `mostEndpoints` at most. Requests are served between two endpoints. */
export const outcomesOf = (db: Db) =>
  Effect.flatMap(
    db.all<Pick<EndpointOutcome, "endpoint" | "mode">>(
      "SELECT id AS endpoint, mode FROM endpoints WHERE deleted_at IS NULL LIMIT ?",
      [mostEndpoints]
    ),
    Effect.forEach(
      Effect.fnUntraced(function* ({ endpoint, mode }) {
        yield* eventLoopTurn
        const delivered = yield* db.get<EventOutcome>(
          `SELECT sequence, coalesce(done_at, created_at) AS at FROM deliveries INDEXED BY deliveries_arrived
           WHERE endpoint_id = ? AND status = 'delivered' ORDER BY sequence DESC LIMIT 1`,
          [endpoint]
        )
        const failing = yield* db.get<EventOutcome>(
          `SELECT sequence, created_at AS at FROM deliveries INDEXED BY deliveries_not_arrived
           WHERE endpoint_id = ? AND status IN ('pending', 'failed') AND attempts + redeliveries > 0 AND sequence > ?
           ORDER BY sequence LIMIT 1`,
          [endpoint, delivered?.sequence ?? 0]
        )
        const outcome: EndpointOutcome = { endpoint, mode, delivered, failing }
        return outcome
      }),
      { concurrency: 1 }
    )
  )

export const healthOf = (db: Db, endpoint: EndpointId) =>
  Effect.zipWith(
    oneRow<Omit<EndpointHealth, "waiting">>(
      db,
      `SELECT
         (SELECT coalesce(done_at, created_at) FROM deliveries INDEXED BY deliveries_arrived
          WHERE endpoint_id = ? AND status = 'delivered' ORDER BY sequence DESC LIMIT 1) AS deliveredAt,
         (SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY deliveries_not_arrived
          WHERE endpoint_id = ? AND status IN ('pending', 'failed') AND attempts + redeliveries > 0
          LIMIT ${countLimit})) AS failing`,
      [endpoint, endpoint]
    ),
    waiting(db, endpoint),
    (row, ahead): EndpointHealth => ({ ...(row ?? { deliveredAt: undefined, failing: 0 }), waiting: ahead })
  )

/**
 * How many deliveries deleting the endpoint would cancel: those that have not arrived and have an attempt ahead, except what
 * is also owed to a payment's own webhookUrl. At most `countLimit` are counted.
 */
export const wouldCancel = (db: Db, endpoint: EndpointId) => {
  const lost = "own_url = 0 AND status IN ('pending', 'failed')"
  return countWaiting(db, `target = ? AND ${lost}`, `endpoint_id = ? AND ${lost}`, [endpoint, endpoint])
}
