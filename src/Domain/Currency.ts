import { Schema } from "effect"
import { ChainName, chainTraits, Mode } from "./Chain.ts"

/** A configured network with its tokens' decimals. */
export const NetworkTokens = Schema.Struct({
  chain: ChainName,
  mode: Mode,
  tokens: Schema.Array(Schema.Struct({ symbol: Schema.String, decimals: Schema.Number }))
})
export type NetworkTokens = typeof NetworkTokens.Type

/** A network as results name it, configured or not. */
export interface NamedNetwork {
  readonly chain: string
  readonly mode: string
}

/**
 * Decimals of a currency on a network: as configured there, since a local chain may have its own, and otherwise those of
 * the public networks. Undefined for a token that tilld does not take, such as USDC.e.
 */
export const decimalsOn = (
  networks: ReadonlyArray<NetworkTokens>,
  { chain, mode }: NamedNetwork,
  currency: string
): number | undefined =>
  networks
    .find((network) => network.chain === chain && network.mode === mode)
    ?.tokens.find(({ symbol }) => symbol === currency)?.decimals ??
  (isToken(currency) ? decimalsOf[currency] : undefined)

/** An amount of base units as a decimal with all its digits: `54.615517`. Undefined where the decimals are not known. */
export const decimalText = (amount: string, decimals: number | undefined): string | undefined => {
  if (decimals === undefined) return undefined
  const sign = amount.startsWith("-") ? "-" : ""
  const digits = amount.slice(sign.length).padStart(decimals + 1, "0")
  const whole = `${sign}${digits.slice(0, digits.length - decimals)}`
  return decimals === 0 ? whole : `${whole}.${digits.slice(-decimals)}`
}

/** An amount of base units with its currency, for people: `54.615517 USDC`, with all decimals. */
export const formatAmount = (amount: string, currency: string, decimals: number | undefined): string =>
  `${decimalText(amount, decimals) ?? `${amount} base units of`} ${currency}`

/** What a wrong amount is refused with: `25 USDC are 25000000 base units`. */
export const wholeTokens = (currency: string, decimals: number): string =>
  `25 ${currency} are ${25n * 10n ** BigInt(decimals)} base units`

/** The fiat currencies that are always on. */
export const standardFiat = ["USD", "EUR", "GBP", "MXN"] as const
/** Those that `rates.currencies` of the configuration turns on. */
export const furtherFiat = ["AUD", "BRL", "CAD", "CHF", "CZK", "DKK", "JPY", "NOK", "NZD", "PLN", "SEK"] as const
export const Fiat = Schema.Literal(...standardFiat, ...furtherFiat)
export type Fiat = typeof Fiat.Type

/** Why a currency that is off is refused, and how it is turned on. */
export const offText = (currency: string): string =>
  `${currency} is off here: the operator turns it on by adding "${currency}" to rates.currencies in the configuration`

/** Every token that can be received on a chain or quoted. */
export const Token = Schema.Literal("ETH", "USDC", "USDT", "DAI", "WBTC", "MATIC")
export type Token = typeof Token.Type

/** The tokens that a payment may ask for: all but MATIC, which is quoted and not taken. */
export const PaymentCurrency = Schema.Literal("ETH", "USDC", "USDT", "DAI", "WBTC")
export type PaymentCurrency = typeof PaymentCurrency.Type

/** What a price can be in: shop plugins price in tokens too. */
export const PriceCurrency = Schema.Literal(...Fiat.literals, ...PaymentCurrency.literals)
export type PriceCurrency = typeof PriceCurrency.Type

/** The tokens that are ERC-20 contracts. */
export const Erc20 = Schema.Literal("USDC", "USDT", "DAI", "WBTC")
export type Erc20 = typeof Erc20.Type

export const tokenChains: Readonly<Record<Token, ReadonlyArray<ChainName>>> = {
  ETH: ["ethereum", "arbitrum", "optimism", "base"],
  USDC: ["ethereum", "polygon", "arbitrum", "optimism", "base"],
  USDT: ["ethereum", "polygon", "arbitrum"],
  DAI: ["ethereum", "polygon", "arbitrum", "optimism"],
  WBTC: ["ethereum", "polygon", "arbitrum"],
  MATIC: ["polygon"]
}

/** The chain's native token, which pays for gas and is the unit of a transaction's value. */
export const nativeToken = (chain: ChainName): Token => chainTraits[chain].nativeToken

/** The tokens that a payment may ask for on a chain. */
export const tokensOn = (chain: ChainName): ReadonlyArray<PaymentCurrency> =>
  PaymentCurrency.literals.filter((token) => tokenChains[token].includes(chain))

export const isToken: (symbol: string) => symbol is Token = Schema.is(Token)

/** Decimals of a token on public networks, or of a fiat currency's minor unit (ISO 4217). A local chain may configure others. */
export const decimalsOf: Readonly<Record<Token | Fiat, number>> = {
  ETH: 18,
  MATIC: 18,
  USDC: 6,
  USDT: 6,
  DAI: 18,
  WBTC: 8,
  USD: 2,
  EUR: 2,
  GBP: 2,
  MXN: 2,
  AUD: 2,
  BRL: 2,
  CAD: 2,
  CHF: 2,
  CZK: 2,
  DKK: 2,
  JPY: 0,
  NOK: 2,
  NZD: 2,
  PLN: 2,
  SEK: 2
}
