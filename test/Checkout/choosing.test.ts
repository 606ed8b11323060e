import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { describe, it } from "vitest"
import { type ChoosingProps, endedPage, renderChoosing, type ShownOffer } from "../../src/Checkout/Choosing.tsx"
import { checkoutTexts, languages } from "../../src/Checkout/languages.ts"
import { piecesAt } from "../../src/Checkout/RenderedPages.ts"
import { InvoiceId } from "../../src/Domain/Ids.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { problemsOf } from "../lib/axe.ts"
import { visitor } from "../lib/browser.ts"
import { liveSuite } from "../lib/scopedTest.ts"

const t = checkoutTexts.en
const usdc = { currency: "USDC", amount: "27.173914" } as const
const offers: ReadonlyArray<ShownOffer> = [
  { currency: "DAI", chain: "base", amount: undefined, fee: "0.0002" },
  { ...usdc, chain: "base", fee: "0.0004" },
  { ...usdc, chain: "polygon", fee: "0.02" },
  { currency: "ETH", chain: "ethereum", amount: "0.010872347826086957", fee: "0.42" },
  { ...usdc, chain: "arbitrum", fee: undefined }
]

const props: ChoosingProps = {
  ...{ offers, price: { amount: "25", currency: "EUR" }, mode: "test", isRateExpired: false },
  ...{ startsAt: 0, endsAt: 61_000, now: 1_000, action: "/pay/x/choose?lang=en" },
  ...{ language: "en", choice: { language: undefined, code: undefined }, look: { name: "Ann's" } }
}

const pageOf = (over: Partial<ChoosingProps> = {}) => {
  const all = { ...props, ...over }
  const { document, headers } = renderChoosing(all)
  return { headers, text: Buffer.concat([...piecesAt(document, 1_000, all.endsAt, all.language)]).toString() }
}

/** The buttons of a page: value, words, and whether it can be chosen. */
const buttonsOf = (text: string) =>
  Array.from(text.matchAll(/<button ([^>]*)>([\s\S]*?)<\/button>/g), ([, attributes = "", inner = ""]) => [
    /value="([^"]+)"/.exec(attributes)?.[1],
    inner
      .replace(/<svg[\s\S]*?<\/svg> /g, "")
      .replace(/<\/b>/g, ": ")
      .replace(/<[^>]*>/g, "")
      .replaceAll("\u00a0", " "),
    !attributes.includes("disabled")
  ])

describe("the page of a price", () => {
  it("has a button for each choice, and what has no price last", () => {
    const { headers, text } = pageOf({ look: { name: "Ann's", frameAncestors: ["https://shop.example"] } })
    expect(buttonsOf(text)).toEqual([
      ["USDC-base", "USDC on Base: about 27.1739 USDC · network fee about €0.01", true],
      ["USDC-polygon", "USDC on Polygon: about 27.1739 USDC · network fee about €0.02", true],
      ["ETH-ethereum", "ETH on Ethereum: about 0.0108723 ETH · network fee about €0.42", true],
      ["USDC-arbitrum", "USDC on Arbitrum: about 27.1739 USDC", true],
      ["DAI-base", "DAI on Base: Not available now: no current price.", false]
    ])
    expect(text).toContain('<form class="offers" method="post" action="/pay/x/choose?lang=en">')
    expect(text).toContain("<title>Choose how to pay €25.00 · Ann's</title>")
    expect(text).toContain(">1:00</b>")
    expect(text).toContain('<noscript><meta http-equiv="refresh" content="61"/></noscript>')
    expect(text).not.toContain("<details>")
    const many = [...offers, ...offers.map((one) => ({ ...one, chain: "optimism" as const }))]
    const [seen = "", folded = ""] = pageOf({ offers: many }).text.split("<summary>4 more ways to pay</summary>")
    expect([buttonsOf(seen).length, buttonsOf(folded).length]).toEqual([6, 4])
    expect(headers["content-security-policy"]).toMatch(/frame-ancestors https:\/\/shop\.example$/)
  })

  it.each(languages)("says all of it in %s, and that the rate has expired only where it has", (language) => {
    const { choose, fee, rateExpired, test, unpriced, whichToChoose, worth } = checkoutTexts[language]
    const price = new Intl.NumberFormat(language, { style: "currency", currency: "EUR" })
    const { text } = pageOf({ language, isRateExpired: true })
    for (const said of [
      choose(price.format(25)),
      fee(price.format(0.42)),
      rateExpired,
      test,
      unpriced,
      whichToChoose
    ]) {
      expect(text).toContain(said)
    }
    expect(text).toContain(
      worth(`${new Intl.NumberFormat(language, { minimumFractionDigits: 4 }).format(27.1739)}\u00a0USDC`)
    )
    expect(text).toContain(`<html lang="${language}">`)
    expect(pageOf({ language, mode: "live" }).text).not.toContain(rateExpired)
    expect(pageOf({ language, mode: "live" }).text).not.toContain(test)
  })
})

it("the page of a price that nobody chose for in time leads back to the shop, and speaks of no address", () => {
  const ended = {
    id: InvoiceId.make(`inv_${"a".repeat(22)}`),
    merchantRef: "order-7",
    mode: "test",
    status: "expired"
  } as const
  const { text } = endedPage({ ...props, invoice: { ...ended, redirectUrl: "https://shop.example/thanks?for=1" } })
  const seen = [t.headline.expired, t.startAgain, t.test, ">order-7<", 'href="https://shop.example"']
  for (const said of [...seen, `data-copy-word="${t.copy}"`]) {
    expect(text).toContain(said)
  }
  expect(text).not.toContain("address")
})

liveSuite(testApp(), "the page of a price in a browser", (test) => {
  test("is used with the keyboard, has nothing that axe finds, and puts the last choice first", function* () {
    const { host, port } = yield* TestApi
    const origin = `http://${host}:${port}`
    const { context, strayed } = yield* visitor(origin)
    yield* Effect.promise(async () => {
      const chosen: Array<string | null> = []
      await context.route(`${origin}/price`, (route) =>
        route.fulfill({ contentType: "text/html", body: pageOf({ action: "/chosen", isRateExpired: true }).text })
      )
      await context.route(`${origin}/chosen`, (route) => {
        chosen.push(route.request().postData())
        return route.fulfill({ contentType: "text/html", body: "chosen" })
      })
      const page = await context.newPage()
      const first = () => page.locator(".offers button").first().getAttribute("value")
      await page.goto(`${origin}/price`)
      expect([await problemsOf(page), await first()]).toEqual([[], "USDC-base"])
      await page.locator("button", { hasText: "ETH on Ethereum" }).press("Enter")
      await page.waitForURL("**/chosen")
      await page.goto(`${origin}/price`)
      expect([await first(), await page.locator(".offers button").count()]).toEqual(["ETH-ethereum", 5])
      await page.getByRole("button", { name: "ETH on Ethereum" }).click()
      await page.waitForURL("**/chosen")
      expect(chosen).toEqual(["choice=ETH-ethereum", "choice=ETH-ethereum"])
      // Its time is over as it is opened: it asks again by itself, what there is now.
      const bodies = ["ended", pageOf({ endsAt: 0 }).text]
      const next = () => ({ contentType: "text/html", body: bodies.pop() ?? "" })
      await context.route(`${origin}/price`, (route) => route.fulfill(next()))
      await page.goto(`${origin}/price`)
      await page.getByText("ended").waitFor()
    })
    expect(strayed).toEqual([])
  })
})
