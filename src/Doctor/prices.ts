import { Array, BigDecimal, Duration, Effect, Either } from "effect"
import type { PriceStatus } from "../Quotes/Prices.ts"
import { readPrices } from "../Quotes/readPrices.ts"
import { showDecimal } from "../Quotes/sources/decimal.ts"
import type { SettingsShape } from "../Settings.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"

const percent = BigDecimal.make(100n, 0)
const shownPercent = (part: BigDecimal.BigDecimal): string =>
  `${showDecimal(BigDecimal.round(BigDecimal.multiply(part, percent), { scale: 2 }))} %`

const ageText = (millis: number): string => Duration.format(Duration.seconds(Math.floor(millis / 1000)))

const findingOf = ({ age, fresh, price, reason, source, spread, symbol }: PriceStatus): Finding => {
  const name = `price of ${symbol}`
  if (price === undefined || age === undefined) {
    const remedy =
      "quotes in it are refused meanwhile; rates.sources has the sources, and Chainlink needs a chain in live mode"
    return fail(name, reason ?? "there is none", remedy)
  }
  const shown = `${showDecimal(price)} USD by ${source}, ${ageText(age)} old`
  return spread === undefined
    ? warn(
        name,
        `${shown}, and no other source has it`,
        "add another source to rates.sources, or an ethereum in live mode"
      )
    : ok(name, `${shown}; ${fresh.join(", ")} are ${shownPercent(spread)} apart`)
}

/** A price that the operator has configured: no source can confirm it. */
const fixedFinding = (symbol: string, price: BigDecimal.BigDecimal, live: boolean): Finding => {
  const name = `price of ${symbol}`
  const shown = `${showDecimal(price)} USD, as configured`
  return live
    ? warn(
        name,
        `${shown}, and live payments are quoted at it`,
        'use ["chainlink", "coinbase", "kraken"] as rates.sources'
      )
    : ok(name, shown)
}

/** All currencies without a configured price: many shops need few of them. */
const unpriced = (symbols: ReadonlyArray<string>): Finding =>
  warn(
    "prices",
    `none is configured for ${symbols.join(", ")}: quotes in them are refused`,
    "add those that you need to [rates.fixed]"
  )

/** Checks the price of each currency as a daemon that starts now would get it. */
export const examinePrices = Effect.fn("Doctor.prices")(function* (settings: SettingsShape) {
  const prices = yield* readPrices(settings)
  const live = settings.chains.some(({ mode }) => mode === "live")
  if (!settings.rates.sources.includes("fixed")) return prices.status().map(findingOf)
  const [without, priced] = Array.partitionMap(prices.status(), ({ price, symbol }) =>
    price === undefined ? Either.left(symbol) : Either.right(fixedFinding(symbol, price, live))
  )
  return without.length === 0 ? priced : [...priced, unpriced(without)]
})
