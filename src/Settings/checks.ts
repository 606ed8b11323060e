import { type Network, networkKey } from "../Domain/Chain.ts"
import { Erc20, tokenChains, tokensOn } from "../Domain/Currency.ts"
import { at, isTree, type Tree } from "./configTree.ts"
import { presets } from "./publicNetworks.ts"
import type { Fault } from "./SettingsProblem.ts"
import { networks } from "./toSettings.ts"
import { walletIdentity } from "./walletKey.ts"

/** Checks across keys. `tree` has the presets of its chains and is not decoded, so that these problems are shown with all others. */
export const check = (tree: Tree): ReadonlyArray<Fault> => {
  const chains = networks.flatMap((network) => {
    const settings = at(tree, pathOf(network))
    return isTree(settings) ? [{ network, settings }] : []
  })
  return [
    ...(chains.length > 0 ? [] : [{ path: ["chains"], message: "must name a chain, such as [chains.ethereum.test]" }]),
    ...walletFaults(tree, chains),
    ...chainIdFaults(chains),
    ...chains.flatMap(tokenFaults),
    ...rateFaults(tree),
    ...portFaults(tree)
  ]
}

interface Chain {
  readonly network: Network
  readonly settings: Tree
}

const pathOf = ({ chain, mode }: Network) => ["chains", chain, mode]

const walletFaults = (tree: Tree, chains: ReadonlyArray<Chain>): ReadonlyArray<Fault> => {
  const missing = (["live", "test"] as const).flatMap((mode) => {
    const needs = chains.find(({ network }) => network.mode === mode)
    if (needs === undefined || at(tree, ["wallets", mode]) !== undefined) return []
    const message = `is missing: [chains.${networkKey(needs.network)}] needs an extended public key (xpub…) to make addresses from`
    return [{ path: ["wallets", mode], message }]
  })
  const identities = ["live", "test"].map((mode) => {
    const key = at(tree, ["wallets", mode])
    return typeof key === "string" ? walletIdentity(key) : undefined
  })
  const same = identities[0] !== undefined && identities[0] === identities[1]
  const message =
    "is the wallet of wallets.live too, and test payments must never share addresses with live ones; use another account's key"
  return same ? [...missing, { path: ["wallets", "test"], message }] : missing
}

/** Finds chain ids that belong to another network: a public one, or one earlier in this file. */
const chainIdFaults = (chains: ReadonlyArray<Chain>): ReadonlyArray<Fault> => {
  const owners = new Map(networks.map((network) => [presets[network.mode][network.chain].chainId, network]))
  return chains.flatMap(({ network, settings }) => {
    const id = settings.chain_id
    if (typeof id !== "number") return []
    const owner = owners.get(id) ?? network
    owners.set(id, owner)
    if (networkKey(owner) === networkKey(network)) return []
    return [{ path: [...pathOf(network), "chain_id"], message: `${id} is the chain of chains.${networkKey(owner)}` }]
  })
}

const tokenFaults = ({ network, settings }: Chain): ReadonlyArray<Fault> => {
  const owners = new Map<string, Erc20>()
  return Erc20.literals.flatMap((symbol) => {
    const path = [...pathOf(network), "tokens", symbol]
    if (at(settings, ["tokens", symbol]) === undefined) return []
    if (!tokenChains[symbol].includes(network.chain)) {
      const taken = tokensOn(network.chain).join(", ")
      return [{ path, message: `is not taken on ${network.chain}, which takes ${taken}; remove this section` }]
    }
    const address = at(settings, ["tokens", symbol, "address"])
    if (typeof address !== "string") return []
    const owner = owners.get(address.toLowerCase()) ?? symbol
    owners.set(address.toLowerCase(), owner)
    return owner === symbol ? [] : [{ path: [...path, "address"], message: `is the contract of ${owner} too` }]
  })
}

const everywhere = ["0.0.0.0", "::"]

/** The operator's listener and the API's cannot both have one port, unless each has an address of its own. */
const portFaults = (tree: Tree): ReadonlyArray<Fault> => {
  if (at(tree, ["admin"]) === undefined) return []
  const [server, admin] = [
    { host: at(tree, ["server", "host"]) ?? "127.0.0.1", port: at(tree, ["server", "port"]) ?? 8080 },
    { host: at(tree, ["admin", "host"]) ?? "127.0.0.1", port: at(tree, ["admin", "port"]) ?? 9090 }
  ]
  const overlap =
    server.host === admin.host || [server.host, admin.host].some((host) => everywhere.includes(String(host)))
  if (server.port !== admin.port || server.port === 0 || !overlap) return []
  return [{ path: ["admin", "port"], message: `is ${admin.port}, which is server.port too; choose another` }]
}

const rateFaults = (tree: Tree): ReadonlyArray<Fault> => {
  const sources = at(tree, ["rates", "sources"])
  const fixed = at(tree, ["rates", "fixed"]) ?? {}
  const priceless =
    Array.isArray(sources) && sources.includes("fixed") && isTree(fixed) && Object.keys(fixed).length === 0
  return priceless ? [{ path: ["rates", "fixed"], message: 'must hold prices in USD where the source is "fixed"' }] : []
}
