/** A page of a list in order of creation. */
export interface ListPage {
  /** The id of the row before its first one; undefined for the first page. */
  readonly after?: string | undefined
  /** Maximum number of rows. */
  readonly limit: number
}

/** The condition for the rows of a table behind the one with an id, with its parameters. */
export const behind = (
  table: "accounts" | "api_keys" | "people",
  { after }: ListPage
): readonly [sql: string, params: Array<string>] =>
  after === undefined ? ["1", []] : [`(created_at, id) > (SELECT created_at, id FROM ${table} WHERE id = ?)`, [after]]
