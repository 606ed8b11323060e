/**
 * Which of several nodes works. The lease is one row, by the clock of the database: its holder renews it each second, and
 * another node may take it once it is over, or once the session that renewed it has ended. To take it raises its epoch.
 * Every transaction that writes asks for the epoch in itself (see transactions.ts), so that a node which was stopped or cut
 * off for a while can store nothing any more, whatever it still believes. It gives itself up a second before the lease is
 * over, without waiting for PostgreSQL.
 */
import { Data, Duration, Effect, Either, Fiber, Option } from "effect"
import { waitAtMost } from "../../lib/waiting.ts"
import { type Db, oneValue, type StoreUnavailable } from "../Db.ts"
import { reopened, type StorePlace } from "./Connection.ts"
import { prepare, refuseNewer } from "./migrate.ts"
import { connectionOf } from "./nodes.ts"

/** Milliseconds of a clock that nobody sets. */
const monotonic = Effect.map(Effect.clock, (clock) => Number(clock.unsafeCurrentTimeNanos() / 1_000_000n))

const leaseMillis = 5_000
const renewal = "1 second"
/** How long before its end a lease that could not be renewed is given up. */
const margin = 1_000
/** A statement about the lease takes no longer, or its connection is given up. */
const lookMillis = 2_000

const session =
  "pid = pg_backend_pid(), began = (SELECT backend_start FROM pg_stat_activity AS own WHERE own.pid = pg_backend_pid())"
const end = `clock_timestamp() + interval '${leaseMillis} milliseconds'`
const isFree = `(until < clock_timestamp() OR NOT EXISTS
  (SELECT 1 FROM pg_stat_activity AS a WHERE a.pid = lease.pid AND a.backend_start = lease.began))`

/** The timeline of the server, which a promotion changes, and the number of the database, which a restored dump changes. */
export const presentHistory = `(SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || '/' || oid
  FROM pg_database WHERE datname = current_database())`

/**
 * Of the lease. A standby that is promoted may lack the last epochs, and gives their numbers again: an epoch is a node's own
 * only in the history that it was taken in.
 */
export const isOwn = `epoch = ? AND ${presentHistory} = ?`

const takeUntil = (time: string) =>
  `UPDATE lease SET epoch = epoch + 1, holder = ?, version = ?, until = ${time},
     taken = array_prepend(clock_timestamp(), taken[1:9]), ${session} WHERE ${isFree}
   RETURNING epoch, ${presentHistory} AS history`
const take = takeUntil(end)
/** For work that is no node's: its connection has the lease until that is closed, and nobody renews it. */
export const takeWhileOpen = takeUntil("'infinity'")
const renew = `UPDATE lease SET until = ${end}, ${session} WHERE ${isOwn} RETURNING epoch`
const release = `UPDATE lease SET until = '-infinity' WHERE ${isOwn}`

/** What a node has that works. */
export interface Lease {
  readonly epoch: number
  /** That of the server, when the lease was taken. */
  readonly history: string
  /** Fails when this node may not work any more. */
  readonly lost: Effect.Effect<never, LeaseLost>
}

/** The node that works; undefined while none does. */
export interface Holder {
  readonly node: string
  readonly version: string
}

export const selectHolder = `SELECT holder AS node, version FROM lease WHERE NOT ${isFree}`

/** Another node has the lease, or may have it: this one must store nothing more. */
export class LeaseLost extends Data.TaggedError("LeaseLost")<{ readonly message: string }> {}

/** What a node that waits sees. */
export interface NodeStanding {
  /** The node that works; undefined while none does. */
  readonly holder: Holder | undefined
  /** Why this node could not take over; undefined where it could. */
  readonly problem: string | undefined
}

const lost = (why: string) =>
  new LeaseLost({ message: `This node has given up the lease: ${why}. It ends, and a start makes it a standby` })

/**
 * Waits for the lease, and then renews it until the scope ends, which hands it over. A store that cannot be reached is waited
 * for; one that this version cannot use only while another node works.
 *
 * @param stand called with what a node that waits sees, whenever it has looked
 */
export const acquireLease = Effect.fn("Sql.acquireLease")(function* (
  place: StorePlace,
  own: Holder,
  stand: (standing: NodeStanding) => Effect.Effect<void>
) {
  const named = { ...place, client: { ...place.client, application_name: connectionOf(own) } }
  const { connect } = yield* reopened(named, { millis: lookMillis })
  const run = <A, E>(use: (db: Db) => Effect.Effect<A, E | StoreUnavailable>) =>
    Effect.flatMap(connect, (connection) => use(connection.db()))

  const held = run((db) => db.get<Holder>(selectHolder))

  let isPrepared = false
  /** The lease, once this node has it. */
  const attempt = Effect.gen(function* () {
    if (!isPrepared) yield* prepare(place)
    isPrepared = true
    const usable = yield* Effect.either(run((db) => refuseNewer(db, place)))
    const taken = Either.isLeft(usable)
      ? undefined
      : yield* run((db) => db.get<Omit<Lease, "lost">>(take, [own.node, own.version]))
    if (taken !== undefined) return taken
    const holder = yield* held
    if (holder === undefined && Either.isLeft(usable)) return yield* usable.left
    yield* stand({ holder, problem: Either.isLeft(usable) ? usable.left.message : undefined })
    return undefined
  })
  const waited = Effect.gen(function* () {
    while (true) {
      const asked = yield* monotonic
      const taken = yield* Effect.catchTag(attempt, "StoreUnavailable", ({ message }) =>
        Effect.as(stand({ holder: undefined, problem: message }), undefined)
      )
      if (taken !== undefined) return { ...taken, asked }
      yield* Effect.sleep(renewal)
    }
  })
  let isHeld = true
  const { asked, epoch, history } = yield* Effect.acquireRelease(Effect.interruptible(waited), ({ epoch, history }) =>
    isHeld ? Effect.ignore(run((db) => db.run(release, [epoch, history]))) : Effect.void
  )

  const keep = Effect.gen(function* () {
    let until = asked + leaseMillis - margin
    while (true) {
      yield* Effect.sleep(renewal)
      const renewing = yield* monotonic
      const asked = Effect.either(run((db) => oneValue<number>(db, renew, [epoch, history])))
      const renewed = yield* waitAtMost(asked, Duration.millis(Math.max(until - renewing, 0)))
      if (Option.isNone(renewed)) return yield* lost("PostgreSQL did not renew it in time")
      if (Either.isLeft(renewed.value)) continue
      if (renewed.value.right === undefined)
        return yield* lost("another node has taken it, or the server has another history")
      until = renewing + leaseMillis - margin
    }
  })
  const given = Effect.sync(() => {
    isHeld = false
  })
  const renewing = yield* Effect.forkScoped(Effect.tapError(keep, () => given))
  return { epoch, history, lost: Fiber.join(renewing) } satisfies Lease
})
