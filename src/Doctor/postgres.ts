/** What PostgreSQL must be for tilld, and which node works. */
import { Effect } from "effect"
import type { SettingsShape, SettingsSource } from "../Settings.ts"
import { newestSchema } from "../Sql/schema.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"

const name = "database"
const oldest = 16
/** Milliseconds that two clocks may differ by: time services keep them closer. */
const apart = 2_000

/** Looks at the PostgreSQL of the configuration, whether or not a node works with it. */
export const examinePostgres = Effect.fn("Doctor.examinePostgres")(function* (
  postgres: NonNullable<SettingsShape["postgres"]>,
  env: SettingsSource["env"]
) {
  const { lookAt } = yield* Effect.promise(() => import("../Sql/postgres/look.ts"))
  const look = yield* Effect.either(lookAt(postgres, env))
  if (look._tag === "Left") {
    return [fail(name, look.left.message)]
  }
  const { ahead, encoding, holder, isSynchronous, mayMake, replicas, schema, synchronous, version } = look.right
  const findings: ReadonlyArray<Finding> = [
    version >= oldest
      ? ok(name, `PostgreSQL ${version}`)
      : fail(name, `PostgreSQL ${version} is too old`, `upgrade it to ${oldest} or later`),
    ...(encoding === "UTF8"
      ? []
      : [fail(name, `its encoding is ${encoding}: texts would be lost`, "make a database with ENCODING 'UTF8'")]),
    ...(mayMake
      ? []
      : [
          fail(
            name,
            `this user may make no tables in the schema ${postgres.schema}`,
            "let it own the database, or the schema"
          )
        ]),
    ...(Math.abs(ahead) < apart
      ? []
      : [
          warn(
            name,
            `its clock differs from this machine's by ${Math.round(ahead / 1000)} seconds`,
            "let chrony set both"
          )
        ]),
    ok(
      "replication",
      replicas === 0
        ? "no standby of PostgreSQL is seen; a provider may have one of its own"
        : `standbys of PostgreSQL: ${replicas}, ${isSynchronous ? "synchronous" : "not synchronous: what was just acknowledged is lost with the primary"}`
    ),
    ...(synchronous === "off"
      ? [fail(name, "synchronous_commit is off: a crash loses what was acknowledged", "set it to on, or remote_apply")]
      : []),
    schema > newestSchema
      ? fail("schema", `a newer tilld wrote it: ${schema}; this version knows ${newestSchema}`, "install that version")
      : ok(
          "schema",
          schema === newestSchema ? `${schema}, the newest` : `${schema}: the next start brings it to ${newestSchema}`
        ),
    holder === undefined
      ? warn("nodes", "none works", "start one: systemctl start tilld")
      : ok("nodes", `${holder.node} works, with tilld ${holder.version}`)
  ]
  return findings
})
