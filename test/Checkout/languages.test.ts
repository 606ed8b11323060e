import { describe, expect, it } from "vitest"
import { checkoutTexts, languageOf, languages } from "../../src/Checkout/languages.ts"
import { amountText, fiatText, plainAmount, spelledTime } from "../../src/Checkout/wording.ts"
import { countdown } from "../../src/lib/clock.ts"
import { textsIn } from "./saidTexts.ts"

describe("the language of a checkout page", () => {
  it.each([
    [null, "de-AT,de;q=0.9,en;q=0.8", "de"],
    [null, "ja, pt-BR;q=0.3, fr;q=0.7", "fr"],
    [null, "fr;q=0, es;q=0.001", "es"],
    [null, "es;q=abc,de;q=0.1", "de"],
    [null, "ja,*", "en"],
    [null, undefined, "en"],
    ["pt", "de", "pt"],
    ["DE-ch", "es", "de"],
    ["xx", "es", "es"],
    ["../../etc", undefined, "en"]
  ] as const)("with ?lang=%s and %s is the one of %s", (named, accepted, language) => {
    expect(languageOf(named, accepted)).toBe(language)
  })
})

describe("amounts are written as people do", () => {
  const money = (units: bigint, decimals: number, language: "en" | "de" = "en") =>
    amountText(units, decimals, "USDC", language).replace("\u00a0", " ")

  it("without zeros that say nothing, but cents as cents, and in the language's own signs", () => {
    expect([money(25_000_000n, 6), money(1_234_500_000n, 6), money(1_234_500_000n, 6, "de")]).toEqual([
      "25 USDC",
      "1,234.50 USDC",
      "1.234,50 USDC"
    ])
  })

  it("with every digit of them", () => {
    expect(money(1n, 18)).toBe("0.000000000000000001 USDC")
    expect(money(2n ** 256n - 1n, 18)).toBe(
      "115,792,089,237,316,195,423,570,985,008,687,907,853,269,984,665,640,564,039,457.584007913129639935 USDC"
    )
    expect(money(1n, 30)).toBe("0.000000000000000000000000000001 USDC")
  })

  it("and plainly, where a wallet is to take them", () => {
    expect(plainAmount(1_234_500_000n, 6)).toBe("1234.5")
  })

  it("fiat money has its symbol", () => {
    expect(fiatText("49.9", "EUR", "en")).toBe("€49.90")
    expect(fiatText("49.9", "EUR", "de").replace("\u00a0", " ")).toBe("49,90 €")
  })

  it("a duration is never said shorter than it is", () => {
    expect([1, 89, 90, 1_198].map((seconds) => spelledTime(seconds, "en"))).toEqual([
      ...["10 seconds", "90 seconds", "2 minutes", "20 minutes"]
    ])
    expect(spelledTime(1_198, "de")).toBe("20 Minuten")
  })

  it("the time left is never negative", () => {
    expect([
      countdown(245_000, "en"),
      countdown(59_001, "en"),
      countdown(-5, "en"),
      countdown(83_045_000, "en")
    ]).toEqual([...["4:05", "1:00", "0:00", "23:04:05"]])
  })
})

describe.each(languages)("what is said in %s", (language) => {
  const said = textsIn(checkoutTexts[language])
  const english = new Map(textsIn(checkoutTexts.en))

  it("has all placeholders of the English text, in its order", () => {
    const namedIn = (text = "") => [...new Set(text.match(/\{\w+\}/g))]
    for (const [path, text] of said) expect([path, namedIn(text)]).toEqual([path, namedIn(english.get(path))])
  })

  it("is not an empty text, and is said in that language", () => {
    for (const [, text] of said) expect(text.trim()).not.toBe("")
    const same = said.filter(([path, text]) => english.get(path) === text)
    if (language !== "en") expect(same.length).toBeLessThan(4)
  })
})

it("no text of any language says that money is lost", () => {
  const lost = /\b(lost|loss|verloren|verlust|perdid[oa]s?|perdu(es?|s)?)\b/i
  for (const language of languages)
    for (const [, text] of textsIn(checkoutTexts[language])) expect(text).not.toMatch(lost)
})
