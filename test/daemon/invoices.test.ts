// Invoices as shops and customers have them: the built daemon, real chains, a real receiver, a real browser.
import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Page } from "playwright-core"
import type { Restored } from "../../src/Backup/restore.ts"
import { checkoutTexts } from "../../src/Checkout/languages.ts"
import { amountText, fiatText } from "../../src/Checkout/wording.ts"
import { type EventKind, StatusEventKind } from "../../src/Domain/Event.ts"
import {
  chosenBy,
  InvoiceEventKind,
  type InvoiceObject,
  type Language,
  type PaymentChoice
} from "../../src/Domain/Invoice.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { foreignWords } from "../Checkout/saidTexts.ts"
import { visitor } from "../lib/browser.ts"
import { confirmations, type Daemon, localChain, makeHome, mineAt, pay, rows, serve } from "../lib/daemon.ts"
import { type Inbox, makeInbox } from "../lib/inbox.ts"
import { listenHere } from "../lib/loopback.ts"
import { movedClock } from "../lib/movedClock.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { tilldJson } from "../lib/tilld.ts"

/** A source of prices as Coinbase has them, on this machine: what one dollar buys. A euro is 1.25 USD. */
const priceSource = Effect.suspend(() => {
  const rates = { EUR: "0.8", ETH: "0.0004", USDC: "1", USDT: "1", POL: "4" }
  return listenHere(createServer((_, response) => response.end(JSON.stringify({ data: { currency: "USD", rates } }))))
})

const chainsOf = (base: LocalChain, polygon: LocalChain) =>
  new Map([["base", base] as const, ["polygon", polygon] as const])

/** Both chains are read often: where no payment is open, late money would be seen after minutes. */
const keepBusy = ({ create }: Daemon) =>
  Effect.forEach(["base", "polygon"] as const, (chain) => create({ chain, currency: "USDC", amount: "1" }))

class Shop extends Context.Tag("test/Shop")<
  Shop,
  {
    readonly base: LocalChain
    readonly polygon: LocalChain
    readonly daemon: Daemon
    readonly inbox: Inbox
    /** From now on no source has a price. */
    readonly stopPrices: Effect.Effect<void>
  }
>() {
  static readonly layer = Layer.scoped(
    Shop,
    Effect.gen(function* () {
      const base = yield* localChain("base")
      const polygon = yield* localChain("polygon")
      const inbox = yield* makeInbox()
      const home = yield* makeHome({ chains: chainsOf(base, polygon), caFile: inbox.caFile })
      const { close, url } = yield* priceSource
      // A source that can be stopped, in place of the fixed prices.
      const sources = `sources = ["coinbase"]\ncoinbase_url = "${url}"`
      writeFileSync(home.config, readFileSync(home.config, "utf8").replace(/sources = .*\nfixed = .*/, sources))
      const daemon = yield* serve(home, undefined, movedClock())
      const named = [...InvoiceEventKind.literals, ...StatusEventKind.literals, "payment.exception"]
      const secret = "whsec_a-secret-of-the-merchant"
      for (const [path, events] of Object.entries({ named, payments: StatusEventKind.literals })) {
        const made = yield* daemon.call("POST", "/v1/webhooks", { url: `${inbox.url}/${path}`, events, secret })
        expect(made.status).toBe(201)
      }
      const quote = { fromCurrency: "EUR", toCurrency: "USDC", amount: "1", chain: "base" }
      yield* Effect.repeat(daemon.call("POST", "/v1/quotes", quote), { until: ({ status }) => status === 201 })
      yield* keepBusy(daemon)
      return { base, polygon, daemon, inbox, stopPrices: close }
    })
  )
}

const chosen = "payment.created"
const replaced = ["payment.created", "payment.expired"] as const
const confirmed = ["payment.detecting", "payment.confirmed"] as const
/** All blocks of its confirmations are read at once: it is never in between. */
const paidAtOnce = ["invoice.created", "invoice.paid"] as const

const price = { amount: "25.00", currency: "EUR" } as const
let orders = 4000

/** What a page says, to eyes and to screen readers. */
const saidBy = async (page: Page) => {
  const labels = await page
    .locator("[aria-label], [title], [alt]")
    .evaluateAll((all) => all.flatMap((one) => ["aria-label", "title", "alt"].map((name) => one.getAttribute(name))))
  return [await page.title(), ...(await page.locator("body").allInnerTexts()), ...labels].join("\n")
}

