import { brotliCompressSync } from "node:zlib"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { storeShopChange } from "../../src/Auth/shops.ts"
import { defaultAccount } from "../../src/Auth.ts"
import { type Answered, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { openEvents } from "../lib/serverSentEvents.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"

const token = { symbol: "USDC", address: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", decimals: 6 } as const
const app = testApp({
  chains: [testChain({ tokens: [token] })],
  rates: testRates({ USDC: "1", EUR: "1.25" })
})

let orders = 0
let exceptions = 0

const newPayment = (over: object = {}) =>
  Effect.gen(function* () {
    const { call, host, newKey, port } = yield* TestApi
    const key = yield* newKey()
    const json = { merchantRef: `order ${++orders}`, amount: "25000000", currency: "USDC", chain: "base", ...over }
    const { body: payment } = yield* call("POST", "/v1/payments", { key, json })
    const path = new URL(payment.checkoutUrl).pathname
    const page = (search = "", headers = {}) => call("GET", path + search, { headers })
    const cancel = call("POST", `/v1/payments/${payment.id}/cancel`, { key })
    return { call, cancel, page, path, payment, base: `http://${host}:${port}` }
  })

/** The text of a page's `<main>`, without its markup. */
const textOf = ({ text }: Answered): string =>
  (/<main[\s\S]*<\/main>/.exec(text)?.[0] ?? "")
    .replace(/<svg[\s\S]*?<\/svg>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replaceAll("\u00a0", " ")
    .replace(/\s+/g, " ")

liveSuite(app, "the checkout page", (test, it) => {
  test("shows amount, worth, network, address and a code for each of wallet and eye", function* () {
    const { page, payment } = yield* newPayment()
    const answer = yield* page()
    expect(answer.status).toBe(200)
    const text = textOf(answer)
    for (const part of [
      "Pay 25 USDC on Base",
      "about $25.00",
      "USDC on Base only",
      `Reference ${payment.merchantRef}`
    ]) {
      expect(text).toContain(part)
    }
    const address = /<code class="address">(.*?)<\/code>/.exec(answer.text)?.[1] ?? ""
    expect(address.replace(/<[^>]*>/g, "")).toBe(payment.address)
    expect(address.match(/<span>/g)).toHaveLength(10)
    expect(answer.text.match(/<svg role="img"/g)).toHaveLength(1)
    expect(answer.text).toContain('aria-label="Payment: 25\u00a0USDC, Base"')
    const other = yield* page("?lang=de&code=address")
    expect(other.text).toContain(`aria-label="Nur Adresse: ${payment.address}"`)
    expect(other.text).toContain('href="?lang=fr&amp;code=address"')
    const austrian = yield* page("?lang=de-AT")
    expect(austrian.text).toContain('id="code-address" href="?lang=de&amp;code=address"')
    expect(answer.text).toContain(`href="${payment.paymentUri.replace("&", "&amp;")}"`)
    expect(answer.text).toContain("<title>Pay 25\u00a0USDC on Base</title>")
  })

  test("is never stored, sends no referrer, and may not be framed", function* () {
    const { headers } = yield* (yield* newPayment()).page()
    expect(headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "no-referrer" })
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none';.*frame-ancestors 'none'$/)
  })

  test("needs no key, and shows neither id, metadata nor webhook", function* () {
    const secrets = { metadata: { note: "a-secret-note" }, webhookUrl: "https://hook.example/x" }
    const { page, payment } = yield* newPayment({ ...secrets, redirectUrl: "https://shop.example/thanks" })
    const { text } = yield* page()
    for (const secret of [payment.id, "a-secret-note", "hook.example", "shop.example"])
      expect(text).not.toContain(secret)
  })

  test("escapes what the merchant's reference holds, and follows none of it", function* () {
    const merchantRef = `<img src=x onerror=alert(1)>"'&amp;{wallet}`
    const { page } = yield* newPayment({ merchantRef })
    const { text } = yield* page()
    expect(text).not.toContain("<img")
    expect(text).toContain("&lt;img src=x onerror=alert(1)>&quot;'&amp;amp;{wallet}")
  })

  test("speaks the language of the link, else of the browser", function* () {
    const { page } = yield* newPayment()
    const german = yield* page("", { "accept-language": "de-DE,en;q=0.5" })
    expect(german.text).toContain('<html lang="de">')
    expect(textOf(german)).toContain("25 USDC auf Base zahlen")
    expect(textOf(yield* page("?lang=fr", { "accept-language": "de" }))).toContain("Payez 25 USDC sur Base")
  })

  it.effect.each([
    ["was made from fiat money", { fromCurrency: "EUR", toCurrency: "USDC", fromAmount: "19.9" }, "about €19.90"],
    ["was made to fiat money", { fromCurrency: "USDC", toCurrency: "GBP", chargeAmount: "18" }, "about £18.00"],
    ["knows no fiat money", { fromCurrency: "ETH", toCurrency: "USDC" }, "about $25.00"]
  ])("shows the worth of its quote, which %s", ([, quote, worth]) =>
    Effect.gen(function* () {
      const { page, payment } = yield* newPayment()
      yield* execute(
        `INSERT INTO quotes (id, account_id, mode, body, created_at, valid_until) VALUES (?, 'default', 'test', ?, 0, 1)`,
        [payment.merchantRef, JSON.stringify(quote)]
      )
      yield* execute("UPDATE payments SET quote_id = ? WHERE id = ?", [payment.merchantRef, payment.id])
      expect(textOf(yield* page())).toContain(worth)
    })
  )

  test("is the same 404 for every invalid token", function* () {
    const { call, page, path, payment } = yield* newPayment()
    const others = [
      "/pay",
      "/pay/",
      "/pay/x",
      `/pay/${payment.id}`,
      `${path}x`,
      `${path}/`,
      `${path}/other`,
      "/pay/%ff"
    ]
    for (const other of [...others, path.replace(/.$/, "_"), `/pay/${"A".repeat(30)}/events`]) {
      const answer = yield* call("GET", other)
      expect([other, answer.status]).toEqual([other, 404])
      expect(answer.text).toContain("No such payment")
    }
    expect((yield* call("POST", path)).headers.allow).toBe("GET, HEAD")
    expect((yield* call("HEAD", path)).text).toBe("")
    expect((yield* page()).status).toBe(200)
  })

  test("reloads itself where no script does, until it is cancelled", function* () {
    const { cancel, page } = yield* newPayment()
    const reload = '<noscript><meta http-equiv="refresh" content="10"/></noscript>'
    expect((yield* page()).text).toContain(reload)
    yield* cancel
    const answer = yield* page()
    expect(answer.text).not.toContain("http-equiv")
    expect(textOf(answer)).toContain("The shop has cancelled it.")
    expect(answer.text).toContain("<title>This payment was cancelled · 25\u00a0USDC</title>")
  })

  it.effect.each([
    ["USDC", "5", /data-to="0x8335[^"]*" data-value="0x0" data-data="0xa9059cbb[^"]*4c4b40"/i],
    ["ETH", "0.000000000005", /data-value="0x4c4b40" data-data="0x"/]
  ] as const)(
    "of a payment in %s that was paid in part asks everywhere for the rest alone",
    ([currency, rest, wallet]) =>
      Effect.gen(function* () {
        const { page, payment } = yield* newPayment({ currency })
        yield* execute("UPDATE payments SET status = 'detecting', amount_received = '20000000' WHERE id = ?", [
          payment.id
        ])
        const { text } = yield* page()
        expect(text).toContain(`data-copy="${rest}" data-copy-id="copy-amount"`)
        expect(text).toContain(`aria-label="Payment: ${rest}\u00a0${currency}, Base"`)
        expect(text).toMatch(wallet)
        expect(text).toMatch(/href="ethereum:[^"]*(uint256|value)=5000000"/)
        expect((yield* page("?code=address")).text).toContain(`Enter the amount yourself: ${rest}\u00a0${currency}.`)
      })
  )

  /** Stores an exception of a payment: SQL values for kind, chain, currency and amount. */
  const exceptionOf = (payment: string, values: string, outcome = "NULL", sentBack = "0") =>
    execute(
      `INSERT INTO exceptions (id, address, key, payment_id, opened_at, mode, kind, chain, currency, amount, closed_at,
         outcome, sent_back) VALUES (?, '0x1', ?, ?, 1, 'test', ${values}, iif(${outcome} IS NULL, NULL, 2), ${outcome}, ?)`,
      [`exc_${++exceptions}`, `key ${exceptions}`, payment, sentBack]
    )

  const came = "It is safe with the shop: ask to have it accepted or sent back."
  const either = "It is safe. Ask the shop first to accept it. If you pay again, ask the shop to send this money back."
  it.effect.each([
    [
      "while it is asked for",
      "",
      "'wrong_token', 'base', 'ETH', '2000000000000000'",
      "0.002 ETH arrived, but USDC was asked for.",
      either
    ],
    [
      "on another chain",
      "",
      "'wrong_chain', 'polygon', 'USDC', '25000000'",
      "25 USDC arrived on Polygon, but Base was asked for.",
      either
    ],
    [
      "of which nobody knows the decimals",
      "",
      "'wrong_token', 'base', 'USDC.e', '7'",
      "USDC.e arrived, but USDC was asked for.",
      either
    ],
    [
      "on top",
      "status = 'confirmed', confirmed_at = 1, amount_received = '26000000'",
      "'overpaid', 'base', 'USDC', '1000000'",
      "1 USDC more than was asked for has arrived.",
      ""
    ],
    [
      "too late",
      "status = 'expired'",
      "'late', 'base', 'USDC', '25000000'",
      "Your payment was seen too late 25 USDC on Base · about $25.00 25 USDC arrived after the time had run out.",
      " Do not pay again."
    ],
    [
      "in time, and was seen too late",
      "status = 'expired'",
      "'found_late', 'base', 'USDC', '25000000'",
      "Your payment was seen too late 25 USDC on Base · about $25.00 25 USDC was seen only after this payment had ended.",
      " Do not pay again."
    ]
  ] as const)("reports money that came %s, where it is, and what to do", ([, change, values, said, advice]) =>
    Effect.gen(function* () {
      const { page, payment } = yield* newPayment()
      if (change !== "") yield* execute(`UPDATE payments SET ${change}, ended_at = 1 WHERE id = ?`, [payment.id])
      yield* exceptionOf(payment.id, values)
      const text = textOf(yield* page())
      expect(text).toContain(
        `${said} ${advice === either ? "" : came}${advice} Contact the shop, and quote this reference.`
      )
      for (const wrong of ["If you have sent money", "No payment was seen", "start again"]) {
        expect(text).not.toContain(wrong)
      }
    })
  )

  test("is about money that came on another network, and asks for more only where the payer wants to pay again", function* () {
    const { page, payment } = yield* newPayment()
    yield* exceptionOf(payment.id, "'wrong_chain', 'polygon', 'USDC', '25000000'")
    const told = yield* page()
    expect(told.text).toContain("<title>Money arrived on the wrong network")
    expect(told.text).not.toContain(payment.paymentUri.replace("&", "&amp;"))
    expect(told.text).toContain('id="pay-again" href="?code=payment"')
    const again = yield* page("?code=payment")
    expect(again.text).toContain(payment.paymentUri.replace("&", "&amp;"))
    for (const [contact, href] of [
      ["help@shop.example", `mailto:help@shop.example?subject=${encodeURIComponent(payment.merchantRef)}`],
      ["https://shop.example/help", "https://shop.example/help"]
    ] as const) {
      yield* storeShopChange(defaultAccount, { name: "Ann's", contact })
      const { text } = yield* page()
      expect(text).toContain(`href="${href}"`)
      expect(text).toContain("Contact Ann's</a>")
    }
    yield* storeShopChange(defaultAccount, { name: null, contact: null })
  })

  test("reports what the shop has done with such money", function* () {
    const { page, payment } = yield* newPayment()
    yield* exceptionOf(payment.id, "'late', 'base', 'USDC', '1000000'", "'accepted'")
    yield* exceptionOf(payment.id, "'late', 'base', 'USDC', '2000000'", "'refunded'", "2000000")
    const decided = textOf(yield* page())
    for (const said of [
      "1 USDC arrived after the time had run out. The shop has accepted it.",
      "The shop has sent it back."
    ])
      expect(decided).toContain(said)
    expect(decided).not.toContain("Contact the shop")
    yield* exceptionOf(payment.id, "'late', 'base', 'USDC', '3000000'", "NULL", "1000000")
    expect(textOf(yield* page())).toContain(
      "4 USDC arrived after the time had run out. 1 USDC of it was sent back. The rest"
    )
  })

  test("of money that was sent back in part, or whole, says what is left, and what is next", function* () {
    const { page, payment } = yield* newPayment()
    const change = (sql: string) => execute(`UPDATE payments SET ${sql} WHERE id = ?`, [payment.id])
    // Time is over, a part has come in time: it is named while the last look is under way.
    yield* change("status = 'detecting', amount_received = '10000000', expires_at = 1")
    expect(textOf(yield* page())).toContain("10 USDC of 25 USDC came in time. Do not send anything more")
    yield* change("status = 'failed', failure_reason = 'insufficient_amount', ended_at = 1")
    yield* exceptionOf(payment.id, "'underpaid', 'base', 'USDC', '6000000'", "NULL", "4000000")
    const part = textOf(yield* page())
    expect(part).toContain("10 USDC has arrived. 4 USDC of it was sent back. The rest is safe with the shop.")
    expect(part).toContain("Do not pay again.")
    yield* execute("UPDATE exceptions SET closed_at = 2, outcome = 'accepted' WHERE payment_id = ?", [payment.id])
    expect(textOf(yield* page())).toContain("4 USDC of it was sent back, and the shop has accepted the rest.")
    yield* execute("UPDATE exceptions SET outcome = 'refunded', amount = '10000000' WHERE payment_id = ?", [payment.id])
    const back = textOf(yield* page())
    expect(back).toContain("10 USDC has arrived. The shop has sent it back. To order still, start again in the shop.")
    expect(back).not.toContain("accepted or sent back")
  })

  test("of other money that came after the time is about that, and of what was accepted says what it was", function* () {
    const { page, payment } = yield* newPayment()
    yield* exceptionOf(payment.id, "'wrong_chain', 'polygon', 'USDC', '25000000'")
    yield* execute("UPDATE payments SET expires_at = 1 WHERE id = ?", [payment.id])
    const closing = textOf(yield* page())
    expect(closing).toContain("Do not send anything more. A last check is under way")
    expect(closing).not.toContain("what was sent in time counts")
    yield* execute("UPDATE payments SET status = 'expired', ended_at = 2 WHERE id = ?", [payment.id])
    const late = yield* page()
    expect(late.text).toContain("<title>Money arrived on the wrong network")
    expect(textOf(late)).toContain("Do not pay again.")
    yield* execute("UPDATE exceptions SET closed_at = 2, outcome = 'accepted' WHERE payment_id = ?", [payment.id])
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 3 WHERE id = ?", [payment.id])
    const paid = textOf(yield* page())
    expect(paid).toContain("Received 25 USDC on Polygon")
    // What was asked for is not what was paid.
    expect(paid).not.toContain("25 USDC on Base")
  })

  test("of a part that came in time and of other money says both once the time is over", function* () {
    const { page, payment } = yield* newPayment()
    yield* exceptionOf(payment.id, "'wrong_chain', 'polygon', 'USDC', '15000000'")
    yield* execute(
      "UPDATE payments SET status = 'detecting', amount_received = '10000000', expires_at = 1 WHERE id = ?",
      [payment.id]
    )
    const text = textOf(yield* page())
    expect(text).toContain("15 USDC arrived on Polygon, but Base was asked for.")
    expect(text).toContain("10 USDC of 25 USDC came in time. Do not send anything more")
  })

  test("of other money that was accepted but for a part that was sent back has the rest on its receipt", function* () {
    const { page, payment } = yield* newPayment()
    yield* exceptionOf(payment.id, "'wrong_chain', 'polygon', 'USDC', '20000000'", "'accepted'", "5000000")
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1 WHERE id = ?", [
      payment.id
    ])
    const text = textOf(yield* page())
    expect(text).toContain("Received 20 USDC on Polygon")
    expect(text).toContain("25 USDC arrived on Polygon, but Base was asked for. 5 USDC of it was sent back, and")
  })

  test("sends nobody to start again while some of the money waits for the shop", function* () {
    const again = "start again in the shop"
    const { page, payment } = yield* newPayment()
    yield* execute("UPDATE payments SET status = 'expired', ended_at = 1 WHERE id = ?", [payment.id])
    yield* exceptionOf(payment.id, "'late', 'base', 'USDC', '10000000'", "'refunded'", "10000000")
    expect(textOf(yield* page())).toContain(again)
    yield* exceptionOf(payment.id, "'late', 'base', 'USDC', '15000000'")
    const text = textOf(yield* page())
    expect(text).toContain("Do not pay again.")
    expect(text).not.toContain(again)
  })

  test("of a part-paid payment has the worth of what is missing", function* () {
    const { page, payment } = yield* newPayment()
    yield* execute("UPDATE payments SET status = 'detecting', amount_received = '10000000' WHERE id = ?", [payment.id])
    const text = textOf(yield* page())
    expect(text).toContain("15 USDC still missing Base · about $15.00")
    expect(text).not.toContain("$25.00")
  })

  test("says until when to pay, in UTC where no script says it in the payer's own time", function* () {
    const { page, payment } = yield* newPayment()
    yield* execute("UPDATE payments SET expires_at = 1900000000000 WHERE id = ?", [payment.id])
    expect(textOf(yield* page())).toMatch(/Pay by: Mar 17, 2030, 5:46.PM UTC/)
    expect(textOf(yield* page("?lang=de"))).toContain("Zahlen bis: 17. März 2030, 17:46 UTC")
  })

  test("of a payment that ended unpaid leads to the shop's site: never to where it thanks for a payment", function* () {
    const { page, payment } = yield* newPayment({ redirectUrl: "https://shop.example/thanks?order=5" })
    expect((yield* page()).text).not.toContain("shop.example")
    for (const change of ["'expired', failure_reason = 'cancelled'", "'failed', failure_reason = 'wrong_token'"]) {
      yield* execute(`UPDATE payments SET status = ${change}, ended_at = 1 WHERE id = ?`, [payment.id])
      const { text } = yield* page()
      expect(text).toMatch(/class="button( quiet)?" href="https:\/\/shop.example" target="_top"/)
      expect(text).not.toContain("thanks")
    }
    yield* storeShopChange(defaultAccount, { name: "Ann's", website: "https://help.example/money" })
    const answer = yield* page()
    yield* storeShopChange(defaultAccount, { name: null, website: null })
    expect(answer.text).toMatch(/class="button( quiet)?" href="https:\/\/help.example\/money" target="_top"/)
    expect(textOf(answer)).toContain("Contact Ann's, and quote this reference.")
  })

  test("of a paid payment is its receipt: what came, when, and in which transaction", function* () {
    const { page, payment } = yield* newPayment()
    const hash = `0x${"ab".repeat(32)}`
    yield* execute(
      `UPDATE payments SET status = 'confirmed', confirmed_at = 1900000000000, ended_at = 1, amount_received = '25000000',
         tx_hash = ? WHERE id = ?`,
      [hash, payment.id]
    )
    const answer = yield* page()
    expect(textOf(answer)).toMatch(
      new RegExp(`Received 25 USDC on Base Paid on Mar 17, 2030, 5:46.PM UTC Transaction ${hash} Reference`)
    )
    expect(answer.text).toContain(`data-copy="${hash}"`)
    // A local chain has no explorer.
    expect(answer.text).not.toContain("Show in the block explorer")
  })

  test("of a paid payment leads back to the shop with its id", function* () {
    const { page, payment } = yield* newPayment({ redirectUrl: "https://shop.example/thanks?order=5&x=%22" })
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1 WHERE id = ?", [
      payment.id
    ])
    const { text } = yield* page()
    const url = `https://shop.example/thanks?order=5&amp;x=%22&amp;paymentId=${payment.id}`
    expect(text).toContain(`href="${url}"`)
    // A payer who opens a receipt stays: only the script leads back, and only those who saw it being paid.
    expect(text).not.toContain('http-equiv="refresh"')
    expect(text).toContain('<p class="returning" hidden')
    yield* exceptionOf(payment.id, "'overpaid', 'base', 'USDC', '1000000'")
    const withMore = (yield* page()).text
    expect(withMore).toContain(`href="${url}"`)
    expect(withMore).not.toContain("returning")
  })

  it.effect.each([
    ["insufficient_amount", "Only 10 USDC of 25 USDC came in time"],
    ["wrong_token", "not in USDC"],
    ["wrong_chain", "not on Base"],
    ["reorged", "Base has undone the transaction"],
    ["abandoned", "does not follow Base any more"]
  ])("of a payment that failed as %s says what to do, with the reference", ([reason, said]) =>
    Effect.gen(function* () {
      const { page, payment } = yield* newPayment()
      yield* execute(
        "UPDATE payments SET status = 'failed', failure_reason = ?, amount_received = '10000000', ended_at = 1 WHERE id = ?",
        [reason, payment.id]
      )
      const text = textOf(yield* page())
      for (const part of [said, "Contact the shop", `Reference ${payment.merchantRef}`]) expect(text).toContain(part)
    })
  )

  test("says that its chain is not read", function* () {
    expect(textOf(yield* (yield* newPayment()).page())).toContain("Base is being read with a delay")
  })

  test("weighs at most 30 KB compressed with its script and stylesheet", function* () {
    const { call, page } = yield* newPayment()
    const { text } = yield* page()
    const urls = Array.from(text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g), ([, url = ""]) => url)
    expect(urls).toHaveLength(2)
    const assets = yield* Effect.forEach(urls, (url) => call("GET", url), { concurrency: 1 })
    const weight = [text, ...assets.map((asset) => asset.text)]
      .map((each) => brotliCompressSync(each).length)
      .reduce((sum, each) => sum + each, 0)
    expect(weight).toBeLessThan(30_000)
  })
})

