import { Effect, Option, Stream } from "effect"
import { invalidCursor, makeCursors, type PageOptions, pageOf } from "../Http/cursor.ts"
import type { HttpReply, Pieces } from "../Http/HttpReply.ts"
import { betweenParts } from "../Http/parts.ts"
import { csvLine } from "../lib/text.ts"
import { Secrets } from "../Secrets.ts"
import type { StoreUnavailable } from "../Sql.ts"
import { Paging } from "./components/Table.tsx"
import { Notice } from "./components/values.tsx"
import { pageSize, withQuery } from "./query.ts"
import { pathOf } from "./route.ts"
import type { Viewer } from "./Viewer.ts"

interface ListOptions<Row, R> extends Pick<PageOptions<Row, StoreUnavailable, R>, "placeOf" | "read"> {
  /** The list's page, below the account's. */
  readonly path: string
  /** Its parameters, to which a cursor is bound. */
  readonly filters: Readonly<Record<string, string | undefined>>
  readonly query: URLSearchParams
}

/** The page of a list that the query's cursor names: its rows, undefined for a cursor of another list, and what is below them. */
export const listed = <Row, R>(viewer: Viewer, { filters, path, query, ...list }: ListOptions<Row, R>) =>
  Effect.gen(function* () {
    const here = pathOf(viewer, path)
    const cursor = query.get("cursor")?.trim() ?? ""
    const page = yield* pageOf(makeCursors(yield* Secrets), {
      ...{ owner: viewer.owner, list: JSON.stringify(["portal", path, Object.entries(filters).sort()]) },
      ...{ cursor, limit: pageSize, ...list }
    }).pipe(Effect.catchTag("ApiError", () => Effect.void))
    const isFirst = cursor === ""
    const paging =
      page === undefined ? (
        <Notice tone="bad">{invalidCursor.message}</Notice>
      ) : (
        <Paging
          first={isFirst ? undefined : withQuery(here, filters)}
          next={page.next && withQuery(here, { ...filters, cursor: page.next })}
        />
      )
    return { rows: page?.rows, isFirst, paging }
  })

/** Files for spreadsheets (RFC 4180): read and sent a page at a time, however many rows there are. */

/** What a file has, by the names in its first line: the cells of each row; undefined is an empty one. */
export type CsvColumns<Row> = Readonly<Record<string, (row: Row) => string | undefined>>

/** Rows read at once: of the largest, a megabyte. */
const rowsAtOnce = 25

/** Reads a page of a file: at most `limit` rows behind the last one of the page before. */
type ReadRows<Row> = (after: Row | undefined, limit: number) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>

/**
 * Ends with the store's failure, which cuts the file off: nobody takes a part of it for all.
 *
 * @param read the lines behind a place, and the place behind which there are more
 */
export const filePieces = <Place,>(
  head: string,
  read: (after: Place | undefined) => Effect.Effect<readonly [lines: string, next: Place | undefined], StoreUnavailable>
): Pieces =>
  Stream.concat(
    Stream.make(head),
    Stream.paginateEffect(undefined as Place | undefined, (after) =>
      Effect.map(
        Effect.zipRight(betweenParts, Effect.orDie(read(after))),
        ([lines, next]) => [lines, Option.fromNullable(next)] as const
      )
    )
  )

export const linePieces = <Row,>(head: string, line: (row: Row) => string, page: ReadRows<Row>): Pieces =>
  filePieces(head, (after: Row | undefined) =>
    Effect.map(
      page(after, rowsAtOnce),
      (rows) => [rows.map(line).join(""), rows.length < rowsAtOnce ? undefined : rows.at(-1)] as const
    )
  )

export const csvPieces = <Row,>(columns: CsvColumns<Row>, page: ReadRows<Row>): Pieces => {
  const cells = Object.values(columns)
  return linePieces(csvLine(Object.keys(columns)), (row) => csvLine(cells.map((cell) => cell(row) ?? "")), page)
}

/** A file to keep. */
export const fileReply = (name: string, type: string, rest: Pieces): HttpReply => ({
  status: 200,
  headers: {
    "content-type": `${type}; charset=utf-8`,
    "content-disposition": `attachment; filename="${name}"`,
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox"
  },
  text: "",
  rest
})

export const csvReply = (name: string, rest: Pieces) => fileReply(`${name}.csv`, "text/csv; header=present", rest)
