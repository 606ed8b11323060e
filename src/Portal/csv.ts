/** Files for spreadsheets (RFC 4180): read and sent a page at a time, however many rows there are. */
import { Effect, Option, Stream } from "effect"
import type { HttpReply, Pieces } from "../Http/HttpReply.ts"
import { betweenParts } from "../Http/parts.ts"
import type { StoreUnavailable } from "../Sql.ts"

// A spreadsheet takes a cell that begins like this for a formula, and runs it.
// https://owasp.org/www-community/attacks/CSV_Injection
const formula = /^[=+\-@\t\r\n＝＋－＠]/

const cellOf = (value: string): string => {
  const text = formula.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A line of a file. No cell is a formula. */
export const csvLine = (cells: ReadonlyArray<string>): string => `${cells.map(cellOf).join(",")}\r\n`

/** What a file has, by the names in its first line: the cells of each row; undefined is an empty one. */
export type CsvColumns<Row> = Readonly<Record<string, (row: Row) => string | undefined>>

/** Rows read at once: of the largest, a megabyte. */
const pageSize = 25

/**
 * Ends with the store's failure, which cuts the file off: nobody takes a part of it for all.
 *
 * @param page at most `limit` rows behind the last one of the page before
 */
export const csvPieces = <Row>(
  columns: CsvColumns<Row>,
  page: (after: Row | undefined, limit: number) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>
): Pieces => {
  const cells = Object.values(columns)
  const pages = Stream.paginateEffect(Option.none<Row>(), (after) =>
    Effect.map(Effect.zipRight(betweenParts, Effect.orDie(page(Option.getOrUndefined(after), pageSize))), (rows) => {
      const last = rows.length < pageSize ? undefined : rows.at(-1)
      const text = rows.map((row) => csvLine(cells.map((cell) => cell(row) ?? ""))).join("")
      return [text, last === undefined ? Option.none() : Option.some(Option.some(last))] as const
    })
  )
  return Stream.concat(Stream.make(csvLine(Object.keys(columns))), pages)
}

/** A file to keep. */
export const csvReply = (name: string, rest: Pieces): HttpReply => ({
  status: 200,
  headers: {
    "content-type": "text/csv; charset=utf-8; header=present",
    "content-disposition": `attachment; filename="${name}.csv"`,
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox"
  },
  text: "",
  rest
})
