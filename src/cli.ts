import { writeSync } from "node:fs"
import { stripVTControlCharacters } from "node:util"
import { CliConfig, Command, ValidationError } from "@effect/cli"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Chunk, type Console, Effect, Exit, Layer, Logger, LogLevel, Option } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { claimedUser, Invocation } from "./Control/Invocation.ts"
import { withDashLast } from "./commands/backup.ts"
import { formatHelp } from "./commands/help.ts"
import { complain } from "./commands/Output.ts"
import { formatProblem, helpFor } from "./commands/usage.ts"
import { commandNames, tilld } from "./commands.ts"
import { isDamage } from "./Sql/Db.ts"
import { nativeProblem } from "./Sql/nativeParts.ts"
import { isJournal, withPriority } from "./Telemetry/journal.ts"
import { consoleOn, LogSink, StandardError } from "./Telemetry/LogSink.ts"
import { commandJournalLogger, commandLogger } from "./Telemetry/logging.ts"

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
  "Forbidden",
  "ChainDropped",
  "WalletInBothModes",
  "ExtraCaUnusable",
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

const journal = isJournal(process.env)

const complainOfError = (text: string) => complain(journal ? withPriority(LogLevel.Error, text) : text)

/** Prints why a command failed, and gives the exit code. */
const explain = (
  cause: Cause.Cause<{ readonly _tag: string; readonly message: string } | ValidationError.ValidationError>
): Effect.Effect<number> => {
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  if (error === undefined) {
    const text = Cause.pretty(cause)
    const unmended = isOfDamage(cause) ? damaged : nativeProblem(text)
    return Effect.as(complainOfError(`tilld: ${unmended ?? text}`), unmended === undefined ? 1 : 2)
  }
  // @effect/cli has printed its own errors already.
  if (ValidationError.isValidationError(error)) {
    return Effect.as(complain(`See ${helpFor(process.argv.slice(2), commandNames)}`), 2)
  }
  return Effect.as(complainOfError(`tilld: ${error.message}`), usage.has(error._tag) ? 2 : 1)
}

const standardError = new LogSink((bytes) => writeSync(2, bytes))

// A reader such as `head` that has read enough ends no command. Whatever else loses a result makes the command fail.
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") return
  process.exitCode = 1
  standardError.write(Buffer.from(`tilld: standard output: ${message}\n`))
})

// @effect/cli colours its help and its errors on every output. Colours are for terminals.
const forTerminals = (console: Console.Console): Console.Console => {
  const unsafe = consoleOn(standardError)
  const words = process.argv.slice(2)
  const plain = (args: ReadonlyArray<unknown>) => args.map((arg) => stripVTControlCharacters(String(arg)))
  const help = (args: ReadonlyArray<unknown>) => args.map((arg) => formatHelp(String(arg), words))
  const problem = (args: ReadonlyArray<unknown>) => args.map((arg) => formatProblem(String(arg), words, commandNames))
  return {
    ...console,
    unsafe,
    log: (...args) => Effect.sync(() => unsafe.log(...(process.stdout.isTTY ? help(args) : plain(help(args))))),
    error: (...args) =>
      Effect.sync(() => unsafe.error(...(process.stderr.isTTY ? problem(args) : plain(problem(args)))))
  }
}

const program = Command.run(tilld, { name: "tilld", version: packageJson.version })(withDashLast(process.argv)).pipe(
  Effect.as(0),
  Effect.catchAllCause(explain),
  (run) => Effect.flatMap(Effect.console, (console) => Effect.withConsole(run, forTerminals(console))),
  Effect.provide(
    Layer.mergeAll(
      NodeContext.layer,
      CliConfig.layer({ showBuiltIns: false }),
      // The only place that reads the environment.
      Layer.succeed(StandardError, standardError),
      Layer.succeed(Invocation, { env: process.env, user: claimedUser(process.env) }),
      Logger.replace(Logger.defaultLogger, journal ? commandJournalLogger : commandLogger)
    )
  )
)

NodeRuntime.runMain(program, {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  teardown: (exit, done) => {
    const code = Exit.match(exit, {
      onSuccess: (code) => (typeof code === "number" ? code : 0),
      // SIGINT and SIGTERM interrupt, which is a success where `untilStopped` has said so.
      onFailure: (cause) => (Cause.isInterruptedOnly(cause) ? Number(process.exitCode ?? 1) : 1)
    })
    standardError.drain(() => done(code))
  }
})
