/**
 * The store in PostgreSQL, for the node that has the lease. This room is read in only where the configuration names one. The
 * SQL of the repositories is the same as of a file, see postgres/dialect.ts.
 */
import { Effect } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import type { SettingsShape, SettingsSource } from "../../Settings.ts"
import { serverStore } from "./layer.ts"
import { acquireLease, type NodeStanding } from "./lease.ts"
import { migrateServer } from "./migrate.ts"
import { placeOf } from "./place.ts"

/**
 * Waits until this node may work, and migrates the store. `lost` fails when it no longer may; the end of the scope hands over
 * to another node.
 *
 * @param stand called with what a node that waits sees
 */
export const takeTurn = Effect.fn("Sql.takeTurn")(function* (
  postgres: NonNullable<SettingsShape["postgres"]>,
  node: string,
  env: SettingsSource["env"],
  stand: (standing: NodeStanding) => Effect.Effect<void>
) {
  const place = yield* placeOf(postgres, env)
  const lease = yield* acquireLease(place, { node, version: packageJson.version }, stand)
  yield* migrateServer(place)
  return { store: serverStore(place, lease, postgres.pool), lost: lease.lost }
})
