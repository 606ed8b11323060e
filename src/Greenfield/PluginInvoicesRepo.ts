/** The table `plugin_invoices`: what a plugin asked for with an invoice, and what was told of it. Times in Unix milliseconds. */
import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { InvoiceId } from "../Domain/Ids.ts"
import { allOf, allValues, type Db, execute, oneRow, when } from "../Sql.ts"
import type { Told } from "./messages.ts"

/** The parts of a request that are given back as they came. */
export interface Asked {
  readonly metadata: Readonly<Record<string, unknown>>
  readonly checkout: Readonly<Record<string, unknown>>
  readonly receipt: unknown
}

export interface PluginInvoice extends Owner {
  readonly id: InvoiceId
  readonly asked: Asked
  readonly told: Told | undefined
}

/** The order of metadata, as text; it may come any number of times. */
export const orderIdOf = ({ orderId }: Asked["metadata"]): string | null =>
  typeof orderId === "string" || typeof orderId === "number" ? String(orderId) : null

export const insert = ({ account, asked, id, mode }: Omit<PluginInvoice, "told">, at: number) =>
  execute(
    "INSERT INTO plugin_invoices (invoice_id, account_id, mode, order_id, asked, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    [id, account, mode, orderIdOf(asked.metadata), JSON.stringify(asked), at]
  )

interface Row extends Omit<PluginInvoice, "asked" | "told"> {
  readonly asked: string
  readonly told: string | undefined
}

/** What a plugin made; undefined for an invoice that none has made. */
export const byId = (db: Db, id: string) =>
  Effect.map(
    oneRow<Row>(
      db,
      "SELECT invoice_id AS id, account_id AS account, mode, asked, told FROM plugin_invoices WHERE invoice_id = ?",
      [id]
    ),
    (row): PluginInvoice | undefined =>
      row && {
        ...row,
        asked: JSON.parse(row.asked) as Asked,
        told: row.told === undefined ? undefined : (JSON.parse(row.told) as Told)
      }
  )

/** Stores what is told. @param awaiting whether a transfer of an ended payment may still become certain */
export const setTold = (id: InvoiceId, told: Told, awaiting: boolean) =>
  execute("UPDATE plugin_invoices SET told = ?, awaiting = ? WHERE invoice_id = ?", [
    JSON.stringify(told),
    Number(awaiting),
    id
  ])

export const setMetadata = (id: InvoiceId, asked: Asked) =>
  execute("UPDATE plugin_invoices SET asked = ?, order_id = ? WHERE invoice_id = ?", [
    JSON.stringify(asked),
    orderIdOf(asked.metadata),
    id
  ])

/** Invoices of which a transfer may have become certain without a change of their payment, newest first: some never do. */
export const awaiting = (db: Db, limit: number) =>
  allValues<InvoiceId>(
    db,
    "SELECT invoice_id FROM plugin_invoices WHERE awaiting = 1 ORDER BY created_at DESC LIMIT ?",
    [limit]
  )

export interface Filter {
  readonly orderIds: ReadonlyArray<string>
  readonly statuses: ReadonlyArray<string>
  readonly text?: string | undefined
  readonly from?: number | undefined
  readonly until?: number | undefined
  readonly skip: number
  readonly take: number
}

const listed = (values: ReadonlyArray<string>) => (values.length === 0 ? undefined : JSON.stringify(values))

/** The ids of a page of an owner's invoices, newest first. */
export const list = (db: Db, { account, mode }: Owner, filter: Filter) => {
  const { from, orderIds, skip, statuses, take, text, until } = filter
  const { params, where } = allOf([
    ["account_id = ? AND mode = ?", account, mode],
    ...when("order_id IN (SELECT value FROM json_each(?))", listed(orderIds)),
    ...when("told ->> 'status' IN (SELECT value FROM json_each(?))", listed(statuses)),
    ...when("(order_id = ? OR invoice_id = ?)", text, text),
    ...when("created_at >= ?", from),
    ...when("created_at < ?", until)
  ])
  return allValues<InvoiceId>(
    db,
    `SELECT invoice_id FROM plugin_invoices WHERE ${where} ORDER BY created_at DESC, invoice_id DESC LIMIT ? OFFSET ?`,
    [...params, take, skip]
  )
}
