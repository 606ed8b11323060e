/**
 * What the node that works sees of the others, and of PostgreSQL's own standbys. A node that waits stores nothing: the
 * connection with which it looks at the lease each second has its name.
 */
import { Effect } from "effect"
import { type Db, oneValue } from "../Db.ts"
import type { Holder } from "./lease.ts"

/** PostgreSQL cuts longer names of connections. */
const longestName = 63
/** The name of the connection with which a node looks at the lease. */
export const connectionOf = ({ node, version }: Holder): string => `tilld ${version} ${node}`.slice(0, longestName)

const others = `SELECT DISTINCT application_name AS name FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE 'tilld % %' AND application_name <> ?
    AND state_change > clock_timestamp() - interval '10 seconds' ORDER BY name`
const takeovers = "SELECT count(*) FROM unnest((SELECT taken FROM lease)) AS at WHERE at > now() - interval '1 hour'"
/** Without the right to read it (pg_monitor) how far they are is null. */
export const selectReplicas = `SELECT application_name AS name, pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn) AS behind
  FROM pg_stat_replication WHERE state = 'streaming' OR state IS NULL`

export interface Replica {
  readonly name: string
  /** Bytes of the log that it has not on disk; null where this user may not know. */
  readonly behind: number | null
}

export interface Nodes {
  /** Those that wait, with their versions. */
  readonly standbys: ReadonlyArray<Holder>
  /** How often a node has taken the lease within the last hour. */
  readonly takeovers: number
  readonly replicas: ReadonlyArray<Replica>
}

export const lookAtNodes = (db: Db, own: Holder) =>
  Effect.gen(function* () {
    const names = yield* db.all<{ readonly name: string }>(others, [connectionOf(own)])
    const standbys = names.map(({ name }): Holder => {
      const [, version = "", node = ""] = name.split(" ")
      return { node, version }
    })
    const found: Nodes = {
      standbys,
      takeovers: (yield* oneValue<number>(db, takeovers)) ?? 0,
      replicas: yield* db.all<Replica>(selectReplicas)
    }
    return found
  })
