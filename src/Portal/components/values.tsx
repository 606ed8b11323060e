/** Single values: money, times, statuses, transactions and addresses; and tables and lists of them. */
import type { ComponentChildren } from "preact"
import type { FieldProblem } from "../../Domain/ApiError.ts"
import { type ChainName, chainTraits } from "../../Domain/Chain.ts"
import { type Fiat, formatAmount } from "../../Domain/Currency.ts"
import { iso } from "../../lib/moment.ts"
import { explorerUrl } from "../../Pages/explorers.ts"
import { Disc, Mark } from "../../Pages/marks.tsx"

interface CopyTextProps {
  readonly text: string
  /** What is shown of it; the text as code unless given. */
  readonly children?: ComponentChildren
}

const CopyButton = ({ text }: Pick<CopyTextProps, "text">) => (
  <button type="button" data-copy={text} aria-live="polite" hidden>
    <Mark of="copy" /> Copy
  </button>
)

/** An id, a hash or a link, with a button that copies it where scripts run. */
export const CopyText = ({ children, text }: CopyTextProps) => (
  <span class="copy-text">
    {children ?? <code>{text}</code>} <CopyButton text={text} />
  </span>
)

interface CopyFieldProps {
  /** Unique on the page. */
  readonly id: string
  readonly label: string
  readonly value: string
}

/** A text to take away: selectable, and with a button that copies it where scripts run. */
export const CopyField = ({ id, label, value }: CopyFieldProps) => (
  <div class="field copy">
    <label for={id}>{label}</label>
    <input id={id} type="text" class="secret" readOnly value={value} autocomplete="off" spellcheck={false} />
    <CopyButton text={value} />
    <span class="hint" />
  </div>
)

const grouped = new Intl.NumberFormat("en-US")

/** An amount of base units as people write it: all its decimals, and at least two; thousands in groups. */
export const moneyText = (amount: bigint, currency: string, decimals: number | undefined): string => {
  const text = formatAmount(amount.toString(), currency, decimals).replace(/(\.[0-9]{2}[0-9]*?)0+(?= )/, "$1")
  const [whole = "", ...rest] = text.split(/(?=[. ])/)
  return [whole.replace(/[0-9]+/, (digits) => grouped.format(BigInt(digits))), ...rest].join("")
}

/** A count of what is counted up to `most`. */
export const countText = (count: number, most: number): string => (count < most ? String(count) : `${most - 1}+`)

/** A decimal of a fiat currency as people write it: `$1,234.50`. */
export const fiatText = (amount: string, currency: Fiat = "USD"): string =>
  new Intl.NumberFormat("en-US", { style: "currency", currency }).format(amount as `${number}`)

interface MoneyProps {
  /** Base units. */
  readonly amount: bigint
  readonly currency: string
  /** By `decimalsOn`. */
  readonly decimals: number | undefined
}

export const Money = ({ amount, currency, decimals }: MoneyProps) => (
  <span class="money">{moneyText(amount, currency, decimals)}</span>
)

export const Chain = ({ of }: { readonly of: ChainName }) => (
  <span class="chain">
    <Disc of={of} /> {chainTraits[of].displayName}
  </span>
)

/** A time as `iso` writes it, for people: `2026-11-24 05:35:47 UTC`. */
export const utcText = (text: string): string => `${text.slice(0, 10)} ${text.slice(11, 19)} UTC`

/** A time, in Unix milliseconds or as `iso` writes it. */
export const Time = ({ at }: { readonly at: number | string }) => {
  const text = typeof at === "string" ? at : iso(at)
  return <time dateTime={text}>{utcText(text)}</time>
}

/** The last time of something; undefined where there was none yet. */
export const LastTime = ({ at }: { readonly at: number | undefined }) =>
  at === undefined ? <>never</> : <Time at={at} />

export type Tone = "good" | "info" | "warning" | "bad" | "neutral"

export const statusTones: Readonly<Record<string, Tone>> = {
  confirmed: "good",
  delivered: "good",
  accepted: "good",
  healthy: "good",
  active: "good",
  final: "good",
  detecting: "info",
  noted: "info",
  begun: "info",
  seen: "info",
  failing: "bad",
  not_found: "bad",
  open: "warning",
  failed: "bad",
  unhealthy: "bad",
  revoked: "bad"
}

/** A status in its colour; the word says the same. */
export const Status = ({ of, tone = statusTones[of] ?? "neutral" }: { readonly of: string; readonly tone?: Tone }) => (
  <span class={`badge ${tone}`}>{of.replaceAll("_", " ")}</span>
)

interface NoticeProps {
  readonly tone: Tone
  /** It answers a form: the page begins there, also for who hears it. */
  readonly isAnswer?: boolean
  readonly children: ComponentChildren
}

/** Something that was done, or that the reader has to know. */
export const Notice = ({ children, isAnswer = false, tone }: NoticeProps) => (
  <div
    class={`notice ${tone}`}
    role={tone === "bad" ? "alert" : "status"}
    {...(isAnswer ? { tabIndex: -1, autofocus: true } : {})}
  >
    {children}
  </div>
)

/** Why a form was refused that the page no longer has. */
export const Unplaced = ({ of = [] }: { readonly of?: ReadonlyArray<FieldProblem> | undefined }) => (
  <>
    {of.map(({ message, path }) => (
      <Notice key={path} tone="bad" isAnswer>
        {message}
      </Notice>
    ))}
  </>
)

interface OnChainProps {
  /** A transaction's hash, or an address. */
  readonly value: string
  readonly kind: "tx" | "address"
  /** Undefined where the chain is no longer configured. */
  readonly chainId: number | undefined
  /** Only its ends, for tables. */
  readonly short?: boolean
}

/** A transaction or an address to copy, with a link to the chain's explorer where there is one. */
export const OnChain = ({ chainId, kind, short, value }: OnChainProps) => {
  const url = explorerUrl(chainId, kind, value)
  const text = short ? `${value.slice(0, 8)}…${value.slice(-6)}` : value
  const code = <code title={short ? value : undefined}>{text}</code>
  const shown =
    url === undefined ? (
      code
    ) : (
      <a href={url} rel="noopener noreferrer">
        {code}
        {short ? null : <Mark of="external" />}
      </a>
    )
  return short ? shown : <CopyText text={value}>{shown}</CopyText>
}

/** The same where it is known, for lists of facts. */
export const onChain = (kind: OnChainProps["kind"], value: string | undefined, chainId: OnChainProps["chainId"]) =>
  value === undefined ? undefined : <OnChain kind={kind} value={value} chainId={chainId} />

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
