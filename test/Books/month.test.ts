/** A month of twelve orders, closed by the ledger: its sums are what the chains' contracts hold, to the unit. */
import { expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import type { Address } from "viem"
import { addUp, type LedgerRow, leftOf, worthText } from "../../src/Domain/LedgerRow.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import type { QuoteObject } from "../../src/Domain/Quote.ts"
import type { RefundObject } from "../../src/Domain/Refund.ts"
import { someone, usd } from "../Collect/collecting.ts"
import { eventually, onceDeep, openShop } from "../Collect/shop.ts"
import { type Answer, confirmations, type Daemon, mineAt, pay, serveHere } from "../lib/daemon.ts"
import { entered, linkBySocket, visitorOf } from "../lib/portal.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"
import { shownIn } from "../Portal/shop.ts"

interface Order {
  /** USDC on ethereum. */
  readonly asked: bigint
  /** Of USDC on ethereum unless the order is of something wrong. */
  readonly paid: ReadonlyArray<bigint>
  readonly status: PaymentObject["status"]
  /** At the end of the month, of USDC on ethereum. */
  readonly received: bigint
  readonly kept: bigint
}

const orders = {
  exact: { asked: 25n, paid: [25n], status: "confirmed", received: 25n, kept: 25n },
  over: { asked: 30n, paid: [37n], status: "confirmed", received: 37n, kept: 30n },
  under: { asked: 40n, paid: [15n], status: "failed", received: 15n, kept: 15n },
  twice: { asked: 20n, paid: [20n, 20n], status: "confirmed", received: 40n, kept: 20n },
  late: { asked: 22n, paid: [22n], status: "expired", received: 22n, kept: 22n },
  token: { asked: 26n, paid: [26n], status: "confirmed", received: 0n, kept: 0n },
  chain: { asked: 35n, paid: [35n], status: "confirmed", received: 0n, kept: 0n },
  cancelled: { asked: 18n, paid: [18n], status: "expired", received: 18n, kept: 18n },
  quoted: { asked: 55n, paid: [55n], status: "confirmed", received: 55n, kept: 55n },
  refunded: { asked: 45n, paid: [45n], status: "confirmed", received: 45n, kept: 0n },
  accepted: { asked: 28n, paid: [10n], status: "confirmed", received: 10n, kept: 10n },
  collected: { asked: 60n, paid: [60n], status: "confirmed", received: 60n, kept: 60n }
} as const satisfies Readonly<Record<string, Order>>
type Name = keyof typeof orders
const names = Object.keys(orders) as ReadonlyArray<Name>
const sumOf = (all: ReadonlyArray<bigint>) => all.reduce((sum, one) => sum + one, 0n)

/** What the sums of ledger's rows are: base units of income and of what is left at the addresses, and the income's worth. */
const sumsOf = (rows: ReadonlyArray<LedgerRow>) => {
  const { income, sums, unknown } = addUp(rows)
  return {
    income: Object.fromEntries(sums.map((one) => [`${one.chain} ${one.currency}`, one.income])),
    left: Object.fromEntries(sums.map((one) => [`${one.chain} ${one.currency}`, leftOf(one)])),
    worth: Array.from(income, ([currency, worth]) => `${worthText(worth, currency)} ${currency}`),
    unknown
  }
}

interface Page {
  readonly data: ReadonlyArray<LedgerRow>
  readonly cursor: string | null
}

const read = Effect.fnUntraced(function* ({ call }: Daemon) {
  const rows: Array<LedgerRow> = []
  let query = ""
  while (true) {
    const { body }: Answer<Page> = yield* call<Page>("GET", `/v1/ledger?limit=7${query}`)
    rows.push(...body.data)
    if (body.cursor === null) return rows
    query = `&cursor=${body.cursor}`
  }
})

/** The rows of a file of comma-separated values, which has no cell with a comma. */
const rowsIn = (csv: string) => {
  const [head = "", ...lines] = csv.trim().split(/\r?\n/)
  const columns = head.split(",")
  return lines.map((line) => {
    const cells = line.split(",").map((cell, i) => [columns[i] ?? "", columns[i] === "decimals" ? Number(cell) : cell])
    return Object.fromEntries(cells.filter(([, cell]) => cell !== "")) as unknown as LedgerRow
  })
}

liveTest("twelve orders: ledger, files, portal and contracts have the same sums, also later", function* () {
  const shop = yield* openShop({ other: "polygon" })
  const { chain, config, daemon, exceptions, home, plan, planIn, sent, sign, until } = shop
  const polygon = shop.other ?? expect.unreachable()
  yield* tilld(["accounts", "shop", "--currency", "EUR", ...config])
  const quoting = { fromCurrency: "EUR", toCurrency: "USDC", amount: "50.00", chain: "ethereum" }
  const { body: quote } = yield* daemon.call<QuoteObject>("POST", "/v1/quotes", quoting)

  // While one is open there, that chain is read all the time.
  yield* daemon.create({ chain: "polygon", currency: "USDC", amount: "1" })
  const made = new Map<Name, PaymentObject>()
  for (const name of names) {
    const of = {
      chain: "ethereum",
      currency: "USDC",
      amount: `${orders[name].asked * usd}`,
      merchantRef: name
    } as const
    const more = name === "quoted" ? { quoteId: quote.id } : {}
    made.set(name, yield* daemon.create({ ...of, ...more, expiresIn: name === "under" || name === "late" ? 60 : 3600 }))
  }
  const payment = (name: Name) => made.get(name) ?? expect.unreachable()
  const pays = (name: Name) =>
    Effect.forEach(orders[name].paid, (amount) => {
      const currency = name === "token" ? "USDT" : "USDC"
      return pay(name === "chain" ? polygon : chain, { ...payment(name), currency, amount: `${amount * usd}` })
    })
  yield* daemon.call("POST", `/v1/payments/${payment("cancelled").id}/cancel`, {})
  for (const name of names) if (name !== "late") yield* pays(name)
  for (const name of ["exact", "over", "twice", "quoted", "refunded", "collected"] as const) {
    yield* until(payment(name), "confirmed")
  }
  for (const one of [chain, polygon]) yield* mineAt(one, (yield* one.head).timestamp + 120)
  yield* until(payment("late"), "expired")
  yield* pays("late")

  const open = yield* eventually(exceptions, (all) => all.length === 7)
  const exceptionOf = (name: Name) => open.find(({ address }) => address === payment(name).address)?.id ?? ""
  const done = (args: ReadonlyArray<string>) =>
    Effect.map(onceDeep([...args, ...config]), ({ code, stderr }) => expect([code, stderr]).toEqual([0, ""]))
  for (const name of ["token", "chain"] as const) yield* done(["payments", "accept", exceptionOf(name)])
  yield* done(["payments", "accept", payment("accepted").id])

  const customer = someone()
  const refund = (name: Name, amount: bigint, over: object) =>
    Effect.map(
      eventually(
        daemon.call<RefundObject>("POST", `/v1/payments/${payment(name).id}/refunds`, {
          amount: `${amount * usd}`,
          ...over
        }),
        ({ status }) => status < 300
      ),
      ({ body }) => body.id
    )
  const becomes = (id: string, status: RefundObject["status"]) =>
    eventually(
      Effect.map(daemon.call<RefundObject>("GET", `/v1/refunds/${id}`), ({ body }) => body),
      (found) => found.status === status
    )
  const none = yield* refund("cancelled", 18n, { txHash: `0x${"deadbeef".padStart(64, "0")}` })
  expect(yield* daemon.payment(payment("cancelled"))).toMatchObject({ refunded: `${18n * usd}`, kept: "0" })
  const database = new Database(home.database)
  database.prepare("UPDATE refunds SET changed_at = changed_at - 3600000 WHERE id = ?").run(none)
  database.close()
  const byHand = yield* chain.payToken({ symbol: "USDC", to: customer, amount: 20n * usd })
  // The lookup asks at once when a transaction is named, and then every 15 seconds.
  yield* chain.mine(confirmations)
  yield* becomes(yield* refund("twice", 20n, { txHash: byHand }), "final")
  yield* becomes(none, "not_found")
  const whole = yield* refund("refunded", 45n, { to: customer })
  for (const [name, id] of [
    ["surplus", exceptionOf("over")],
    ["whole", whole]
  ] as const) {
    yield* plan(name, "--refund", id, ...(name === "surplus" ? ["--to", customer] : []))
    yield* sign(name)
    yield* sent(name)
  }
  expect(yield* chain.tokenBalance("USDC", customer)).toBe(72n * usd)
  const destination = someone()
  yield* plan("rest", "--to", destination)
  yield* sign("rest")
  yield* sent("rest")
  expect(planIn("rest").moves.map(({ address }) => address)).not.toContain(payment("cancelled").address)

  // Each order by itself.
  for (const name of names) {
    const { kept, received, status } = orders[name]
    const back = { received: `${received * usd}`, refunded: `${(received - kept) * usd}`, kept: `${kept * usd}` }
    expect({ name, ...(yield* daemon.payment(payment(name))) }).toMatchObject({ name, status, ...back })
  }

  const rows = yield* read(daemon)
  const sums = sumsOf(rows)
  // What the contracts say.
  const addresses = [...made.values()].map(({ address }) => address as Address)
  const at = (ask: (address: Address) => Effect.Effect<bigint, unknown>) =>
    Effect.map(Effect.forEach(addresses, ask), sumOf)
  const balances = {
    "ethereum USDC": yield* at((one) => chain.tokenBalance("USDC", one)),
    "ethereum USDT": yield* at((one) => chain.tokenBalance("USDT", one)),
    "ethereum ETH": yield* at((one) => chain.balance(one)),
    "polygon USDC": yield* at((one) => polygon.tokenBalance("USDC", one))
  }
  expect(sums.left).toEqual(balances)
  const collected = {
    "ethereum USDC": yield* chain.tokenBalance("USDC", destination),
    "ethereum USDT": yield* chain.tokenBalance("USDT", destination)
  }
  expect(balances["ethereum USDC"] + collected["ethereum USDC"] + 52n * usd).toBe(
    sumOf(Object.values(orders).map(({ received }) => received)) * usd
  )
  // What was kept is income, but for what is open.
  const kept = sumOf(Object.values(orders).map((one) => one.kept))
  expect(sums.income).toEqual({
    "ethereum USDC": (kept - 15n - 22n - 18n) * usd,
    "ethereum USDT": 26n * usd,
    "ethereum ETH": 0n,
    "polygon USDC": 35n * usd
  })
  expect(sums.unknown).toBe(0)

  // The same by command and by file, later at another rate, and from a backup.
  const asked = ["ledger", "--mode", "test", ...config]
  const withoutOwner = ({ account: _, mode: __, ...row }: LedgerRow & { account?: string; mode?: string }) => row
  const exported = Effect.map(tilld([...asked, "--csv"]), ({ stdout }) => rowsIn(stdout).map(withoutOwner))
  expect((yield* tilldJson<{ readonly rows: ReadonlyArray<LedgerRow> }>(asked)).rows.map(withoutOwner)).toEqual(rows)
  expect(yield* exported).toEqual(rows)
  yield* done(["backup", shop.file("backup.db")])
  yield* daemon.end("SIGTERM")
  yield* done(["restore", shop.file("backup.db"), "--force"])
  const again = yield* serveHere(home, daemon.key, { TILLD_RATES__FIXED__EUR: "1.25" })
  const next = yield* again.create({ chain: "ethereum", currency: "USDC", amount: `${10n * usd}` })
  yield* pay(chain, next)
  yield* eventually(again.payment(next), ({ status }) => status === "confirmed")
  const later = yield* read(again)
  expect(later.find(({ payment }) => payment === next.id)).toMatchObject({ worth: "8.00" })
  expect(later.filter(({ payment }) => payment !== next.id)).toEqual(rows)

  // The same in the portal, also once the account counts in another currency.
  yield* tilld(["accounts", "shop", "--currency", "USD", ...config])
  const visitor = yield* Effect.flatMap(linkBySocket(home), (link) => entered(visitorOf(again.url), link))
  const page = (path: string) => Effect.map(visitor.get(`/portal/a/default/test${path}`), ({ text }) => text)
  expect(rowsIn(yield* page("/ledger.csv")).map(withoutOwner)).toEqual(later)
  expect(sumsOf(later)).toMatchObject({ income: { "ethereum USDC": (kept - 15n - 22n - 18n + 10n) * usd } })
  const income = ["€245.27", "210.00 USDC", "35.00 USDC", "26.00 USDT"]
  for (const [path, title] of [
    ["", ">30 days<"],
    ["/payments", "Their income"],
    ["/ledger", "Income of all these rows"]
  ] as const) {
    expect(shownIn(yield* page(path), title)).toEqual(income)
  }
})
