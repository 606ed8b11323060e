import { Options } from "@effect/cli"

/** Replaces files that exist. */
export const force = Options.boolean("force").pipe(Options.withDescription("Replace the output file if it exists"))

/** Where a result goes. */
export const outputOption = (about: string) =>
  Options.text("output").pipe(Options.withPseudoName("FILE"), Options.withDescription(`${about}; -o for short`))

/** @effect/cli writes an option with a short name in a form of its own in help, which no other option has. */
export const withLongOutput = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words[2] === "sweep" ? words.map((word) => (word === "-o" ? "--output" : word)) : words
