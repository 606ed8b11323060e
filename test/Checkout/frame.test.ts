// A shop's own page opens the checkout over itself, by the script that shops are given: `dist/checkout.js`.
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { storeShopChange } from "../../src/Auth/shops.ts"
import { defaultAccount } from "../../src/Auth.ts"
import { testApp } from "../lib/api.ts"
import { visitor } from "../lib/browser.ts"
import { injectWallet, type WalletAnswer } from "../lib/injectedWallet.ts"
import { listenHere } from "../lib/loopback.ts"
import { root } from "../lib/processes.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { newPayment } from "./newPayment.ts"

const script = readFileSync(join(root, "dist/checkout.js"))

/** A page of a shop with a link to the checkout, and the callbacks that its script got. */
const shopPage = (checkoutUrl: string) => `<!doctype html><title>Shop</title>
<a href="${checkoutUrl}" data-tilld-checkout>Pay with crypto</a>
<ol></ol>
<script type="module">
  import { checkoutButtons } from "/checkout.js"
  const show = (text) => document.querySelector("ol").append(Object.assign(document.createElement("li"), { textContent: text }))
  checkoutButtons(document, { onPaid: () => show("paid"), onClose: (status) => show("closed " + status) })
</script>`

/** The snippet of docs/checkout.md, in a page. */
const readmePage = (checkoutUrl: string) => {
  const [, snippet = ""] = /^```html\n([\s\S]*?)^```$/m.exec(readFileSync(join(root, "docs/checkout.md"), "utf8")) ?? []
  return `<!doctype html><title>Shop</title>${snippet.replace("CHECKOUT_URL", checkoutUrl)}`
}

/**
 * The shop's server: a page at every path, and the script. Returns its origin, which browsers call another one: of another site
 * than the checkout as `localhost`, and of the same one as `127.0.0.1`.
 */
const startShop = (page: string, host: "localhost" | "127.0.0.1") =>
  Effect.suspend(() => {
    const server = createServer(({ url }, response) => {
      const isScript = url === "/checkout.js"
      response.setHeader("content-type", isScript ? "text/javascript" : "text/html").end(isScript ? script : page)
    })
    return Effect.map(listenHere(server), ({ port }) => `http://${host}:${port}`)
  })

/** The customer's wallet. */
const answers: Readonly<Record<string, WalletAnswer>> = {
  eth_requestAccounts: { result: ["0x70997970C51812dc3A010C7d01b50e0d17dc79C8"] },
  wallet_switchEthereumChain: { result: null },
  eth_sendTransaction: { result: `0x${"ab".repeat(32)}` }
}

/** A customer at a shop before a payment of ETH. `named`: the origins that the account names, given the shop's. */
const customer = (
  named: (shop: string) => string,
  pageOf = shopPage,
  shopHost: "localhost" | "127.0.0.1" = "localhost"
) =>
  Effect.gen(function* () {
    const { cancel, change, origin, path } = yield* newPayment({ currency: "ETH" })
    const shop = yield* startShop(pageOf(origin + path), shopHost)
    yield* storeShopChange(defaultAccount, { frameOrigins: [named(shop)] })
    const { context } = yield* visitor(origin)
    const page = yield* Effect.promise(async () => {
      await context.route(`${shop}/**`, (route) => route.continue())
      const opened = await context.newPage()
      await opened.goto(`${shop}/`)
      return opened
    })
    return { cancel, change, context, page }
  })

const frameOf = (page: Page) => page.frameLocator("dialog iframe")

liveSuite(testApp(), "the checkout over a shop's page", (test) => {
  test("opens by its link at a site that the account names, follows the payment, and is closed by a key", function* () {
    const { cancel, page } = yield* customer((shop) => shop)
    yield* Effect.promise(async () => {
      await page.getByRole("link", { name: "Pay with crypto" }).click()
      await frameOf(page).getByRole("heading", { level: 1, name: /^Pay / }).waitFor()
    })
    yield* cancel
    const closed = yield* Effect.promise(async () => {
      await frameOf(page).locator("main.cancelled").waitFor()
      // Within the checkout, and then by the shop's own button.
      await frameOf(page).locator("main").press("Escape")
      await page.locator("dialog").waitFor({ state: "detached" })
      await page.getByRole("link", { name: "Pay with crypto" }).click()
      await frameOf(page).locator("main.cancelled").waitFor()
      await page.getByRole("button", { name: "Close" }).click()
      await page.locator("dialog").waitFor({ state: "detached" })
      return page.locator("li").allTextContents()
    })
    expect(closed).toEqual(["closed expired", "closed expired"])
  })

  test("tells the shop that it is pending also once a wallet has sent it, and it is opened again", function* () {
    // Over a page of another site the browser keeps nothing for the checkout.
    const { context, page } = yield* customer((shop) => shop, shopPage, "127.0.0.1")
    const closed = yield* Effect.promise(async () => {
      await injectWallet(context, "Fox", async ({ method }) => answers[method] ?? { code: -32601 })
      const sent = frameOf(page).getByRole("heading", { level: 1, name: "Sent: waiting for the network" })
      const open = () => page.getByRole("link", { name: "Pay with crypto" }).click()
      const close = async () => {
        await sent.waitFor()
        await page.getByRole("button", { name: "Close" }).click()
        await page.locator("dialog").waitFor({ state: "detached" })
      }
      await open()
      await frameOf(page).getByRole("button", { name: "Pay with Fox" }).click()
      await close()
      await open()
      await close()
      return page.locator("li").allTextContents()
    })
    expect(closed).toEqual(["closed pending", "closed pending"])
  })

  test("brings the customer to the shop's next page once it is paid, as docs/checkout.md has it", function* () {
    const { change, page } = yield* customer((shop) => shop, readmePage)
    yield* change("status = 'confirmed', confirmed_at = 1, ended_at = 1")
    yield* Effect.promise(async () => {
      await page.getByRole("link", { name: "Pay with crypto" }).click()
      await page.waitForURL("**/thank-you")
    })
    expect(new URL(page.url()).pathname).toBe("/thank-you")
  })

  test("stays empty at a site that the account does not name", function* () {
    const { page } = yield* customer(() => "https://shop.example")
    const refused = yield* Effect.promise(async () => {
      const message = page.waitForEvent("console", (each) => each.text().includes("frame-ancestors"))
      await page.getByRole("link", { name: "Pay with crypto" }).click()
      await message
      return frameOf(page).locator("main").count()
    })
    expect(refused).toBe(0)
  })

  test("has a cross that is seen, whatever the colours of the shop and of the checkout", function* () {
    const { page } = yield* customer((shop) => shop)
    yield* Effect.promise(async () => {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme })
        await page.evaluate(() => Object.assign(document.body.style, { color: "#0f1216", colorScheme: "light dark" }))
        await page.getByRole("link", { name: "Pay with crypto" }).click()
        const { color, ground } = await page.getByRole("button", { name: "Close" }).evaluate((button) => {
          const { backgroundColor, color } = getComputedStyle(button)
          return { color, ground: backgroundColor }
        })
        const light = (text: string) =>
          (text.match(/\d+/g) ?? []).slice(0, 3).reduce((sum, each) => sum + Number(each), 0)
        expect(Math.abs(light(color) - light(ground))).toBeGreaterThan(500)
        // A key is for the checkout's script, which may not have come yet.
        await page.getByRole("button", { name: "Close" }).click()
        await page.locator("dialog").waitFor({ state: "detached" })
      }
    })
  })

  test("weighs at most 3 KB for the shop", function* () {
    expect(script.length).toBeLessThanOrEqual(3_000)
    yield* Effect.void
  })
})
