import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { Command, type CommandExecutor } from "@effect/platform"
import { Effect, Option, Schedule, Schema } from "effect"

/** A process that a sandbox started. */
const Started = Schema.Struct({ pid: Schema.Int, port: Schema.Int })
type Started = typeof Started.Type

const decode = Schema.decodeUnknownOption(Schema.parseJson(Schema.Array(Started)))

/** Writes the running processes to a file, so that the next sandbox can end them if this one is killed. */
export const remember = (file: string, started: ReadonlyArray<Started>): Effect.Effect<void> =>
  Effect.sync(() => writeFileSync(file, JSON.stringify(started)))

/** Deletes the file of running processes. */
export const forget = (file: string): Effect.Effect<void> => Effect.sync(() => rmSync(file, { force: true }))

/** The command line of a process; empty where there is none or it cannot be read: its port is reported as in use then. */
const commandLine = (pid: number): Effect.Effect<string, never, CommandExecutor.CommandExecutor> =>
  // Linux has it in /proc: small images lack `ps`.
  Effect.try(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")).pipe(
    Effect.orElse(() => Command.string(Command.make("ps", "-o", "args=", "-p", String(pid)))),
    Effect.orElseSucceed(() => "")
  )

// A zombie, a killed process that its parent has not waited for, keeps its pid and loses its command line.
const waitUntilGone = (pid: number) =>
  commandLine(pid).pipe(
    Effect.repeat({ schedule: Schedule.spaced("20 millis"), until: (command) => command.trim() === "" }),
    Effect.timeout("5 seconds"),
    Effect.ignore
  )

/**
 * Ends the local chains that a killed sandbox left running: the processes of `file` that are still those chains. Gives
 * their process ids.
 */
export const endLeftovers = Effect.fn("Sandbox.endLeftovers")(function* (file: string) {
  if (!existsSync(file)) return []
  const ended: Array<number> = []
  for (const { pid, port } of Option.getOrElse(decode(readFileSync(file, "utf8")), () => [])) {
    const command = yield* commandLine(pid)
    // Another process may have the pid by now.
    if (!command.includes("anvil") || !command.includes(`--port ${port} `)) continue
    process.kill(pid, "SIGKILL")
    yield* waitUntilGone(pid)
    ended.push(pid)
  }
  yield* forget(file)
  return ended
})