/** What a shop does with an invoice, and what its customer does with a phone on its page. */
const sceneOf = (
  { call, url }: Daemon,
  { checkoutUrl, id }: InvoiceObject,
  language: Language,
  javaScriptEnabled = true
) =>
  Effect.gen(function* () {
    const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, javaScriptEnabled }
    const { context, strayed } = yield* visitor(url, phone)
    const page = yield* Effect.promise(() => context.newPage())
    const address = url + new URL(checkoutUrl).pathname
    return {
      read: Effect.map(call<InvoiceObject>("GET", `/v1/invoices/${id}`), ({ body }) => body),
      choose: <A = InvoiceObject>(choice: PaymentChoice) =>
        call<A>("POST", `/v1/invoices/${id}/choose`, chosenBy(choice)),
      cancel: call<InvoiceObject>("POST", `/v1/invoices/${id}/cancel`),
      page,
      t: checkoutTexts[language],
      money: (units: string) => amountText(BigInt(units), 6, "USDC", language),
      opens: Effect.promise(() => page.goto(address)),
      /** Waits for a state of the page, which then says these texts and nothing in another language. */
      shows: (state: string, ...texts: ReadonlyArray<string>) =>
        Effect.promise(async () => {
          await page.locator(`main[data-state="${state}"]`).waitFor()
          const said = await saidBy(page)
          for (const text of texts) expect(said).toContain(text)
          expect([foreignWords(said, language), strayed]).toEqual([[], []])
        }),
      taps: (role: "button" | "link", name: string) => Effect.promise(() => page.getByRole(role, { name }).tap()),
      /** Chooses as the form of the page does. */
      posts: (choice: PaymentChoice) =>
        Effect.promise(async () => {
          const sent = await context.request.post(`${address}/choose`, { form: { choice }, maxRedirects: 0 })
          return { status: sent.status(), location: sent.headers()["location"] }
        })
    }
  })

/** An order of 25 EUR at the shop, in a language. */
const order = (language: Language, over: object = {}, javaScriptEnabled = true) =>
  Effect.gen(function* () {
    const shop = yield* Shop
    const body = { price, merchantRef: `${++orders}`, language, ...over }
    const { body: invoice } = yield* shop.daemon.call<InvoiceObject>("POST", "/v1/invoices", body)
    return { ...shop, invoice, ...(yield* sceneOf(shop.daemon, invoice, language, javaScriptEnabled)) }
  })

/** Of a choice without a price. */
type Refusal = { readonly error: { readonly code: string; readonly details: { readonly available: Array<string> } } }

const statusesOf = ({ payments }: InvoiceObject) =>
  payments.map(({ failureReason = "", status }) => `${status} ${failureReason}`.trim())
const lastOf = ({ payment, payments }: InvoiceObject): PaymentObject =>
  payments.find(({ id }) => id === payment) ?? expect.unreachable("nothing is chosen")

/** What must hold of every invoice: one payment waits at most, the one chosen last, and no address is given twice. */
const checkSound = (invoice: InvoiceObject) => {
  const waiting = invoice.payments.filter(({ status }) => status === "pending").map(({ id }) => id)
  expect(waiting).toEqual(invoice.status === "open" && invoice.payment !== undefined ? [invoice.payment] : [])
  expect(new Set(invoice.payments.map(({ address }) => address)).size).toBe(invoice.payments.length)
}

