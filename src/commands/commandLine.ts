import { stripVTControlCharacters } from "node:util"
import { CliConfig, Command, ValidationError } from "@effect/cli"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { type Console, Effect, Layer } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { commandNames, tilld } from "../commands.ts"
import { withUnswept } from "./addresses.ts"
import { withDashLast } from "./backup.ts"
import { formatHelp } from "./help.ts"
import { complain } from "./Output.ts"
import { withLongOutput } from "./outputOptions.ts"
import { formatProblem, helpFor } from "./usage.ts"

/** @effect/cli colours its help and its errors on every output. Colours are for terminals. */
const forTerminals = (console: Console.Console, words: ReadonlyArray<string>): Console.Console => {
  const { unsafe } = console
  const plain = (args: ReadonlyArray<unknown>) => args.map((arg) => stripVTControlCharacters(String(arg)))
  const help = (args: ReadonlyArray<unknown>) => args.map((arg) => formatHelp(String(arg), words))
  const problem = (args: ReadonlyArray<unknown>) => args.map((arg) => formatProblem(String(arg), words, commandNames))
  return {
    ...console,
    log: (...args) => Effect.sync(() => unsafe.log(...(process.stdout.isTTY ? help(args) : plain(help(args))))),
    error: (...args) =>
      Effect.sync(() => unsafe.error(...(process.stderr.isTTY ? problem(args) : plain(problem(args)))))
  }
}

/**
 * Runs the command that `argv` has. Gives the exit code: 2 of a command line that cannot be read, which it explains; a command
 * that fails, fails with its own error.
 */
export const commandLine = (argv: ReadonlyArray<string>) => {
  const words = argv.slice(2)
  // A way of @effect/cli to ask for each option, which would wait for ever where there is no terminal.
  if (words.includes("--wizard")) {
    return Effect.as(complain(`tilld: --wizard is not known here\nSee ${helpFor(words, commandNames)}`), 2)
  }
  const run = Command.run(tilld, { name: "tilld", version: packageJson.version })(
    withUnswept(withLongOutput(withDashLast(argv)))
  )
  // @effect/cli has printed its own errors already.
  const explained = Effect.catchIf(Effect.as(run, 0), ValidationError.isValidationError, () =>
    Effect.as(complain(`See ${helpFor(words, commandNames)}`), 2)
  )
  return Effect.flatMap(Effect.console, (console) => Effect.withConsole(explained, forTerminals(console, words))).pipe(
    Effect.provide(Layer.mergeAll(NodeContext.layer, CliConfig.layer({ showBuiltIns: false })))
  )
}
