import { Schema } from "effect"
import { type ChainName, chainTraits } from "./Chain.ts"

export const Fiat = Schema.Literal("USD", "EUR", "GBP", "MXN")
export type Fiat = typeof Fiat.Type

/** Every token that can be received on a chain or quoted. */
export const Token = Schema.Literal("ETH", "USDC", "USDT", "DAI", "WBTC", "MATIC")
export type Token = typeof Token.Type

/** The tokens that a payment may ask for: all but MATIC, which is quoted and not taken. */
export const PaymentCurrency = Schema.Literal("ETH", "USDC", "USDT", "DAI", "WBTC")
export type PaymentCurrency = typeof PaymentCurrency.Type

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

/** Decimals of a token on public networks, or of a fiat currency's minor unit. A local chain may configure others. */
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
