/** How a command ends, whichever process runs it: its errors are explained, and become exit codes. */
import { Cause, Chunk, type Console, Effect, Layer, Logger, LogLevel, Option } from "effect"
import { claimedUser, Invocation } from "../Control/Invocation.ts"
import { isDamage } from "../Sql/Db.ts"
import { nativeProblem } from "../Sql/nativeParts.ts"
import { type LogSink, StandardError } from "../Telemetry/LogSink.ts"
import { commandJournalLogger, commandLogger, withPriority } from "../Telemetry/logging.ts"
import { complain } from "./Output.ts"

/**
 * Errors with exit 2: nothing mends itself, the operator must change the command line, the configuration, or what else runs
 * on the machine. systemd does not start the daemon again after it.
 */
const usage = new Set([
  "UsageError",
  "SettingsInvalid",
  "MasterKeyUnusable",
  "WrongMasterKey",
  "InstanceLocked",
  "StoreUnusable",
  "ControlUnusable",
  "DaemonAbsent",
  "Forbidden",
  "ChainDropped",
  "WalletInBothModes",
  "ListenFailed",
  "PortInUse",
  "AnvilMissing",
  "PathRefused",
  "AgeUnusable"
])

/** Whether SQLite found the database damaged while the daemon or a command worked on it. */
const isOfDamage = (cause: Cause.Cause<unknown>): boolean => Chunk.some(Cause.defects(cause), isDamage)

const damaged =
  "the database is damaged: stop tilld, keep a copy of its files, and restore the last backup; tilld doctor says what it finds"

/** Prints why a command failed, for the journal or for people, and gives the exit code. */
const explain = (
  cause: Cause.Cause<{ readonly _tag: string; readonly message: string }>,
  isForJournal: boolean
): Effect.Effect<number> => {
  const complainOfError = (text: string) => complain(isForJournal ? withPriority(LogLevel.Error, text) : text)
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  if (error === undefined) {
    const text = Cause.pretty(cause)
    const unmended = isOfDamage(cause) ? damaged : nativeProblem(text)
    return Effect.as(complainOfError(`tilld: ${unmended ?? text}`), unmended === undefined ? 1 : 2)
  }
  return Effect.as(complainOfError(`tilld: ${error.message}`), usage.has(error._tag) ? 2 : 1)
}

interface Surroundings {
  readonly env: Invocation["Type"]["env"]
  readonly console: Console.UnsafeConsole
  /** Of the log. */
  readonly standardError: LogSink
  readonly isForJournal: boolean
}

/** Runs a command to its exit code. */
export const runCommand = <E extends { readonly _tag: string; readonly message: string }>(
  command: Effect.Effect<number, E, Invocation>,
  { console: unsafe, env, isForJournal, standardError }: Surroundings
): Effect.Effect<number> =>
  Effect.catchAllCause(command, (cause) => explain(cause, isForJournal)).pipe(
    (run) =>
      Effect.consoleWith((console) =>
        Effect.withConsole(run, {
          ...console,
          unsafe,
          log: (...args) => Effect.sync(() => unsafe.log(...args)),
          error: (...args) => Effect.sync(() => unsafe.error(...args))
        })
      ),
    Effect.provide(
      Layer.mergeAll(
        Layer.succeed(StandardError, standardError),
        Layer.succeed(Invocation, { env, user: claimedUser(env) }),
        Logger.replace(Logger.defaultLogger, isForJournal ? commandJournalLogger : commandLogger)
      )
    )
  )
