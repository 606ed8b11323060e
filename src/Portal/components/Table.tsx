import type { ComponentChildren } from "preact"

export interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => ComponentChildren
  /** Aligned at the end, for numbers. */
  readonly numeric?: boolean
}

export interface TableProps<Row> {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  readonly keyOf: (row: Row) => string
  /** Shown instead of a table without rows. */
  readonly empty: ComponentChildren
}

/** A table. The first column names its row. On a narrow screen it scrolls by itself, with the keyboard too. */
export const Table = <Row,>({ caption, columns, empty, keyOf, rows }: TableProps<Row>) =>
  rows.length === 0 ? (
    <Empty>{empty}</Empty>
  ) : (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to take the focus, so that arrow keys scroll it
    <section class="scroll" tabIndex={0} aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ name, numeric }) => (
              <th key={name} scope="col" class={numeric ? "numeric" : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ cell, name, numeric }, place) =>
                place === 0 ? (
                  <th key={name} scope="row" class={numeric ? "numeric" : undefined}>
                    {cell(row)}
                  </th>
                ) : (
                  <td key={name} class={numeric ? "numeric" : undefined}>
                    {cell(row)}
                  </td>
                )
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )

/** Said where there is nothing to show: what would be here, and how it comes about. */
export const Empty = ({ children }: { readonly children: ComponentChildren }) => <p class="empty">{children}</p>

export interface PagingProps {
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
