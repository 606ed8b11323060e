import { Schema } from "effect"
import { type ChainName, chainTraits } from "./Chain.ts"

export const Fiat = Schema.Literal("USD", "EUR", "GBP", "MXN")
export type Fiat = typeof Fiat.Type

/** Everything that can arrive on a chain or be quoted. */
export const Token = Schema.Literal("ETH", "USDC", "USDT", "DAI", "WBTC", "MATIC")
export type Token = typeof Token.Type

/** What a payment may ask for: every token but MATIC. */
export const PaymentCurrency = Schema.Literal("ETH", "USDC", "USDT", "DAI", "WBTC")
export type PaymentCurrency = typeof PaymentCurrency.Type

/** The tokens that live in a contract. */
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

/** The coin that pays for gas, and that a plain transaction's value is counted in. */
export const nativeToken = (chain: ChainName): Token => chainTraits[chain].nativeToken

export const tokensOn = (chain: ChainName): ReadonlyArray<Token> =>
  Token.literals.filter((token) => tokenChains[token].includes(chain))

export const isToken: (symbol: string) => symbol is Token = Schema.is(Token)

/** Decimals of the token on public networks, of the fiat's minor unit otherwise. A local chain may configure others. */
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
  MXN: 2
}
