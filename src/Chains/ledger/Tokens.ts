import { Context, Effect, Layer } from "effect"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import type { OfferedToken } from "../../Domain/Payment.ts"
import { type ChainSettings, Settings } from "../../Settings.ts"
import { Reader, Writer } from "../../Sql.ts"
import * as Repo from "./TokensRepo.ts"

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
      const configured = chains.flatMap(Repo.configuredOn)
      const known = new Set((yield* Repo.all(reader)).map(Repo.keyOf))
      if (configured.some((token) => !known.has(Repo.keyOf(token)))) yield* writer.write(Repo.add(configured))
      const all = yield* Repo.all(reader)
      const ids = new Map(all.map((token) => [Repo.keyOf(token), token.id]))

      const offered = new Map(
        configured.flatMap((token) => {
          const { contract, decimals, symbol } = token
          const id = ids.get(Repo.keyOf(token))
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
