import { stripVTControlCharacters } from "node:util"
import { CliConfig, Command, ValidationError } from "@effect/cli"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { type Console, Effect, Layer } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { commandNames, tilld } from "../commands.ts"
import { closest } from "../lib/suggestion.ts"
import { withUnswept } from "./addresses.ts"
import { withDashLast } from "./backup.ts"
import { complain } from "./Output.ts"
import { givenWords, withLongOutput } from "./options.ts"

/** The names of the commands, and of those in each group. */
export interface CommandNames {
  readonly all: ReadonlyArray<string>
  readonly in: Readonly<Record<string, ReadonlyArray<string>>>
}

/** The commands that the words of a command line name, and the names of those that could follow. */
const placeOf = ([first = "", ...rest]: ReadonlyArray<string>, names: CommandNames) => {
  if (!names.all.includes(first)) return { path: [], follow: names.all, next: first }
  const follow = names.in[first] ?? []
  const next = rest.find((word) => !word.startsWith("-"))
  return next !== undefined && follow.includes(next)
    ? { path: [first, next], follow: [], next: undefined }
    : { path: [first], follow, next }
}

/** The help page for a wrong command line. */
const helpFor = (words: ReadonlyArray<string>, names: CommandNames): string =>
  ["tilld", ...placeOf(words, names).path, "--help"].join(" ")

const noCommand = (words: ReadonlyArray<string>, names: CommandNames): string => {
  const { follow, next, path } = placeOf(words, names)
  const group = ["tilld", ...path].join(" ")
  if (!next) return `${group} needs one of the commands ${follow.join(", ")}`
  const meant = closest(next, follow)
  return `${group} has no command ${next}${meant === undefined ? "." : `: did you mean ${meant}?`} It has ${follow.join(", ")}`
}

const wordings: ReadonlyArray<readonly [RegExp, string]> = [
  [/^Received unknown argument: '(.*)'$/, "$1 is not known here"],
  [/^'(.*)' is not an? integer$/, "$1 is not a whole number"],
  [/^Expected one of the following cases: (.*)$/, "One of these is expected: $1"],
  [/^Expected to find option: '(.*)'$/, "$1 is missing"],
  [/^Expected a value following option: '(.*)'$/, "$1 needs a value"],
  [/^Missing argument (<.*>)$/, "$1 is missing"]
]

/** What @effect/cli prints of a wrong command line, line by line. Any other text stays as it is. */
const formatProblem = (text: string, words: ReadonlyArray<string>, names: CommandNames): string =>
  text
    .split("\n")
    .map((line) => {
      const plain = stripVTControlCharacters(line)
      if (plain.startsWith("Invalid subcommand for ")) return noCommand(words, names)
      const [pattern, wording] = wordings.find(([known]) => known.test(plain)) ?? []
      return pattern === undefined || wording === undefined ? line : plain.replace(pattern, wording)
    })
    .join("\n")

/** Columns that a help page takes at most. */
const width = 100
/** Where the descriptions of a list of commands begin: behind the longest name, `payments exceptions`. */
const descriptionColumn = 23

/** What @effect/cli says of an option's type and default by itself. The usage line and the option's description say it. */
const filler =
  /^\s*(A user-defined piece of text|A true or false value|An integer|One of the following: .*|This setting is optional|This option may be repeated .*)\.?$/

const banner = /^tilld\s+tilld \d/

/** The words of a text in lines of at most `room` characters; a longer word has a line of its own. */
const wrap = (text: string, room: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(" ")) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= room) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

const indented = (lines: ReadonlyArray<string>, by: number) => lines.map((line) => " ".repeat(by) + line)

/**
 * A usage line with the whole command, of which @effect/cli prints the last word only. An option and its value stay on
 * one line.
 */
const usage = (line: string, words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const name = line.split(" ")[1] ?? ""
  const command = ["tilld", ...words.slice(0, words.indexOf(name) + 1)].join(" ")
  const whole = line
    .replace(`$ ${name}`, command)
    .replaceAll(" | ", "|")
    .replace(/(--[a-z-]+ \S+)\.\.\./g, "[$1]...")
    .replace(/ (?![[<-])/g, "\u00a0")
  const [first = "", ...more] = wrap(whole, width - 4).map((part) => part.replaceAll("\u00a0", " "))
  return [`  ${first}`, ...indented(more, 4)]
}

/** A command of a list by its name; its usage is on its own page. */
const commandRow = (name: string, description: string): ReadonlyArray<string> => {
  const [first = "", ...more] = wrap(description, width - descriptionColumn)
  return [`  ${name}`.padEnd(descriptionColumn) + first, ...indented(more, descriptionColumn)]
}

const completion = /^(?:function _tilld_bash_completions|#compdef tilld|complete -c tilld)/

/** A script for a shell without the options of @effect/cli that no help page has. */
const ownCompletion = (script: string): string =>
  script
    .split("\n")
    .filter((line) => !/'--(?:wizard|log-level)\[| -l (?:wizard|log-level) /.test(line))
    .join("\n")
    .replaceAll(/ --(?:wizard|log-level)(?=[ "])/g, "")
    // The script for bash of @effect/cli 0.77 looks for `tilld,keys,roll` where it has got to `tilld__keys` and `roll`.
    .replaceAll(/^( +tilld),(\w+,)/gm, "$1__$2")

/**
 * A help page as @effect/cli prints it, in lines of at most 100 columns and without its filler. Any other text stays as it
 * is. The formatter of @effect/cli 0.77 has no width: it puts a list of commands into columns as wide as the longest usage.
 *
 * @param words the words of the command line, such as `["keys", "create", "--help"]`
 */
export const formatHelp = (text: string, words: ReadonlyArray<string> = []): string => {
  if (completion.test(text)) return ownCompletion(text)
  if (!banner.test(stripVTControlCharacters(text))) return text
  const lines = text.split("\n").filter((line) => {
    const plain = stripVTControlCharacters(line).trim()
    return plain !== "" && !filler.test(plain)
  })
  const [, version = "", ...body] = lines
  return [version, ...body.flatMap((line) => formatLine(line, words))].join("\n")
}

/** The name of a command by its usage. A group that is a command too has its own options before the second word. */
const nameOf = (usage: string): string =>
  usage
    .replace(/\[[^\]]*\]/g, "")
    .replace(/ [<-].*/, "")
    .replace(/ +/g, " ")
    .trim()

const formatLine = (line: string, words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const plain = stripVTControlCharacters(line)
  if (/^[A-Z]+$/.test(plain)) return ["", line]
  if (/^ *--/.test(plain)) return [`  ${line.replaceAll(" | ", "|")}`]
  if (plain.startsWith("$ ")) return usage(plain, words)
  const [, command, description] = /^ {2}- (.*?) {2,}(\S.*)$/.exec(plain) ?? []
  if (command !== undefined && description !== undefined) return commandRow(nameOf(command), description)
  if (plain.length + 2 <= width) return [`  ${line}`]
  const indent = plain.search(/\S/) + 2
  return indented(wrap(plain.trim(), width - indent), indent)
}

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
  ).pipe(Effect.locally(givenWords, words))
  // @effect/cli has printed its own errors already.
  const explained = Effect.catchIf(Effect.as(run, 0), ValidationError.isValidationError, () =>
    Effect.as(complain(`See ${helpFor(words, commandNames)}`), 2)
  )
  return Effect.flatMap(Effect.console, (console) => Effect.withConsole(explained, forTerminals(console, words))).pipe(
    Effect.provide(Layer.mergeAll(NodeContext.layer, CliConfig.layer({ showBuiltIns: false })))
  )
}
