// The whole way of a payer: a real browser, a real daemon, a real chain.
import { expect } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { BrowserContextOptions, Locator, Page } from "playwright-core"
import type { Address, Hex } from "viem"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { visitor } from "../lib/browser.ts"
import { type Daemon, localChain, makeHome, type Order, pay, serveHere } from "../lib/daemon.ts"
import { injectWallet } from "../lib/injectedWallet.ts"
import { readQr } from "../lib/qr.ts"
import { liveSuite } from "../lib/scopedTest.ts"

class Shop extends Context.Tag("test/Shop")<Shop, { readonly daemon: Daemon; readonly chain: LocalChain }>() {
  static readonly layer = Layer.scoped(
    Shop,
    Effect.gen(function* () {
      const chain = yield* localChain("base")
      return { chain, daemon: yield* serveHere(yield* makeHome({ chains: new Map([["base", chain]]) })) }
    })
  )
}

const order: Order = { chain: "base", currency: "USDC", amount: "25000000" }

/** A payment, and a visitor on its page. */
const checkout = (over: Partial<Order> = {}, options: BrowserContextOptions = {}) =>
  Effect.gen(function* () {
    const { chain, daemon } = yield* Shop
    const payment = yield* daemon.create({ ...order, ...over })
    const { context, strayed } = yield* visitor(daemon.url, options)
    const open = Effect.promise(async () => {
      const page = await context.newPage()
      await page.goto(daemon.url + new URL(payment.checkoutUrl).pathname)
      return page
    })
    return { chain, context, daemon, open, payment, strayed }
  })

const heading = (page: Page, text: string | RegExp) => page.getByRole("heading", { level: 1, name: text })

const appears = (locator: Locator) => Effect.promise(() => locator.waitFor())

/** Sends a part of a payment's money, and mines it. */
const send = (chain: LocalChain, payment: PaymentObject, amount: string) =>
  Effect.zipRight(pay(chain, { ...payment, amount }), chain.mine())

const code = (page: Page) => Effect.promise(() => readQr(page.locator(".codes svg")))

liveSuite(Shop.layer, "a payer at the checkout page", (test) => {
  test("sees the payment go from waiting to paid, each confirmation on the way, without loading the page", function* () {
    const { chain, open, payment, strayed } = yield* checkout()
    const page = yield* open
    const loads: Array<string> = []
    page.on("load", () => loads.push(page.url()))
    yield* appears(heading(page, "Pay 25 USDC on Base"))
    yield* send(chain, payment, payment.amount)
    yield* appears(heading(page, "Payment seen"))
    yield* appears(page.getByText("1 of 3 confirmations"))
    yield* appears(page.locator(".facts .hash"))
    expect(yield* Effect.promise(() => page.locator("progress").getAttribute("value"))).toBe("1")
    yield* chain.mine()
    yield* appears(page.getByText("2 of 3 confirmations"))
    expect(yield* Effect.promise(() => page.getByRole("status").textContent())).toBe("Payment seen")
    yield* chain.mine()
    yield* appears(heading(page, "Paid"))
    expect(yield* Effect.promise(() => page.title())).toBe("Paid · 25\u00a0USDC")
    expect([loads, strayed]).toEqual([[], []])
  })

  test("a payer who has sent a part is asked for the rest, keeps place and choice, and tops it up", function* () {
    const { chain, daemon, open, payment } = yield* checkout()
    const page = yield* open
    yield* Effect.promise(async () => {
      await page.getByRole("link", { name: "Address only" }).click()
      await page.getByRole("img", { name: /^Address only/ }).waitFor()
      await page.locator("#copy-address").focus()
    })
    yield* send(chain, payment, "10000000")
    yield* appears(heading(page, "15 USDC still missing"))
    yield* appears(page.getByText("10 USDC of 25 USDC has arrived and counts."))
    yield* Effect.promise(async () => {
      expect(await page.evaluate(() => document.activeElement?.id)).toBe("copy-address")
      await page.getByRole("img", { name: /^Address only/ }).waitFor()
      await page.getByRole("link", { name: "Payment", exact: true }).click()
      await page.getByRole("img", { name: /^Payment/ }).waitFor()
    })
    const { paymentUri } = yield* daemon.payment(payment)
    expect(paymentUri).toMatch(/uint256=15000000$/)
    expect(yield* code(page)).toBe(paymentUri)
    yield* send(chain, payment, "15000000")
    yield* appears(heading(page, "Payment seen"))
    yield* chain.mine(2)
    yield* appears(heading(page, "Paid"))
  })

  test("pays with a wallet of the browser, which shows the transaction that the payment is confirmed by", function* () {
    const { chain, context, daemon, open, payment } = yield* checkout()
    const accounts = yield* chain.rpc<ReadonlyArray<Address>>("eth_accounts")
    const run = yield* Effect.runtime<never>()
    const sent: Array<Hex> = []
    yield* Effect.promise(() =>
      injectWallet(context, "Fox", async ({ method, params = [] }) => {
        if (method === "eth_requestAccounts") return { result: accounts.slice(1, 2) }
        if (method === "wallet_switchEthereumChain") return { result: null }
        const [{ data, to, value }] = params as [{ data: Hex; to: Address; value: Hex }]
        const hash = await Effect.runPromise(Effect.provide(chain.send({ to, data, value: BigInt(value) }), run))
        sent.push(hash)
        return { result: hash }
      })
    )
    const page = yield* open
    yield* Effect.promise(() => page.getByRole("button", { name: "Pay with Fox" }).click())
    const shown = page.locator(".wallets code")
    yield* appears(shown)
    expect(yield* Effect.promise(() => shown.textContent())).toBe(sent[0])
    yield* chain.mine(3)
    yield* appears(heading(page, "Paid"))
    expect(yield* daemon.payment(payment)).toMatchObject({ status: "confirmed", txHash: sent[0] })
  })
})
