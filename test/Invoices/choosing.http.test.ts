import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { type Answered, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"

const usdc = { symbol: "USDC", address: `0x${"a".repeat(40)}`, decimals: 6 } as const
const app = testApp({
  chains: [testChain({ tokens: [usdc] }), testChain({ chain: "polygon", tokens: [usdc] })],
  rates: testRates({ USDC: "1", EUR: "1.10" })
})

let orders = 0

/** An invoice of 25 EUR, and its page. */
const shop = (over: object = {}) =>
  Effect.gen(function* () {
    const { call, newKey } = yield* TestApi
    const key = yield* newKey()
    orders += 1
    const json = { price: { amount: "25", currency: "EUR" }, merchantRef: `order ${orders}`, ...over }
    const { body } = yield* call("POST", "/v1/invoices", { key, json })
    const { pathname } = new URL(body.checkoutUrl)
    const headers = { "content-type": "application/x-www-form-urlencoded" }
    return {
      id: body.id as string,
      path: pathname,
      page: (query = "") => call("GET", `${pathname}${query}`),
      choose: (choice: string, query = "?lang=en") =>
        call("POST", `${pathname}/choose${query}`, { body: `choice=${choice}`, headers }),
      read: Effect.map(call("GET", `/v1/invoices/${body.id}`, { key }), (answer) => answer.body),
      on: (act: string) => call("POST", `/v1/invoices/${body.id}/${act}`, { key })
    }
  })

const stateOf = ({ text }: Answered) => /data-state="(\w+)"/.exec(text)?.[1]
const valuesOf = ({ text }: Answered) =>
  Array.from(text.matchAll(/name="choice" value="([^"]+)"/g), ([, value]) => value)

liveSuite(app, "the page of an invoice", (test) => {
  test("offers what can be chosen; a choice leads back to it, with what to pay", function* () {
    const { choose, page, path, read } = yield* shop()
    const first = yield* page()
    expect([first.status, stateOf(first)]).toEqual([200, "choosing"])
    expect(valuesOf(first).toSorted()).toEqual(["ETH-base", "USDC-base", "USDC-polygon"])
    // It has no price here.
    expect(first.text).toMatch(/value="ETH-base" disabled/)
    expect(first.headers["cache-control"]).toBe("no-store")

    const chosen = yield* choose("USDC-base")
    expect([chosen.status, chosen.headers.location]).toEqual([303, `${path}?lang=en`])
    const [payment] = (yield* read).payments
    expect(payment).toMatchObject({ currency: "USDC", chain: "base", amount: "27500000", status: "pending" })
    const asks = yield* page()
    expect(stateOf(asks)).toBe("waiting")
    expect(asks.text).toContain(`href="${payment.paymentUri.replace("&", "&amp;")}"`)
    expect(asks.text.replaceAll("\u00a0", " ")).toContain("€25.00")
  })

  test("leads back to the choice while nothing was seen, and no longer", function* () {
    const { choose, page, read } = yield* shop()
    yield* choose("USDC-base")
    expect((yield* page()).text).toContain('href="?lang=en&amp;choose"')
    const again = yield* page("?choose")
    expect([stateOf(again), again.text.includes("The rate has expired.")]).toEqual(["choosing", false])
    yield* choose("USDC-polygon")
    const { payment } = yield* read
    yield* execute("UPDATE payments SET status = 'detecting', amount_received = '1' WHERE id = ?", [payment])
    yield* execute("UPDATE invoices SET status = 'processing' WHERE payment_id = ?", [payment])
    const seen = yield* page("?choose")
    expect([stateOf(seen), seen.text.includes("&amp;choose")]).toEqual(["partPaid", false])
  })

  test("a former choice's own link leads to the one that counts", function* () {
    const { choose, page, path, read } = yield* shop()
    yield* choose("USDC-base")
    yield* choose("USDC-polygon")
    const { call } = yield* TestApi
    const [former, last] = (yield* read).payments
    expect(former.checkoutUrl).toBe(last.checkoutUrl)
    expect(new URL(last.checkoutUrl).pathname).toBe(path)
    expect((yield* page()).text).toContain(last.address.slice(-4))
    expect((yield* call("HEAD", path)).status).toBe(200)
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 1, failure_reason = NULL WHERE id = ?", [
      former.id
    ])
    yield* execute("UPDATE invoices SET status = 'paid' WHERE payment_id = ?", [last.id])
    expect(stateOf(yield* page())).toBe("paid")
  })

  test("is in the invoice's language, unless the customer takes another", function* () {
    const { choose, page, path } = yield* shop({ language: "de" })
    expect((yield* page()).text).toContain('<html lang="de">')
    expect((yield* page("?lang=fr")).text).toContain('<html lang="fr">')
    expect((yield* choose("USDC-base", "?lang=fr")).headers.location).toBe(`${path}?lang=fr`)
  })

  test("says when the rate has expired, and offers the choice again", function* () {
    const { choose, page, read } = yield* shop({ expiresIn: 86_400 })
    yield* choose("USDC-base")
    const { payment } = yield* read
    yield* execute("UPDATE payments SET status = 'expired', ended_at = 1 WHERE id = ?", [payment])
    const again = yield* page()
    expect([stateOf(again), again.text.includes("The rate has expired.")]).toEqual(["choosing", true])
    yield* choose("USDC-base")
    expect(stateOf(yield* page())).toBe("waiting")
  })

  test("says that it was cancelled, or has expired, where nothing was chosen", function* () {
    const cancelled = yield* shop()
    yield* cancelled.on("cancel")
    expect(stateOf(yield* cancelled.page())).toBe("cancelled")
    expect((yield* cancelled.choose("USDC-base")).headers.location).toBe(`${cancelled.path}?lang=en`)
    expect((yield* cancelled.read).payments).toEqual([])
    const expired = yield* shop()
    yield* execute("UPDATE invoices SET status = 'expired' WHERE id = ?", [expired.id])
    expect(stateOf(yield* expired.page())).toBe("expired")
  })

  test("makes nothing of a choice that is none, or has no price", function* () {
    const { choose, path, read } = yield* shop()
    for (const choice of ["ETH-base", "DAI-base", "BTC-bitcoin", "", "USDC-base%0a"]) {
      const answer = yield* choose(choice)
      expect([choice, answer.status, answer.headers.location]).toEqual([choice, 303, `${path}?lang=en&choose`])
    }
    expect((yield* read).payments).toEqual([])
  })

  test("takes a choice by POST alone, and of an invoice alone", function* () {
    const { page, path } = yield* shop()
    const { call, newKey } = yield* TestApi
    expect((yield* page("/choose")).status).toBe(405)
    expect((yield* call("POST", path)).status).toBe(405)
    const json = { merchantRef: `plain ${orders}`, amount: "1", currency: "USDC", chain: "base" }
    const { checkoutUrl } = (yield* call("POST", "/v1/payments", { key: yield* newKey(), json })).body
    const plain = yield* call("POST", `${new URL(checkoutUrl).pathname}/choose`, { body: "choice=USDC-base" })
    expect(plain.status).toBe(404)
    expect((yield* call("GET", `${path}/events`)).status).toBe(204)
  })
})
