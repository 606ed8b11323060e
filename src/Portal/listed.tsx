import { Effect } from "effect"
import { invalidCursor, makeCursors, type PageOptions, pageOf } from "../Http/cursor.ts"
import { Secrets } from "../Secrets.ts"
import { Paging } from "./components/Table.tsx"
import { Notice } from "./components/values.tsx"
import { pageSize, withQuery } from "./query.ts"
import { pathOf } from "./route.ts"
import type { Viewer } from "./Viewer.ts"

export interface ListOptions<Row, E, R> extends Pick<PageOptions<Row, E, R>, "placeOf" | "read"> {
  /** The list's page, below the account's. */
  readonly path: string
  /** Its parameters, to which a cursor is bound. */
  readonly filters: Readonly<Record<string, string | undefined>>
  readonly query: URLSearchParams
}

/** The page of a list that the query's cursor names: its rows, undefined for a cursor of another list, and what is below them. */
export const listed = <Row, E, R>(viewer: Viewer, { filters, path, query, ...list }: ListOptions<Row, E, R>) =>
  Effect.gen(function* () {
    const here = pathOf(viewer, path)
    const cursor = query.get("cursor")?.trim() ?? ""
    const page = yield* pageOf(makeCursors(yield* Secrets), {
      ...{ owner: viewer.owner, list: JSON.stringify(["portal", path, Object.entries(filters).sort()]) },
      ...{ cursor, limit: pageSize, ...list }
    })
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
