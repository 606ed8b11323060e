import { spawnSync } from "node:child_process"
import { Effect, Exit, Scope } from "effect"
import { makeTemplate, postgresServer } from "./postgres.ts"

/** With `TEST_ENGINE=postgres` the stores of tests are in a PostgreSQL of their own. */
export const setup = async () => {
  // Root does not run PostgreSQL. Suites that start one make its user, two of them perhaps at once: here is one only.
  if (process.getuid?.() === 0) spawnSync("useradd", ["--system", "--user-group", "postgres"])
  const { env } = process
  if (env["TEST_ENGINE"] !== "postgres") return undefined
  const scope = Effect.runSync(Scope.make())
  const port = await Effect.runPromise(Scope.extend(postgresServer(), scope))
  await Effect.runPromise(makeTemplate(port))
  env["TEST_POSTGRES"] = `${port}`
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}
