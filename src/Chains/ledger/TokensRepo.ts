/** The table `tokens`: what the configuration has ever offered. Rows are only added. */
import { Effect } from "effect"
import { getAddress, type Hex } from "viem"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import type { OfferedToken } from "../../Domain/Payment.ts"
import type { ChainSettings } from "../../Settings.ts"
import { type Db, Tx } from "../../Sql.ts"

interface NewToken extends Network, Omit<OfferedToken, "id"> {
  readonly symbol: string
}

/** A key for maps and sets. */
export const keyOf = ({ contract, decimals, symbol, ...network }: NewToken): string =>
  `${networkKey(network)} ${symbol} ${contract} ${decimals}`

/** The tokens that a chain is configured with. */
export const configuredOn = ({ chain, mode, tokens }: ChainSettings) =>
  tokens.map(({ address, ...token }): NewToken => ({ chain, mode, ...token, contract: getAddress(address as Hex) }))

export const all = (db: Db) =>
  db.all<NewToken & Pick<OfferedToken, "id">>("SELECT id, chain, mode, symbol, contract, decimals FROM tokens")

/** Adds those that are not there yet. */
export const add = (tokens: ReadonlyArray<NewToken>) =>
  Effect.flatMap(Tx, (tx) =>
    tx.runEach(
      "INSERT INTO tokens (chain, mode, symbol, contract, decimals) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
      tokens.map(({ chain, contract, decimals, mode, symbol }) => [chain, mode, symbol, contract, decimals])
    )
  )
