import type { ComponentChildren } from "preact"

export interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => ComponentChildren
  /** Instead of its name at its head. */
  readonly head?: ComponentChildren
  /** Aligned at the end, for numbers. */
  readonly numeric?: boolean
  /** Broken anywhere, for long texts without blanks. */
  readonly wide?: boolean
  /** Left out on a phone: the row's own page has it. */
  readonly minor?: boolean
  /** It comes before the one that names the row. */
  readonly leads?: boolean
}

interface TableProps<Row> {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<Row>>
  /** Undefined: nothing is shown. */
  readonly rows: ReadonlyArray<Row> | undefined
  readonly keyOf: (row: Row) => string
  /** The page of a row, where each has one: its name links to it, and so does the whole row. */
  readonly hrefOf?: (row: Row) => string
  /** Shown instead of a table without rows: what would be here, and how it comes about. */
  readonly empty: ComponentChildren
}

const classOf = ({ minor, numeric, wide }: Column<never>) =>
  [minor && "minor", numeric ? "numeric" : wide && "wide"].filter(Boolean).join(" ") || undefined

/**
 * A table. The first column that does not lead names its row. On a phone each row is a card; a table that is too wide
 * otherwise scrolls by itself, with the keyboard too.
 */
export const Table = <Row,>({ caption, columns, empty, hrefOf, keyOf, rows }: TableProps<Row>) => {
  const naming = columns.find(({ leads }) => !leads)
  if (rows === undefined) return null
  return rows.length === 0 ? (
    <p class="empty">{empty}</p>
  ) : (
    // What scrolls has to take the focus, so that arrow keys scroll it, unless something in it does.
    <section class="scroll" tabIndex={hrefOf === undefined ? 0 : undefined} aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={classOf(column)}>
                {column.head ?? column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) =>
                column === naming ? (
                  <th key={column.name} scope="row" class={classOf(column)}>
                    {hrefOf === undefined ? column.cell(row) : <a href={hrefOf(row)}>{column.cell(row)}</a>}
                  </th>
                ) : (
                  <td key={column.name} class={classOf(column)} data-name={column.name}>
                    {column.cell(row)}
                  </td>
                )
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

interface PagingProps {
  /** The list's first page; undefined on that page. */
  readonly first?: string | undefined
  /** The next page; undefined on the last one. */
  readonly next?: string | undefined
}

/** Links between the pages of a list. */
export const Paging = ({ first, next }: PagingProps) =>
  first === undefined && next === undefined ? null : (
    <nav class="paging" aria-label="Pages">
      {first === undefined ? null : <a href={first}>First page</a>}
      {next === undefined ? null : (
        <a href={next} rel="next">
          Next page
        </a>
      )}
    </nav>
  )

/** Names with their values, e.g. of one payment. Values that are undefined are left out. */
export const Facts = ({ of }: { readonly of: Readonly<Record<string, ComponentChildren | undefined>> }) => (
  <dl class="facts">
    {Object.entries(of).map(([name, value]) =>
      value === undefined ? null : (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      )
    )}
  </dl>
)
