/** What PostgreSQL must be for tilld, and which node works. */
import { Effect } from "effect"
import type { SettingsShape, SettingsSource } from "../Settings.ts"
import { newestSchema } from "../Sql/schema.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"

const name = "database"
const oldest = 16

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
  const { encoding, holder, schema, synchronous, version } = look.right
  const findings: ReadonlyArray<Finding> = [
    version >= oldest
      ? ok(name, `PostgreSQL ${version}`)
      : fail(name, `PostgreSQL ${version} is too old`, `upgrade it to ${oldest} or later`),
    ...(encoding === "UTF8"
      ? []
      : [fail(name, `its encoding is ${encoding}: texts would be lost`, "make a database with ENCODING 'UTF8'")]),
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
