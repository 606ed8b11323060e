import { stripVTControlCharacters } from "node:util"
import { CliConfig, Command, ValidationError } from "@effect/cli"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, type Console, Effect, Exit, Layer, Logger, Option } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { claimedUser, Invocation } from "./Control/Invocation.ts"
import { formatHelp } from "./commands/help.ts"
import { complain } from "./commands/Output.ts"
import { formatProblem, helpFor } from "./commands/usage.ts"
import { commandNames, tilld } from "./commands.ts"
import { commandLogger } from "./Telemetry/logging.ts"

/** Errors with exit 2: the operator must change the command line, the configuration, or what else runs on the machine. */
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
  "AnvilMissing"
])

// How better-sqlite3 says that npm ran no install script, or ran it under another Node.
const noBinding = /bindings file|NODE_MODULE_VERSION|ERR_DLOPEN_FAILED/

const defectText = (cause: Cause.Cause<unknown>): string => {
  const text = Cause.pretty(cause)
  return noBinding.test(text)
    ? `the native part of better-sqlite3 is missing or of another Node than ${process.version}: npm rebuild better-sqlite3`
    : text
}

/** Prints why a command failed, and gives the exit code. */
const explain = (
  cause: Cause.Cause<{ readonly _tag: string; readonly message: string } | ValidationError.ValidationError>
): Effect.Effect<number> => {
  const error = Option.getOrUndefined(Cause.failureOption(cause))
  if (error === undefined) return Effect.as(complain(`tilld: ${defectText(cause)}`), 1)
  // @effect/cli has printed its own errors already.
  if (ValidationError.isValidationError(error)) {
    return Effect.as(complain(`See ${helpFor(process.argv.slice(2), commandNames)}`), 2)
  }
  return Effect.as(complain(`tilld: ${error.message}`), usage.has(error._tag) ? 2 : 1)
}

// @effect/cli colours its help and its errors on every output. Colours are for terminals.
const forTerminals = (console: Console.Console): Console.Console => {
  const words = process.argv.slice(2)
  const plain = (args: ReadonlyArray<unknown>) => args.map((arg) => stripVTControlCharacters(String(arg)))
  const help = (args: ReadonlyArray<unknown>) => args.map((arg) => formatHelp(String(arg), words))
  const problem = (args: ReadonlyArray<unknown>) => args.map((arg) => formatProblem(String(arg), words, commandNames))
  return {
    ...console,
    log: (...args) => console.log(...(process.stdout.isTTY ? help(args) : plain(help(args)))),
    error: (...args) => console.error(...(process.stderr.isTTY ? problem(args) : plain(problem(args))))
  }
}

const program = Command.run(tilld, { name: "tilld", version: packageJson.version })(process.argv).pipe(
  Effect.as(0),
  Effect.catchAllCause(explain),
  (run) => Effect.flatMap(Effect.console, (console) => Effect.withConsole(run, forTerminals(console))),
  Effect.provide(
    Layer.mergeAll(
      NodeContext.layer,
      CliConfig.layer({ showBuiltIns: false }),
      // The only place that reads the environment.
      Layer.succeed(Invocation, { env: process.env, user: claimedUser(process.env) }),
      Logger.replace(Logger.defaultLogger, commandLogger)
    )
  )
)

NodeRuntime.runMain(program, {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  teardown: (exit, done) =>
    done(
      Exit.match(exit, {
        onSuccess: (code) => (typeof code === "number" ? code : 0),
        // SIGINT and SIGTERM interrupt, which is a success where `untilStopped` has said so.
        onFailure: (cause) => (Cause.isInterruptedOnly(cause) ? Number(process.exitCode ?? 1) : 1)
      })
    )
})
