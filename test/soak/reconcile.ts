import { Effect } from "effect"
import type { Address } from "viem"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { rows } from "../lib/daemon.ts"
import { moved, nodeOf, type Order, type World } from "./world.ts"

interface PaymentRow {
  readonly id: string
  readonly status: string
  readonly failure_reason: string | null
  readonly exceptions: string | null
  readonly kinds: string | null
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** Reorgs repeat what was announced: each kind once, where it came first. */
const distinct = (kinds: string | null): ReadonlyArray<string> => [
  ...new Set((kinds ?? "").split(",").filter((kind) => kind !== ""))
]

/** Each order has come to what its plan says. */
const payments = (world: World) =>
  Effect.map(
    rows<PaymentRow>(
      world.daemon.home,
      `SELECT id, status, failure_reason,
        (SELECT group_concat(kind) FROM (SELECT kind FROM exceptions WHERE payment_id = p.id AND closed_at IS NULL ORDER BY kind)) AS exceptions,
        (SELECT group_concat(kind) FROM (SELECT substr(kind, 9) AS kind FROM events WHERE payment_id = p.id AND kind NOT IN ('payment.updated', 'payment.exception') ORDER BY sequence)) AS kinds
       FROM payments AS p`
    ),
    (stored) => {
      const byId = new Map(stored.map((row) => [row.id, row]))
      const { counts, orders } = world.book
      return [
        ...(stored.length === counts.asked ? [] : [`${counts.asked} orders came to ${stored.length} payments`]),
        ...orders.flatMap(({ payment: { id }, plan }) => {
          const row = byId.get(id)
          const is = row && [row.status, row.failure_reason, distinct(row.exceptions), distinct(row.kinds)]
          const should = [plan.status, plan.failureReason ?? null, plan.exceptions, plan.events]
          return same(is, should)
            ? []
            : [`${id} (${plan.name}) is ${JSON.stringify(is)} in place of ${JSON.stringify(should)}`]
        })
      ]
    }
  )

/** What each address has on its chains, by the chain itself, is what the ledger says. */
export const ledger = (world: World) =>
  Effect.gen(function* () {
    const receipts = yield* rows<{ chain: string; address: string; currency: string; amount: string }>(
      world.daemon.home,
      "SELECT chain, address, currency, amount FROM receipts WHERE canonical = 1"
    )
    const at = (chain: string, address: string, currency: string) => `${chain} ${address.toLowerCase()} ${currency}`
    const sums = new Map<string, bigint>()
    for (const { address, amount, chain, currency } of receipts) {
      const key = at(chain, address, currency)
      sums.set(key, (sums.get(key) ?? 0n) + BigInt(amount))
    }
    const checked = world.book.orders.flatMap(({ payment, plan }) => {
      const places = [{ share: 0 }, ...plan.transfers].map((transfer) => moved(payment, transfer))
      return [
        ...new Map(places.map(({ chain, currency }) => [chain + currency, { payment, chain, currency }])).values()
      ]
    })
    const different = yield* Effect.forEach(
      checked,
      ({ chain: name, currency, payment }) =>
        Effect.gen(function* () {
          const { chain } = nodeOf(world, name)
          const address = payment.address as Address
          const has =
            currency === "ETH" ? yield* chain.balance(address) : yield* chain.tokenBalance(currency as "USDC", address)
          const said = sums.get(at(name, address, currency)) ?? 0n
          return has === said ? [] : [`${payment.id}: ${name} has ${has} ${currency}, the ledger ${said}`]
        }),
      { concurrency: 16 }
    )
    return different.flat()
  })

/** Each event has come to each receiver, as it was stored and signed; none has come that is not stored. */
const webhooks = (world: World, secret: string) =>
  Effect.gen(function* () {
    const due = yield* rows<{ id: string; body: string; url: string; status: string; payment_id: string }>(
      world.daemon.home,
      `SELECT e.id, CAST(e.body AS TEXT) AS body, d.url, d.status, e.payment_id
       FROM deliveries AS d JOIN events AS e ON e.id = d.event_id ORDER BY e.sequence`
    )
    const arrivals = yield* world.receiver.all
    const firsts = new Map<string, (typeof arrivals)[number]>()
    const known = new Set(due.map(({ id, url }) => `${id} ${new URL(url).pathname}`))
    const strange = arrivals.flatMap((request) => {
      const key = `${request.headers["webhook-id"]} ${request.path}`
      if (!firsts.has(key)) firsts.set(key, request)
      return known.has(key) && verifySignature(request, secret) ? [] : [`an unknown or badly signed event: ${key}`]
    })
    const missing = due.flatMap(({ body, id, status, url }) => {
      const first = firsts.get(`${id} ${new URL(url).pathname}`)
      return first?.body.toString() === body && status === "delivered" ? [] : [`${id} to ${url} is ${status}`]
    })
    return [...strange, ...missing]
  })

const sound = (world: World) =>
  Effect.map(rows<{ integrity_check: string }>(world.daemon.home, "PRAGMA integrity_check"), (said) =>
    same(said, [{ integrity_check: "ok" }]) ? [] : [`integrity_check says ${JSON.stringify(said)}`]
  )

/** Compares chain, ledger, payments, events and receivers. Each problem is one sentence. */
export const reconcile = (world: World, secret: string) =>
  Effect.map(
    Effect.all([sound(world), payments(world), ledger(world), webhooks(world, secret)], { concurrency: 1 }),
    (problems) => problems.flat()
  )

/** How many orders have not come to an end, and how many deliveries are owed. */
export const open = (world: World) =>
  Effect.map(
    rows<{ payments: number; deliveries: number }>(
      world.daemon.home,
      `SELECT (SELECT count(*) FROM payments WHERE status IN ('pending', 'detecting')) AS payments,
              (SELECT count(*) FROM deliveries WHERE done_at IS NULL) AS deliveries`
    ),
    ([counts]) => counts ?? { payments: 0, deliveries: 0 }
  )

export const endsOf = (orders: ReadonlyArray<Order>): string => {
  const counts = new Map<string, number>()
  for (const { plan } of orders) counts.set(plan.name, (counts.get(plan.name) ?? 0) + 1)
  return [...counts].map(([name, count]) => `${count} ${name}`).join(", ")
}
