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

const commandLine = (pid: number): Effect.Effect<string, never, CommandExecutor.CommandExecutor> =>
  Command.make("ps", "-o", "args=", "-p", String(pid)).pipe(
    Command.string,
    // Without `ps` nothing can be said of the process, so it is left alone; its port will be reported as in use.
    Effect.orElseSucceed(() => "")
  )

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}

const waitUntilGone = (pid: number) =>
  Effect.sync(() => isGone(pid)).pipe(
    Effect.repeat({ schedule: Schedule.spaced("20 millis"), until: (gone) => gone }),
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
