import { Effect } from "effect"
import { escaped, shown } from "../lib/text.ts"

/** Writes a result to standard output, which has results only. */
export const print = (text: string): Effect.Effect<void> =>
  Effect.consoleWith(({ unsafe }) => Effect.sync(() => unsafe.log(shown(text))))

/** Writes a message for people, progress or an error, to standard error. */
export const complain = (text: string): Effect.Effect<void> =>
  Effect.consoleWith(({ unsafe }) => Effect.sync(() => unsafe.error(shown(text))))

/** A cell of a table, which has one line. */
const cellOf = (text: string): string => shown(text).replace(/[\t\n]/g, escaped)

/** Rows under their headings, each column as wide as its widest cell. */
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
