import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { Command, type CommandExecutor } from "@effect/platform"
import { Effect, Option, Schedule, Schema } from "effect"

/** A process that a sandbox started. */
const Started = Schema.Struct({ pid: Schema.Int, port: Schema.Int })
type Started = typeof Started.Type

const decode = Schema.decodeUnknownOption(Schema.parseJson(Schema.Array(Started)))

/** Writes down what runs, so that the next sandbox can end it should this one be killed. */
export const remember = (file: string, started: ReadonlyArray<Started>): Effect.Effect<void> =>
  Effect.sync(() => writeFileSync(file, JSON.stringify(started)))

export const forget = (file: string): Effect.Effect<void> => Effect.sync(() => rmSync(file, { force: true }))

/** Of a process; empty when there is none, or nothing can be said of it: its port will be reported as in use then. */
const commandLine = (pid: number): Effect.Effect<string, never, CommandExecutor.CommandExecutor> =>
  // Linux tells without `ps`, which small images lack.
  Effect.try(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")).pipe(
    Effect.orElse(() => Command.string(Command.make("ps", "-o", "args=", "-p", String(pid)))),
    Effect.orElseSucceed(() => "")
  )

// A killed process that nobody has waited for keeps its number, and loses its command line.
const waitUntilGone = (pid: number) =>
  commandLine(pid).pipe(
    Effect.repeat({ schedule: Schedule.spaced("20 millis"), until: (command) => command.trim() === "" }),
    Effect.timeout("5 seconds"),
    Effect.ignore
  )

/**
 * Ends the local chains of a sandbox that was killed before it could: those of `file` that still are what they were.
 * Gives their process ids.
 */
export const endLeftovers = Effect.fn("Sandbox.endLeftovers")(function* (file: string) {
  if (!existsSync(file)) return []
  const ended: Array<number> = []
  for (const { pid, port } of Option.getOrElse(decode(readFileSync(file, "utf8")), () => [])) {
    const command = yield* commandLine(pid)
    // The number may have gone to another process since.
    if (!command.includes("anvil") || !command.includes(`--port ${port} `)) continue
    process.kill(pid, "SIGKILL")
    yield* waitUntilGone(pid)
    ended.push(pid)
  }
  yield* forget(file)
  return ended
})
