import { writeSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Chunk, type Console, Effect, Exit, Layer, Logger, LogLevel, Option } from "effect"
import { claimedUser, Invocation } from "./Control/Invocation.ts"
import { complain } from "./commands/Output.ts"
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
const explain = (cause: Cause.Cause<{ readonly _tag: string; readonly message: string }>): Effect.Effect<number> => {
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  if (error === undefined) {
    const text = Cause.pretty(cause)
    const unmended = isOfDamage(cause) ? damaged : nativeProblem(text)
    return Effect.as(complainOfError(`tilld: ${unmended ?? text}`), unmended === undefined ? 1 : 2)
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

/** The options of `tilld serve`, where the words are these and nothing else. */
const serveOptions = ([command, ...words]: ReadonlyArray<string>) => {
  if (command !== "serve") return undefined
  let config: string | undefined
  let newDatabase = false
  for (const [i, word] of words.entries()) {
    if (word === "--new-database") newDatabase = true
    else if (word.startsWith("--config=")) config = word.slice("--config=".length)
    else if (words[i - 1] === "--config") config = word
    else if (word !== "--config" || words[i + 1] === undefined || words[i + 1]?.startsWith("-")) return undefined
  }
  return { config, newDatabase }
}

// The daemon starts without the parser of the command line, which would take a third of its start. Whatever is not just its
// options, help and mistakes too, is for the parser.
const options = serveOptions(process.argv.slice(2))
const command =
  options === undefined
    ? (await import("./commands/commandLine.ts")).commandLine(process.argv)
    : Effect.as((await import("./commands/serving.ts")).serve(options.config, options.newDatabase), 0)

/** Node's own console fails where the reader of standard error has ended. */
const onStandardError = (console: Console.Console): Console.Console => {
  const unsafe = consoleOn(standardError)
  return {
    ...console,
    unsafe,
    log: (...args) => Effect.sync(() => unsafe.log(...args)),
    error: (...args) => Effect.sync(() => unsafe.error(...args))
  }
}

const program = Effect.catchAllCause(command, explain).pipe(
  (run) => Effect.flatMap(Effect.console, (console) => Effect.withConsole(run, onStandardError(console))),
  Effect.provide(
    Layer.mergeAll(
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
    if (Exit.isInterrupted(exit) && code !== 0) standardError.write(Buffer.from("tilld: interrupted before its end\n"))
    standardError.drain(() => done(code))
  }
})
