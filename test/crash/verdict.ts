import Database from "better-sqlite3"
import { Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { type Received, verifySignature } from "../../src/Sandbox/Receiver.ts"

/** The other evidence about a run than the database. */
export interface Evidence {
  readonly acknowledged: ReadonlyArray<PaymentObject>
  /** Ids of those that were paid. */
  readonly paid: ReadonlySet<string>
  readonly orders: number
  readonly arrivals: ReadonlyArray<Received>
  /** What signs at each path. */
  readonly secrets: Readonly<Record<string, string>>
}

interface EventRow {
  readonly id: string
  readonly payment_id: string
  readonly kind: string
  readonly body: string
}

interface DeliveryRow {
  readonly event_id: string
  readonly payment_id: string
  readonly kind: string
  readonly url: string
  readonly status: string
  readonly is_over: 0 | 1
}

export interface Verdict {
  readonly payments: number
  readonly events: number
  readonly deliveries: number
  /** Each is one sentence. */
  readonly problems: ReadonlyArray<string>
}

/** The expected events of a payment. */
const unpaidStory = ["payment.created"]
const paidStory = ["payment.created", "payment.detecting", "payment.confirmed"]

const pathOf = (url: string) => new URL(url).pathname
const at = (event: string, path: string) => `${event} ${path}`

const countBy = <A>(all: ReadonlyArray<A>, name: (one: A) => string) => {
  const counts = new Map<string, number>()
  for (const one of all) counts.set(name(one), (counts.get(name(one)) ?? 0) + 1)
  return counts
}

/** Runs `use` on a database that nothing writes to. */
export const reading = <A>(file: string, use: (database: Database.Database) => A): Effect.Effect<A> =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Database(file, { readonly: true })),
    (database) => Effect.sync(() => use(database)),
    (database) => Effect.sync(() => database.close())
  )

/** Each webhook is one that was committed, byte for byte, and signed. */
const alteredOnes = ({ arrivals, secrets }: Evidence, events: ReadonlyArray<EventRow>) => {
  const bodies = new Map(events.map(({ body, id }) => [id, Buffer.from(body, "utf8")]))
  return arrivals.flatMap((arrival) => {
    const id = String(arrival.headers["webhook-id"])
    const body = bodies.get(id)
    if (body === undefined) return [`${id} arrived, and is no event of the database`]
    return [
      ...(body.equals(arrival.body) ? [] : [`${id} arrived with other bytes than were committed`]),
      ...(verifySignature(arrival, secrets[arrival.path] ?? "") ? [] : [`${id} arrived with a wrong signature`])
    ]
  })
}

/** Each delivery arrived, and first of all in the order of its payment's events. */
const lostOnes = ({ arrivals }: Evidence, deliveries: ReadonlyArray<DeliveryRow>) => {
  const firsts = new Map<string, number>()
  for (const { headers, n, path } of arrivals) {
    const name = at(String(headers["webhook-id"]), path)
    if (!firsts.has(name)) firsts.set(name, n)
  }
  const latest = new Map<string, number>()
  return deliveries.flatMap(({ event_id, is_over, kind, payment_id, status, url }) => {
    const path = pathOf(url)
    const first = firsts.get(at(event_id, path))
    const before = latest.get(at(payment_id, path)) ?? 0
    if (first !== undefined) latest.set(at(payment_id, path), first)
    const name = `${kind} of ${payment_id} to ${path}`
    return [
      ...(first === undefined ? [`${name} never arrived`] : []),
      ...(first !== undefined && first < before ? [`${name} arrived before the event that it follows`] : []),
      ...(status === "delivered" && is_over === 1 ? [] : [`${name} is ${status}, and ${is_over ? "over" : "due"}`])
    ]
  })
}

/** Each payment that was acknowledged is there once, with the events that it must have, to each target. */
const missingOnes = (
  { acknowledged, orders, paid }: Evidence,
  stored: ReadonlyArray<{ readonly id: string; readonly address: string; readonly merchant_ref: string }>,
  events: ReadonlyArray<EventRow>,
  deliveries: ReadonlyArray<DeliveryRow>
) => {
  const byId = new Map(stored.map((row) => [row.id, row]))
  const stories = new Map<string, ReadonlyArray<string>>()
  for (const { kind, payment_id } of events) stories.set(payment_id, [...(stories.get(payment_id) ?? []), kind])
  const targets = countBy(deliveries, ({ event_id }) => event_id)
  const twice = [...countBy(stored, ({ address }) => address)].filter(([, count]) => count > 1)
  return [
    ...(stored.length === orders ? [] : [`${orders} orders came to ${stored.length} payments`]),
    ...twice.map(([address]) => `${address} was given to two payments`),
    ...acknowledged.flatMap(({ address, id, merchantRef }) => {
      const row = byId.get(id)
      const isSame = row?.address === address && row.merchant_ref === merchantRef
      return isSame ? [] : [`${id} was acknowledged, and is not in the database`]
    }),
    ...stored.flatMap(({ id }) => {
      const story = (stories.get(id) ?? []).join(", ")
      const expected = (paid.has(id) ? paidStory : unpaidStory).join(", ")
      return story === expected ? [] : [`${id} has the events ${story} in place of ${expected}`]
    }),
    ...events.flatMap(({ id }) =>
      targets.get(id) === 2 ? [] : [`${id} is owed to ${targets.get(id) ?? 0} targets in place of 2`]
    )
  ]
}

const unsound = (database: Database.Database) => {
  const integrity = database.pragma("integrity_check", { simple: true })
  const foreign = database.pragma("foreign_key_check")
  return [
    ...(integrity === "ok" ? [] : [`PRAGMA integrity_check says ${integrity}`]),
    ...(Array.isArray(foreign) && foreign.length === 0 ? [] : ["PRAGMA foreign_key_check finds rows"])
  ]
}

/** Judges a database that a daemon has left behind. */
export const judge = (file: string, evidence: Evidence): Effect.Effect<Verdict> =>
  reading(file, (database) => {
    const read = <Row>(sql: string) => database.prepare(sql).all() as ReadonlyArray<Row>
    const payments = read<{ id: string; address: string; merchant_ref: string }>("SELECT * FROM payments")
    const events = read<EventRow>("SELECT id, payment_id, kind, body FROM events ORDER BY sequence")
    const deliveries = read<DeliveryRow>(
      `SELECT d.event_id, d.payment_id, e.kind, d.url, d.status, d.done_at IS NOT NULL AS is_over
       FROM deliveries AS d JOIN events AS e ON e.id = d.event_id ORDER BY e.sequence`
    )
    const problems = [
      ...unsound(database),
      ...missingOnes(evidence, payments, events, deliveries),
      ...alteredOnes(evidence, events),
      ...lostOnes(evidence, deliveries)
    ]
    return { payments: payments.length, events: events.length, deliveries: deliveries.length, problems }
  })
