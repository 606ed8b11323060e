import { type ChainName, chainNames } from "../Domain/Chain.ts"
import { decimalsOf, isToken, nativeToken, type Token, tokenChains } from "../Domain/Currency.ts"
import { alternatives } from "../Domain/must.ts"
import type { CreateQuote, QuoteImpossible } from "../Domain/Quote.ts"

/** Gas of a plain transfer of the native coin (yellow paper, G_transaction). */
const nativeTransferGas = 21_000n

/**
 * Gas of an ERC-20 transfer to an address that held none of the token, as a payment's does: 21,000 for the transaction,
 * 22,100 and 5,000 for the two balances (EIP-2200, EIP-2929), calldata and log 2,500, and, for USDC, its proxy, pause
 * and block list 10,000: 60,600, rounded up.
 */
const tokenTransferGas = 65_000n

export const transferGas = (token: Token, chain: ChainName): bigint =>
  token === nativeToken(chain) ? nativeTransferGas : tokenTransferGas

/** The token whose transfer a quote's network fee pays for: the one bought, else the one sold; none between fiats. */
export const transferred = ({ fromCurrency, toCurrency }: CreateQuote): Token | undefined =>
  [toCurrency, fromCurrency].find(isToken)

/** The chain of a quote: as asked, else ethereum, else the only one that fits. Undefined when no chain has both tokens. */
export const chainOf = (request: CreateQuote): ChainName | undefined => {
  if (request.chain !== undefined) return request.chain
  const possible = chainsOf(request)
  return possible.includes("ethereum") ? "ethereum" : possible[0]
}

const chainsOf = ({ fromCurrency, toCurrency }: CreateQuote): ReadonlyArray<ChainName> =>
  chainNames.filter((chain) =>
    [fromCurrency, toCurrency].every((currency) => !isToken(currency) || tokenChains[currency].includes(chain))
  )

const decimalsIn = (amount: string): number => amount.split(".")[1]?.length ?? 0

/** The problems of the fields together. `watched`: the configured chains of the key's mode. */
export const termProblemsOf = (
  request: CreateQuote,
  watched: ReadonlyArray<ChainName>
): QuoteImpossible["problems"] => {
  const { amount, fromCurrency, toCurrency } = request
  const problems: Array<{ readonly path: string; readonly message: string }> = []
  if (fromCurrency === toCurrency) problems.push({ path: "toCurrency", message: "must differ from fromCurrency" })
  if (decimalsIn(amount) > decimalsOf[fromCurrency]) {
    problems.push({
      path: "amount",
      message: `must have at most ${decimalsOf[fromCurrency]} decimals, which is what ${fromCurrency} has`
    })
  }
  const chain = chainOf(request)
  const possible = chainsOf(request)
  if (chain === undefined || possible.length === 0) {
    problems.push({ path: "toCurrency", message: `is on no chain together with ${fromCurrency}` })
  } else if (!possible.includes(chain)) {
    const tokens = [fromCurrency, toCurrency].filter(isToken).join(" and ")
    problems.push({ path: "chain", message: `has no ${tokens}: choose ${alternatives(possible)}` })
  } else if (transferred(request) !== undefined && !watched.includes(chain)) {
    const offered = possible.filter((name) => watched.includes(name))
    problems.push({
      path: "chain",
      message: `${chain} is not available to this key: ${offered.length === 0 ? "no chain is" : `choose ${alternatives(offered)}`}`
    })
  }
  return problems
}
