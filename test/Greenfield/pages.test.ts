// The pages that shop plugins lead to, as shops and customers have them: in a real browser, from a shop's page of another site.
import { createServer } from "node:http"
import { expect } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { getAddress } from "viem"
import { storeShopChange } from "../../src/Auth/shops.ts"
import { defaultAccount } from "../../src/Auth.ts"
import { newRefundId } from "../../src/Domain/Ids.ts"
import { setRefund } from "../../src/Greenfield/pullPayments.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { visitor } from "../lib/browser.ts"
import { freePort, listenHere } from "../lib/loopback.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testRates, testSettings } from "../lib/settings.ts"
import { inTransaction, rows } from "../lib/store.ts"
import { startScans } from "../Payments/settling.ts"
import { mine, nextHead, payEth, plugin } from "./shopSystem.ts"

const base = { chain: "base", mode: "test" } as const
const usdc = { symbol: "USDC", address: getAddress(`0x${"a".repeat(40)}`), decimals: 6 } as const

const app = Layer.unwrapEffect(
  Effect.map(freePort, (port) =>
    testApp({
      server: { ...testSettings("").server, port, publicUrl: `http://127.0.0.1:${port}` },
      chains: [testChain({ tokens: [usdc] })],
      rates: testRates({ USDC: "1", ETH: "2500", EUR: "1.25" })
    })
  )
)

/** The checkout page of a shop, which uses the modal as the plugins for WooCommerce and OpenCart do. */
const shopPage = (tilld: string, invoice: string) => `<!doctype html><title>Shop</title>
<script src="${tilld}/modal/btcpay.js?ver=2.8.0"></script>
<button id="pay">Pay</button><button id="hide">Hide</button><ol></ol>
<script>
  const show = (text) => document.querySelector("ol").append(Object.assign(document.createElement("li"), { textContent: text }))
  window.btcpay.onModalWillEnter(() => show("enter"))
  window.btcpay.onModalWillLeave(() => show("leave"))
  document.querySelector("#pay").onclick = () => {
    window.btcpay.setApiUrlPrefix("${tilld}/")
    window.btcpay.showInvoice("${invoice}")
    window.btcpay.onModalReceiveMessage(({ data }) =>
      show(Object.prototype.toString.call(data) === "[object Object]" ? data.status + " " + (data.invoiceId === "${invoice}") : data)
    )
  }
  document.querySelector("#hide").onclick = () => window.btcpay.hideFrame()
</script>`

/** An order of 25 EUR, paid with ETH on base: 0.0125 ETH. */
const order = (orderId: string, over: object = {}) =>
  Effect.gen(function* () {
    const { host, port } = yield* TestApi
    const shop = yield* plugin()
    yield* startScans(nextHead(), base)
    const asked = {
      amount: "25.00",
      currency: "EUR",
      metadata: { orderId },
      checkout: { paymentMethods: ["ETH_BASE"] }
    }
    const { body: invoice } = yield* shop.ofStore("POST", "invoices", { ...asked, ...over })
    const [method] = (yield* shop.ofStore("GET", `invoices/${invoice.id}/payment-methods`)).body
    return { ...shop, invoice, id: invoice.id as string, method, origin: `http://${host}:${port}` }
  })

const price = 12_500_000_000_000_000n

/** A customer at the shop's page, which is of another site. `named`: the origins that the account names, given the shop's. */
const customer = Effect.fnUntraced(function* (orderId: string, named: (shop: string) => string) {
  const made = yield* order(orderId)
  const { id, origin } = made
  const server = createServer((_, response) =>
    response.setHeader("content-type", "text/html").end(shopPage(origin, id))
  )
  const { port } = yield* listenHere(server)
  const site = `http://localhost:${port}`
  yield* storeShopChange(defaultAccount, { frameOrigins: [named(site)] })
  const { context } = yield* visitor(origin)
  const page = yield* Effect.promise(async () => {
    await context.route(`${site}/**`, (route) => route.continue())
    const opened = await context.newPage()
    await opened.goto(`${site}/`)
    return opened
  })
  const frame = page.frameLocator("dialog iframe")
  const told = Effect.promise(() => page.locator("li").allTextContents())
  return { ...made, context, frame, page, site, told }
})

const location = ({
  headers,
  status
}: {
  readonly status: number
  readonly headers: { readonly location?: string | undefined }
}) => [status, headers.location]

