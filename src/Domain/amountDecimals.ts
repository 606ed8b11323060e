import { Schema } from "effect"
import { ChainName, Mode } from "./Chain.ts"
import { decimalsOf, isToken } from "./Currency.ts"

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
  const digits = amount.padStart(decimals + 1, "0")
  const whole = digits.slice(0, digits.length - decimals)
  return decimals === 0 ? whole : `${whole}.${digits.slice(-decimals)}`
}

/** An amount of base units with its currency, for people: `54.615517 USDC`, with all decimals. */
export const formatAmount = (amount: string, currency: string, decimals: number | undefined): string =>
  `${decimalText(amount, decimals) ?? `${amount} base units of`} ${currency}`