liveSuite(Shop.layer, "an invoice", (test) => {
  test("is chosen for by one tap, chosen for again, paid and told to those who asked, without scripts", function* () {
    const at = yield* order("de", {}, false)
    const { daemon, inbox, invoice, money, opens, polygon, read, shows, t, taps } = at
    yield* opens
    yield* shows("choosing", t.choose(fiatText("25", "EUR", "de")))
    yield* taps("button", t.onNetwork("USDC", "Base"))
    yield* shows("waiting", t.headline.waiting(money("31250000"), "Base"))
    yield* taps("link", t.changeChoice)
    yield* shows("choosing", t.alreadySent)
    yield* taps("link", t.headline.waiting(money("31250000"), "Base"))
    yield* taps("link", t.changeChoice)
    yield* taps("button", t.onNetwork("USDC", "Polygon"))
    yield* shows("waiting", t.headline.waiting(money("31250000"), "Polygon"))
    const open = yield* read
    checkSound(open)
    yield* pay(polygon, lastOf(open))
    yield* polygon.mine()
    yield* shows("seen", t.headline.seen)
    yield* polygon.mine(confirmations - 1)
    yield* shows("paid", t.headline.paid)

    const deliveries = yield* inbox.take("/named", invoice, "invoice.created", "invoice.processing", "invoice.paid")
    expect(deliveries.map(({ event }) => event.data.status)).toEqual(["open", "processing", "paid"])
    expect(deliveries.at(-1)?.event.data).toEqual(yield* read)
    const { id, merchantRef } = invoice
    for (const { event } of [
      ...(yield* inbox.take("/named", open.payments[0] ?? invoice, ...replaced)),
      ...(yield* inbox.take("/named", lastOf(open), chosen, ...confirmed))
    ]) {
      expect(event.data.invoice).toEqual({ id, merchantRef, price })
    }
    const urls = "SELECT DISTINCT url FROM deliveries JOIN events ON events.id = event_id WHERE events.payment_id = ?"
    expect(yield* rows(daemon.home, urls, id)).toEqual([{ url: `${inbox.url}/named` }])
  })

  test("is paid by money for a former choice where the shop accepts it, and asks for no other", function* () {
    const { base, choose, daemon, inbox, invoice, money, opens, read, shows, t } = yield* order("fr")
    const former = lastOf((yield* choose("USDC-base")).body)
    const last = lastOf((yield* choose("USDC-polygon")).body)
    yield* opens
    yield* shows("waiting")
    yield* pay(base, former)
    yield* base.mine(confirmations)
    yield* inbox.take("/named", former, ...replaced, "payment.exception")
    const held = yield* daemon.call<{ exceptions: [{ id: string; kind: string }] }>("GET", `/v1/payments/${former.id}`)
    const [{ id, kind }] = held.body.exceptions
    expect([kind, (yield* read).status]).toEqual(["found_late", "open"])
    yield* opens
    yield* shows("waiting", t.headline.former, t.extra.former(money(former.amount), "Base", "", ""), t.eitherWay)
    yield* daemon.call("POST", `/v1/exceptions/${id}/resolve`, { action: "accept" })
    yield* inbox.take("/named", invoice, ...paidAtOnce)
    yield* inbox.take("/named", last, ...replaced)
    const ended = yield* read
    expect([ended.status, ...statusesOf(ended)]).toEqual(["paid", "confirmed", "expired cancelled"])
    yield* shows("paid", t.headline.paid)
  })

  test("paid by half until its time is over has failed, and its page says how much came", function* () {
    const at = yield* order("es", { expiresIn: 60 })
    const { choose, inbox, invoice, money, opens, polygon, read, shows, t } = at
    const payment = lastOf((yield* choose("USDC-polygon")).body)
    yield* opens
    yield* pay(polygon, { ...payment, amount: "15625000" })
    yield* polygon.mine()
    yield* shows("partPaid", t.headline.partPaid(money("15625000")))
    yield* mineAt(polygon, Math.floor(Date.parse(invoice.expiresAt) / 1000) + 1, confirmations)
    yield* inbox.take("/named", invoice, "invoice.created", "invoice.processing", "invoice.failed")
    yield* inbox.take("/payments", payment, chosen, "payment.detecting", "payment.failed")
    expect(statusesOf(yield* read)).toEqual(["failed insufficient_amount"])
    yield* shows("failed", t.headline.tooLittle(money("15625000"), money("31250000")))
  })

  test("paid by too much is paid, and its page says what is the customer's", function* () {
    const { base, choose, inbox, invoice, money, opens, shows, t, taps } = yield* order("pt")
    const payment = lastOf((yield* choose("USDC-base")).body)
    yield* opens
    // A customer who looks at what else there is sees it as well.
    yield* taps("link", t.changeChoice)
    yield* shows("choosing")
    yield* pay(base, { ...payment, amount: "36240000" })
    yield* base.mine(confirmations)
    yield* inbox.take("/named", invoice, ...paidAtOnce)
    yield* shows("paid", t.extra.overpaid(money("4990000"), "Base", "USDC", "Base"))
  })

  test("chosen for by four at once has one payment that waits, and no address is lost", function* () {
    for (let round = 0; round < 4; round++) {
      const { base, choose, daemon, inbox, invoice, polygon, posts, read } = yield* order("en")
      const answers = yield* Effect.all(
        [posts("USDC-base"), choose("USDT-polygon"), posts("USDC-polygon"), choose("USDC-base")],
        { concurrency: "unbounded" }
      )
      expect(answers.map(({ status }) => status)).toEqual([303, 200, 303, 200])
      const raced = yield* read
      checkSound(raced)
      // The last choice pays; what comes for every other is the shop's to decide on.
      for (const payment of raced.payments) yield* pay(payment.chain === "base" ? base : polygon, payment)
      yield* base.mine(confirmations)
      yield* polygon.mine(confirmations)
      for (const payment of raced.payments) {
        const kinds: ReadonlyArray<EventKind> =
          payment.id === raced.payment ? [chosen, ...confirmed] : [...replaced, "payment.exception"]
        yield* inbox.take("/named", payment, ...kinds)
        const { exceptions = [] } = (yield* daemon.payment(payment)) as { exceptions?: ReadonlyArray<object> }
        expect(exceptions).toMatchObject(payment.id === raced.payment ? [] : [{ amount: payment.amount }])
      }
      yield* inbox.take("/named", invoice, ...paidAtOnce)
    }
  })

  test("cancelled and chosen for at once is cancelled, with everything that was chosen", function* () {
    for (let round = 0; round < 6; round++) {
      const { cancel, choose, opens, posts, read, shows, t } = yield* order("de")
      const acts = [cancel, choose("USDC-base"), posts("USDC-polygon"), choose("ETH-base")] as const
      // Each has its turn to begin.
      const turned = [...acts.slice(round % 4), ...acts.slice(0, round % 4)]
      const answers = yield* Effect.all(turned, { concurrency: "unbounded" })
      for (const { status } of answers) expect([200, 303, 409]).toContain(status)
      const ended = yield* read
      checkSound(ended)
      expect(ended.status).toBe("cancelled")
      for (const status of statusesOf(ended)) expect(status).toBe("expired cancelled")
      yield* opens
      yield* shows("cancelled", t.headline.cancelled)
    }
  })

  test("survives a restore between choice and payment: money for the lost choice is found, another is made", function* () {
    const { base, polygon } = yield* Shop
    const home = yield* makeHome({ chains: chainsOf(base, polygon), prices: { EUR: "1.25" } })
    const config = ["--config", home.config]
    const file = join(home.folder, "backup.db")
    const first = yield* serve(home)
    yield* keepBusy(first)
    const { body: invoice } = yield* first.call<InvoiceObject>("POST", "/v1/invoices", {
      price,
      merchantRef: "8",
      language: "fr"
    })
    yield* tilldJson(["backup", file, ...config])
    const lost = lastOf((yield* (yield* sceneOf(first, invoice, "fr")).choose("USDC-base")).body)
    yield* first.end("SIGTERM")
    const restored = yield* tilldJson<Restored>(["restore", file, "--force", ...config])
    const { address } = lost
    expect(restored.lost).toMatchObject({ payments: 1 })

    const second = yield* serve(home, first.key)
    const { opens, read, shows, t, taps } = yield* sceneOf(second, invoice, "fr")
    expect(yield* read).toEqual(invoice)
    yield* opens
    yield* shows("choosing")
    yield* pay(base, lost)
    const unknown = "SELECT address, amount FROM exceptions WHERE kind = 'unknown_payment' AND payment_id IS NULL"
    const found = yield* Effect.iterate([] as ReadonlyArray<object>, {
      while: ({ length }) => length === 0,
      body: () => Effect.zipRight(Effect.zipRight(base.mine(), second.hasRead(base)), rows<object>(home, unknown))
    })
    expect(found).toEqual([{ address: address.toLowerCase(), amount: lost.amount }])
    yield* taps("button", t.onNetwork("USDC", "Base"))
    yield* shows("waiting")
    const again = yield* read
    expect([statusesOf(again), lastOf(again).address === address]).toEqual([["pending"], false])
    yield* pay(base, lastOf(again))
    yield* base.mine(confirmations)
    yield* shows("paid", t.headline.paid)
  })

  test("without a price for ten minutes is paid in what needs none, or not at all: nothing is made", function* () {
    const { daemon, stopPrices } = yield* Shop
    const ten = { price: { amount: "10.00", currency: "USD" }, currencies: ["USDC-base", "ETH-base", "USDC-polygon"] }
    const dollars = yield* order("en", ten)
    const euros = yield* order("es")
    yield* stopPrices
    yield* daemon.signal("SIGUSR2")
    yield* daemon.line("ten minutes later")
    for (const { choose, opens, page, posts, read, shows, t } of [euros, dollars]) {
      const available = t === dollars.t ? ["USDC-base", "USDC-polygon"] : []
      yield* opens
      yield* shows("choosing", t.unpriced)
      const enabled = page.locator("button[name=choice]:enabled")
      const values = yield* Effect.promise(() =>
        enabled.evaluateAll((all) => all.map((one) => one.getAttribute("value")))
      )
      expect(values.toSorted()).toEqual(available)
      const { body, status } = yield* choose<Refusal>("ETH-base")
      const { code, details } = body.error
      expect([status, code, details.available.toSorted()]).toEqual([503, "CHOICE_UNAVAILABLE", available])
      expect((yield* posts("ETH-base")).location).toMatch(/&choose$/)
      expect((yield* read).payments).toEqual([])
    }
    const { opens, read, shows, t, taps } = dollars
    yield* opens
    yield* taps("button", t.onNetwork("USDC", "Base"))
    yield* shows("waiting", "10\u00a0USDC")
    expect(lastOf(yield* read).amount).toBe("10000000")
  })
})
