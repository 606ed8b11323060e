import { brotliCompressSync } from "node:zlib"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { storeShopChange } from "../../src/Auth/shops.ts"
import { defaultAccount } from "../../src/Auth.ts"
import { type Answered, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { openEvents } from "../lib/serverSentEvents.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"
import { newPayment, usdc } from "./newPayment.ts"

let exceptions = 0

const app = testApp({
  chains: [testChain({ tokens: [usdc] })],
  rates: testRates({ USDC: "1", EUR: "1.25" })
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
        const { change, page } = yield* newPayment({ currency })
        yield* change("status = 'detecting', amount_received = '20000000'")
        const { text } = yield* page()
        expect(text).toContain(`data-copy="${rest}" data-copy-id="copy-amount"`)
        expect(text).toContain(`aria-label="Payment: ${rest}\u00a0${currency}, Base"`)
        expect(text).toMatch(wallet)
        expect(text).toMatch(/href="ethereum:[^"]*(uint256|value)=5000000"/)
        expect((yield* page("?code=address")).text).toContain("Enter the amount yourself.")
      })
  )

  /**
   * Other money that came for a payment: its kind, chain, amount and currency, what was decided, and how much of it was sent
   * back. Whole USDC, or base units of something else.
   */
  const other = (payment: string, text: string) => {
    const [kind = "", chain = "", amount = "", currency = "", outcome = "open", sentBack = 0] = text.split(" ")
    return execute(
      `INSERT INTO exceptions (id, address, key, payment_id, opened_at, mode, kind, chain, currency, amount, closed_at,
         outcome, sent_back) VALUES (?, '0x1', ?, ?, 1, 'test', ?, ?, ?, ?, ?, ?, ?)`,
      [
        ...[`exc_${++exceptions}`, `key ${exceptions}`, payment, kind, chain, currency],
        currency === "USDC" ? `${amount}000000` : amount,
        ...(outcome === "open" ? [null, null] : [2, outcome]),
        `${Number(sentBack) * 1_000_000}`
      ]
    )
  }

  const came = "It is safe with the shop: ask to have it accepted or sent back."
  const surplus = "You sent 1 USDC too much. Ask the shop for it back."
  const either = "It is safe. Ask the shop first to accept it. If you pay again, ask the shop to send this money back."
  const contact = "Contact the shop, and quote this reference."
  const pending = "status = 'pending'"
  const part = "status = 'detecting', amount_received = '10000000'"
  const lastLook = "expires_at = 1"
  const expired = "status = 'expired', ended_at = 1"
  const paid = "status = 'confirmed', confirmed_at = 1, ended_at = 1"
  const failed = (reason: string) =>
    `status = 'failed', failure_reason = '${reason}', amount_received = '10000000', ended_at = 1`
  const short = failed("insufficient_amount")
  const late = "arrived after the time had run out."
  const astray = "arrived on Polygon, but Base was asked for."
  const seenLate = "Your payment was seen too late 25 USDC on Base about $25.00 25 USDC"
  const ofIt = "of it was sent back"
  const again = "start again in the shop"
  const noMore = "Do not pay again."
  const partCame = "10 USDC of 25 USDC came in time. Do not send anything more"
  it.effect.each<readonly [says: string, columns: string, came?: string, hides?: string]>([
    [
      `0.002 ETH arrived, but USDC was asked for. ${either} ${contact}`,
      pending,
      "wrong_token base 2000000000000000 ETH"
    ],
    [`25 USDC ${astray} ${either} ${contact}`, pending, "wrong_chain polygon 25 USDC"],
    [`USDC.e arrived, but USDC was asked for. ${either} ${contact}`, pending, "wrong_token base 7 USDC.e"],
    [surplus, paid, "overpaid base 1 USDC", contact],
    [surplus, "status = 'detecting', amount_received = '26000000'", "", contact],
    [`You sent 4 USDC too much. 1 USDC ${ofIt}. The rest … ${contact}`, paid, "overpaid base 3 USDC open 1"],
    [`${seenLate} ${late} ${came} ${noMore} ${contact}`, expired, "late base 25 USDC"],
    [`${seenLate} was seen only after this payment had ended. ${came} ${noMore}`, expired, "found_late base 25 USDC"],
    [`1 USDC ${late} The shop has accepted it.`, pending, "late base 1 USDC accepted", contact],
    [`2 USDC ${late} The shop has sent it back.`, pending, "late base 2 USDC refunded 2", contact],
    [`4 USDC ${late} 1 USDC ${ofIt}. The rest`, pending, "late base 3 USDC open 1"],
    ["15 USDC still missing about $15.00", part, "", "$25.00"],
    [partCame, `${part}, ${lastLook}`],
    [`15 USDC ${astray} … ${partCame}`, `${part}, ${lastLook}`, "wrong_chain polygon 15 USDC"],
    [`10 USDC has arrived. 4 USDC ${ofIt}. The rest is safe with the shop.`, short, "underpaid base 6 USDC open 4"],
    [noMore, short, "underpaid base 6 USDC open 4"],
    [`4 USDC ${ofIt}, and the shop has accepted the rest.`, short, "underpaid base 6 USDC accepted 4"],
    [
      `The shop has sent it back. To order still, ${again}.`,
      short,
      "underpaid base 10 USDC refunded 4",
      "or sent back"
    ],
    ["Do not send anything more. A last check is under way", lastLook, "wrong_chain polygon 25 USDC", "in time counts"],
    [`Money arrived on the wrong network … ${noMore}`, expired, "wrong_chain polygon 25 USDC"],
    // What was asked for is not what was paid.
    ["Paid 25 USDC on Polygon", paid, "wrong_chain polygon 25 USDC accepted", "25 USDC on Base"],
    ["Paid 20 USDC on Polygon", paid, "wrong_chain polygon 20 USDC accepted 5"],
    [`25 USDC ${astray} 5 USDC ${ofIt}, and`, paid, "wrong_chain polygon 20 USDC accepted 5"],
    [again, expired, "late base 10 USDC refunded 10"],
    [noMore, expired, "late base 10 USDC refunded 10 + late base 15 USDC", again],
    ["Only 10 USDC of 25 USDC came in time … Contact the shop … Reference order", short],
    ["not in USDC … Contact the shop … Reference order", failed("wrong_token")],
    ["not on Base … Contact the shop … Reference order", failed("wrong_chain")],
    ["Base has undone the transaction … Contact the shop … Reference order", failed("reorged")],
    ["does not follow Base any more … Contact the shop … Reference order", failed("abandoned")]
  ])("says %s, of a payment with %s that got %s", ([says, columns, came = "", hides]) =>
    Effect.gen(function* () {
      const { change, page, payment } = yield* newPayment()
      yield* change(columns)
      for (const one of came.split(" + ").filter(Boolean)) yield* other(payment.id, one)
      const text = textOf(yield* page())
      for (const said of says.split(" … ")) expect(text).toContain(said)
      const never = came === "" ? [] : ["If you have sent money", "No payment was seen"]
      for (const hidden of [...(hides === undefined ? [] : [hides]), ...never]) expect(text).not.toContain(hidden)
    })
  )

  test("is about money that came on another network, and asks for more only where the payer wants to pay again", function* () {
    const { page, payment } = yield* newPayment()
    yield* other(payment.id, "wrong_chain polygon 25 USDC")
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

  test("of a payment that ended unpaid leads to the shop's site: never to where it thanks for a payment", function* () {
    const { change, page } = yield* newPayment({ redirectUrl: "https://shop.example/thanks?order=5" })
    expect((yield* page()).text).not.toContain("shop.example")
    for (const end of ["'expired', failure_reason = 'cancelled'", "'failed', failure_reason = 'wrong_token'"]) {
      yield* change(`status = ${end}, ended_at = 1`)
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
      new RegExp(`Paid 25 USDC on Base .*Paid on Mar 17, 2030, 5:46.PM UTC Transaction ${hash} Reference order`)
    )
    expect(answer.text).toContain(`data-copy="${hash}"`)
    expect(textOf(yield* page("?lang=de"))).toContain("Bezahlt am 17. März 2030, 17:46 UTC")
    // A local chain has no explorer.
    expect(answer.text).not.toContain("Show in the block explorer")
  })

  test("of a paid payment leads back to the shop with its id", function* () {
    const { change, page, payment } = yield* newPayment({ redirectUrl: "https://shop.example/thanks?order=5&x=%22" })
    yield* change("status = 'confirmed', confirmed_at = 1, ended_at = 1")
    const { text } = yield* page()
    const url = `https://shop.example/thanks?order=5&amp;x=%22&amp;paymentId=${payment.id}`
    expect(text).toContain(`href="${url}"`)
    // A payer who opens a receipt stays: only the script leads back, and only those who saw it being paid.
    expect(text).not.toContain('http-equiv="refresh"')
    expect(text).toContain('<p class="returning" hidden')
    yield* other(payment.id, "overpaid base 1 USDC")
    const withMore = (yield* page()).text
    expect(withMore).toContain(`href="${url}"`)
    expect(withMore).not.toContain("returning")
  })

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
    const { cancel, origin, page, path } = yield* newPayment()
    const stream = yield* openEvents(`${origin}${path}/events`)
    expect(stream.response.headers).toMatchObject({ "content-type": "text/event-stream", "cache-control": "no-store" })
    expect(yield* stream.next).toBe(versionIn(yield* page()))
    yield* cancel
    const last = yield* stream.next
    yield* stream.ended
    expect(last).toBe(versionIn(yield* page()))
  })
})
