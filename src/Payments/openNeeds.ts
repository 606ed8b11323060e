import { Array as Arr } from "effect"
import { type Network, networkKey } from "../Domain/Chain.ts"
import type { ChainSettings } from "../Settings.ts"
import type { OpenNeed } from "./OpenNeedsRepo.ts"

/** Something that open payments need and the configuration does not have. */
export interface UnmetNeed {
  /** Where it belongs in the configuration. */
  readonly at: string
  readonly need: string
  readonly remedy: string
}

/** Payments with undecided money that are listed at most. */
const mostListed = 10

const asked = (payments: number, what: string): ReadonlyArray<string> =>
  payments === 0 ? [] : [`${payments} open ${payments === 1 ? "payment needs" : "payments need"} ${what}`]

const waiting = (ids: ReadonlyArray<string>): ReadonlyArray<string> =>
  ids.length === 0
    ? []
    : [
        `money of ${ids.slice(0, mostListed).join(", ")}${ids.length > mostListed ? " and more" : ""} is not yet corroborated there`
      ]

const unmet = (at: string, needs: ReadonlyArray<string>, { chain, mode }: Network, token?: string): UnmetNeed => ({
  at,
  need: needs.join(", and "),
  remedy:
    "put it back until that is over, or give it up: " +
    `tilld payments abandon --chain ${chain} --mode ${mode}${token === undefined ? "" : ` --token ${token}`}`
})

/**
 * What a configuration lacks of what payments need: their chains, the contracts of the tokens that open ones ask for, and
 * chains with undecided money. A
 * payer who has scanned a code pays that contract, whatever the configuration says since. A wallet is not needed: addresses
 * are stored, and watched without it.
 */
export const unmetNeeds = (
  chains: ReadonlyArray<ChainSettings>,
  needs: ReadonlyArray<OpenNeed>
): ReadonlyArray<UnmetNeed> =>
  Object.entries(Arr.groupBy(needs, networkKey)).flatMap(([key, here]) => {
    const [network] = here
    const chain = chains.find((each) => networkKey(each) === key)
    if (chain === undefined) {
      const payments = here.reduce((sum, need) => sum + need.payments, 0)
      const undecided = here.flatMap((need) => JSON.parse(need.undecided ?? "[]") as ReadonlyArray<string>)
      return [unmet(`chains.${key}`, [...asked(payments, "this chain"), ...waiting(undecided)], network)]
    }
    return here.flatMap(({ contract, payments, symbol }) => {
      if (contract === null || symbol === null) return []
      const token = chain.tokens.find((each) => each.symbol === symbol)
      if (token?.address === contract.toLowerCase()) return []
      return [unmet(`chains.${key}.tokens.${symbol}`, asked(payments, `the contract ${contract}`), network, symbol)]
    })
  })