liveSuite(app, "pages of shop plugins", (test) => {
  test("the modal opens over a shop's page, and tells it: new, paid, complete, closed", function* () {
    const { frame, method, page, told } = yield* customer("1", (site) => site)
    const shows = (state: string) => Effect.promise(() => frame.locator(`main[data-state="${state}"]`).waitFor())
    yield* Effect.promise(() => page.locator("#pay").click())
    yield* shows("waiting")
    yield* payEth(method.destination, price)
    yield* shows("seen")
    yield* mine
    yield* shows("paid")
    yield* Effect.promise(async () => {
      await frame.locator("main").press("Escape")
      await page.locator("dialog").waitFor({ state: "detached" })
    })
    const all = yield* told
    expect(all.filter((text, i) => text !== all[i - 1])).toEqual([
      ...["enter", "new true", "paid true", "complete true", "close", "leave"]
    ])
  })

  test("what the shop hides is not told as closed by the customer, and can be shown again", function* () {
    const { frame, page, told } = yield* customer("2", (site) => site)
    yield* Effect.promise(async () => {
      for (const _ of [1, 2]) {
        await page.locator("#pay").click()
        await frame.locator("main[data-state=waiting]").waitFor()
        // The frame is in the top layer: a shop hides it by its own script.
        await page.locator("#hide").evaluate((button) => (button as HTMLButtonElement).click())
        await page.locator("dialog").waitFor({ state: "detached" })
      }
    })
    const once = ["enter", "new true", "leave"]
    const all = yield* told
    expect(all.filter((text, i) => text !== all[i - 1])).toEqual([...once, ...once])
  })

  test("an origin that the account does not name frames nothing", function* () {
    const { frame, page, told } = yield* customer("3", () => "https://shop.example")
    const shown = yield* Effect.promise(async () => {
      const message = page.waitForEvent("console", (each) => each.text().includes("frame-ancestors"))
      await page.locator("#pay").click()
      await message
      return frame.locator("main").count()
    })
    expect([shown, yield* told]).toEqual([0, ["enter"]])
  })

  test("a message of another frame than the checkout's is not passed on", function* () {
    const { frame, page, told } = yield* customer("4", (site) => site)
    yield* Effect.promise(async () => {
      await page.locator("#pay").click()
      await frame.locator("main[data-state=waiting]").waitFor()
      await page.evaluate(async () => {
        const heard = new Promise((resolve) => window.addEventListener("message", resolve, { once: true }))
        window.postMessage({ tilld: "checkout", status: "confirmed", state: "paid" }, "*")
        await heard
      })
    })
    expect(yield* told).not.toContain("complete true")
  })

  test("the addresses that plugins build lead on, in the customer's language, and staff to the portal", function* () {
    const { call, id, invoice, origin } = yield* order("5", { checkout: {} })
    const checkout = yield* call("GET", `/i/${id}`)
    expect(location(checkout)).toEqual([303, expect.stringContaining(`${origin}/pay/`)])
    const to = checkout.headers.location
    expect(invoice.checkoutLink).toBe(`${origin}/i/${id}`)
    expect(location(yield* call("GET", `/i/${id}/USDC-BASE`))).toEqual([303, to])
    expect(location(yield* call("GET", `/invoice?id=${id}&view=modal`))).toEqual([303, to])
    expect(location(yield* call("GET", `/i/${id}?lang=fr`))).toEqual([303, `${to}?lang=fr`])
    expect(location(yield* call("GET", `/invoices/${id}`))).toEqual([
      303,
      `${origin}/portal/a/default/test/invoices/${id}`
    ])
    for (const path of ["/i/inv_none", "/invoice", "/invoice?id=", `/i/${id}x`, "/pull-payments/none", "/invoices/x"]) {
      expect([path, (yield* call("GET", path)).status]).toEqual([path, 404])
    }
    const { context } = yield* visitor(origin)
    const page = yield* Effect.promise(() => context.newPage())
    const heading = yield* Effect.promise(async () => {
      await page.goto(`${origin}/i/${id}?lang=de`)
      return page.locator("main").getAttribute("data-state")
    })
    expect(heading).toBe("choosing")
  })

  test("a refund's page takes an address once, and refuses those that nobody can spend from", function* () {
    const { call, id, method, ofStore, origin } = yield* order("A-6")
    yield* payEth(method.destination, price)
    yield* mine
    const asked = {
      name: "Refund of order A-6; <b>broken</b>",
      description: "<script>",
      amount: "25.00",
      currency: "EUR"
    }
    const { body: pull } = yield* ofStore("POST", "pull-payments", asked)
    expect(pull).toMatchObject({ viewLink: expect.stringContaining(`${origin}/pull-payments/`), archived: false })
    const { context, strayed } = yield* visitor(origin, { javaScriptEnabled: false })
    const page = yield* Effect.promise(() => context.newPage())
    const said = Effect.promise(() => page.locator("main").textContent())
    const names = (address: string) =>
      Effect.promise(async () => {
        await page.getByLabel(/^Your address/).fill(address)
        await page.getByRole("button").click()
        return page.locator("main").textContent()
      })
    yield* Effect.promise(() => page.goto(pull.viewLink))
    expect(yield* said).toContain("<b>broken</b>")
    expect(yield* said).toContain("0.0125 ETH on Base")
    const customers = getAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8")
    // A wrong checksum, a token, an address that tilld gave out, the address of nobody.
    expect(yield* names(customers.replace("C51812", "c51812"))).toContain("capitals do not match")
    expect(yield* names(usdc.address)).toContain("the address of a token")
    expect(yield* names(method.destination)).toContain("an address of the shop")
    expect(yield* names(`0x${"0".repeat(40)}`)).toContain("nobody can spend")
    expect(yield* rows("SELECT 1 FROM refunds")).toEqual([])
    expect(yield* names(customers)).toContain(customers)
    const refunds = yield* rows<object>("SELECT amount, currency, lower(receiver) AS receiver, status FROM refunds")
    expect(refunds).toEqual([
      { amount: `${price}`, currency: "ETH", receiver: customers.toLowerCase(), status: "noted" }
    ])
    const body = new URLSearchParams({ address: `0x${"5".repeat(40)}` }).toString()
    const headers = { "content-type": "application/x-www-form-urlencoded" }
    const again = yield* call("POST", new URL(pull.viewLink).pathname, { headers, body })
    expect([again.status, again.text.includes(customers)]).toEqual([200, true])
    expect(yield* rows("SELECT 1 FROM refunds")).toHaveLength(1)
    // Nor does one that was sent at the same moment, and read the page before.
    expect(yield* inTransaction(setRefund(pull.id, newRefundId()))).toBe(false)
    // All of the order goes back: nothing is left to ask for.
    const more = yield* ofStore("POST", `invoices/${id}/refund`, { refundVariant: "Fiat" })
    expect([more.status, more.body[0].path]).toEqual([422, "amount"])
    expect(strayed).toEqual([])
  })
})
