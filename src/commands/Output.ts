import { Effect } from "effect"

/** Writes to standard output: a result, and nothing else. */
export const print = (text: string): Effect.Effect<void> => Effect.sync(() => console.log(text))

/** Writes to standard error. */
export const complain = (text: string): Effect.Effect<void> => Effect.sync(() => console.error(text))

/** Rows under their headings, in columns of equal width. */
export const table = (headings: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const lines = [headings, ...rows]
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