liveSuite(app, "the versions of a checkout page", (test) => {
  const versionIn = ({ text }: Answered) => /data-version="([^"]+)"/.exec(text)?.[1]

  test("begin with that of the page, and end with that of the end", function* () {
    const { base, cancel, page, path } = yield* newPayment()
    const stream = yield* openEvents(`${base}${path}/events`)
    expect(stream.response.headers).toMatchObject({ "content-type": "text/event-stream", "cache-control": "no-store" })
    expect(yield* stream.next).toBe(versionIn(yield* page()))
    yield* cancel
    const last = yield* stream.next
    yield* stream.ended
    expect(last).toBe(versionIn(yield* page()))
  })

  test("have three streams, and one more as soon as one has closed; beyond that 429 without a page", function* () {
    const { base, call, path } = yield* newPayment()
    const url = `${base}${path}/events`
    const open = Effect.tap(openEvents(url), ({ next }) => next)
    yield* Effect.all([open, open], { concurrency: 1 })
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* open
        const refused = yield* call("GET", `${path}/events`)
        expect([refused.status, refused.text, refused.headers["retry-after"]]).toEqual([429, "", "30"])
      })
    )
    const again = yield* Effect.repeat(
      Effect.flatMap(openEvents(url), ({ response }) => Effect.succeed(response.statusCode)),
      { until: (status) => status === 200 }
    )
    expect(again).toBe(200)
  })
})
