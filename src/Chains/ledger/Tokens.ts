/** The tokens that are offered, and the table `tokens` of what the configuration has ever offered. Rows are only added. */
import { Context, Effect, Layer } from "effect"
import { getAddress, type Hex } from "viem"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import type { OfferedToken } from "../../Domain/Payment.ts"
import { type ChainSettings, Settings } from "../../Settings.ts"
import { type Db, Reader, Tx, Writer } from "../../Sql.ts"

interface NewToken extends Network, Omit<OfferedToken, "id"> {
  readonly symbol: string
}

/** A key for maps and sets. */
const keyOf = ({ contract, decimals, symbol, ...network }: NewToken): string =>
  `${networkKey(network)} ${symbol} ${contract} ${decimals}`

/** The tokens that a chain is configured with. */
const configuredOn = ({ chain, mode, tokens }: ChainSettings) =>
  tokens.map(({ address, ...token }): NewToken => ({ chain, mode, ...token, contract: getAddress(address as Hex) }))

const stored = (db: Db) =>
  db.all<NewToken & Pick<OfferedToken, "id">>("SELECT id, chain, mode, symbol, contract, decimals FROM tokens")

/** Adds those that are not there yet. */
const add = (tokens: ReadonlyArray<NewToken>) =>
  Effect.flatMap(Tx, (tx) =>
    tx.runEach(
      "INSERT INTO tokens (chain, mode, symbol, contract, decimals) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
      tokens.map(({ chain, contract, decimals, mode, symbol }) => [chain, mode, symbol, contract, decimals])
    )
  )

/**
 * The tokens that the configuration offers, and those that it once did. A payment keeps the one that it was created with,
 * so a contract stays watched after it has left the configuration: late money is still seen, an ended payment is still
 * judged by what it asked for, and nothing is missed until the token is added again.
 */
export class Tokens extends Context.Tag("tilld/Chains/Tokens")<
  Tokens,
  {
    /** A token as the configuration offers it; undefined for the chain's own coin. */
    readonly offered: (network: Network, symbol: string) => OfferedToken | undefined
    /** The contracts of a chain that are no longer configured, lower case. */
    readonly former: (network: Network) => ReadonlyArray<string>
  }
>() {
  /** Notes new tokens of the configuration at the start. */
  static readonly layer = Layer.effect(
    Tokens,
    Effect.gen(function* () {
      const reader = yield* Reader
      const writer = yield* Writer
      const { chains } = yield* Settings
      const configured = chains.flatMap(configuredOn)
      const known = new Set((yield* stored(reader)).map(keyOf))
      if (configured.some((token) => !known.has(keyOf(token)))) yield* writer.write(add(configured))
      const all = yield* stored(reader)
      const ids = new Map(all.map((token) => [keyOf(token), token.id]))

      const offered = new Map(
        configured.flatMap((token) => {
          const { contract, decimals, symbol } = token
          const id = ids.get(keyOf(token))
          return id === undefined ? [] : [[`${networkKey(token)} ${symbol}`, { id, contract, decimals }] as const]
        })
      )
      const formerOn = (chain: ChainSettings) => {
        const now = new Set(chain.tokens.map(({ address }) => address))
        const once = all.filter((token) => networkKey(token) === networkKey(chain))
        return [...new Set(once.map(({ contract }) => contract.toLowerCase()))].filter((address) => !now.has(address))
      }
      const former = new Map(chains.map((chain) => [networkKey(chain), formerOn(chain)]))
      return {
        offered: (network, symbol) => offered.get(`${networkKey(network)} ${symbol}`),
        former: (network) => former.get(networkKey(network)) ?? []
      }
    })
  )
}
