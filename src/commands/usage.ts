/** What is wrong with a command line, in the words of its help: @effect/cli has words of its own, and knows no groups. */
import { stripVTControlCharacters } from "node:util"
import { closest } from "../lib/suggestion.ts"

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
export const helpFor = (words: ReadonlyArray<string>, names: CommandNames): string =>
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
export const formatProblem = (text: string, words: ReadonlyArray<string>, names: CommandNames): string =>
  text
    .split("\n")
    .map((line) => {
      const plain = stripVTControlCharacters(line)
      if (plain.startsWith("Invalid subcommand for ")) return noCommand(words, names)
      const [pattern, wording] = wordings.find(([known]) => known.test(plain)) ?? []
      return pattern === undefined || wording === undefined ? line : plain.replace(pattern, wording)
    })
    .join("\n")
