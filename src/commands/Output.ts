import { Effect } from "effect"

// Control characters but line breaks and tabs, and what turns the direction of text around: names, references, URLs and
// answers from outside could rewrite what a terminal shows.
const unsafe = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu

const escaped = (found: string): string => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`

/** A text as a terminal may show it. In JSON it stays the same text. */
export const shown = (text: string): string => text.replace(unsafe, escaped)

/** Writes to standard output: a result, and nothing else. */
export const print = (text: string): Effect.Effect<void> => Effect.sync(() => console.log(shown(text)))

/** Writes to standard error. */
export const complain = (text: string): Effect.Effect<void> => Effect.sync(() => console.error(shown(text)))

/** A cell is one line. */
const cellOf = (text: string): string => shown(text).replace(/[\t\n]/g, escaped)

/** Rows under their headings, in columns of equal width. */
export const table = (headings: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const lines = [headings, ...rows.map((row) => row.map(cellOf))]
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}
