/**
 * What is told of an invoice, by what was told before: pure. Each transfer is told once when it is received and once when it
 * is settled, each status once, in the order in which plugins take them. A reorg takes back what was told without a word; what
 * is mined again is told again.
 */
import type { PluginEventKind } from "../Domain/Event.ts"
import type { PluginStanding, PluginTransfer } from "./status.ts"

/** What an invoice's plugins know, as the store keeps it. */
export interface Told {
  readonly status: PluginStanding["status"]
  /** Transfers by id. */
  readonly transfers: Readonly<Record<string, PluginTransfer["status"]>>
  /** The ids of those that came too late: accepted, they count as any. */
  readonly late: ReadonlyArray<string>
  /** The number of messages so far, and the time of the last, Unix milliseconds: it never falls. */
  readonly count: number
  readonly at: number
}

/** A message, with what it says beside the invoice. */
export interface PluginMessage {
  readonly kind: PluginEventKind
  readonly transfer?: PluginTransfer
  readonly flags: Readonly<Record<string, boolean>>
}

const ofStatus = ({ additional, status }: PluginStanding): ReadonlyArray<PluginMessage> => {
  const overPaid = additional === "PaidOver"
  switch (status) {
    case "New":
      return []
    case "Processing":
      return [{ kind: "InvoiceProcessing", flags: { overPaid } }]
    case "Settled":
      return [{ kind: "InvoiceSettled", flags: { manuallyMarked: additional === "Marked", overPaid } }]
    case "Expired":
      return [{ kind: "InvoiceExpired", flags: { partiallyPaid: additional !== "None" } }]
    case "Invalid":
      return [{ kind: "InvoiceInvalid", flags: { manuallyMarked: additional === "Marked" } }]
  }
}

/** Messages after which single transfers are told no more: anybody can send many. Each status still is. */
const mostOfTransfers = 40

const lateIn = (told: Told | undefined, { transfers }: PluginStanding): ReadonlyArray<string> =>
  transfers.filter(({ id, isLate }) => isLate || told?.late.includes(id) === true).map(({ id }) => id)

/** What is to be told now; `told` is undefined for a new invoice. */
export const messagesOf = (told: Told | undefined, now: PluginStanding): ReadonlyArray<PluginMessage> => {
  const { additional, status, transfers } = now
  const known = told?.transfers ?? {}
  const late = lateIn(told, now)
  const ofTransfer = (kind: PluginEventKind) => (transfer: PluginTransfer) =>
    ({ kind, transfer, flags: { afterExpiration: late.includes(transfer.id) } }) as const
  const received = transfers.filter(({ id }) => known[id] === undefined).map(ofTransfer("InvoiceReceivedPayment"))
  const settled = transfers
    .filter((one) => one.status === "Settled" && known[one.id] !== "Settled")
    .map(ofTransfer("InvoicePaymentSettled"))
  const room = Math.max(0, mostOfTransfers - (told?.count ?? 0))
  const isNew = told !== undefined && status !== told.status
  // A payment can be confirmed by the scan that sees it: a shop makes its order at the message before the last.
  const isSkipped = isNew && status === "Settled" && additional !== "Marked" && told.status === "New"
  return [
    ...(told === undefined ? [{ kind: "InvoiceCreated", flags: {} } as const] : []),
    ...received.slice(0, room),
    ...(isSkipped ? ofStatus({ ...now, status: "Processing" }) : []),
    ...settled.slice(0, Math.max(0, room - received.length)),
    ...(isNew ? ofStatus(now) : [])
  ]
}

/** What is known once these messages are told, at `at`. */
export const toldAfter = (
  told: Told | undefined,
  now: PluginStanding,
  messages: ReadonlyArray<PluginMessage>,
  at: number
): Told => ({
  status: now.status,
  transfers: Object.fromEntries(now.transfers.map(({ id, status }) => [id, status])),
  late: lateIn(told, now),
  count: (told?.count ?? 0) + messages.length,
  at: messages.length === 0 && told !== undefined ? told.at : Math.max(at, told?.at ?? 0)
})
