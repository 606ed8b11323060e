import { resolve } from "node:path"
import { chainNames, chainTraits, modes, type Network } from "../Domain/Chain.ts"
import { decimalsOf, Erc20 } from "../Domain/Currency.ts"
import type { ChainSettings, File, SettingsShape } from "./configSchema.ts"
import type { SettingsSource } from "./configSource.ts"
import { at, isTree, merge, only, type Path, type Tree } from "./configTree.ts"
import { markFolderOf } from "./indexMarkFolder.ts"
import { knownBlocks } from "./knownBlocks.ts"
import { type Preset, presets } from "./publicNetworks.ts"

/** All combinations of chain and mode. */
export const networks: ReadonlyArray<Network> = chainNames.flatMap((chain) => modes.map((mode) => ({ chain, mode })))

/** The preset of a network: for a chain without a chain id, or with the public network's. */
const presetOf = ({ chain, mode }: Network, chainId: unknown): Preset | undefined => {
  const preset = presets[mode][chain]
  return chainId === undefined || chainId === preset.chainId ? preset : undefined
}

const presetKeys = ({ chain }: Network, preset: Preset): Tree => ({
  chain_id: preset.chainId,
  confirmations: chainTraits[chain].confirmations,
  poll_interval: chainTraits[chain].pollInterval,
  tokens: Object.fromEntries(
    Erc20.literals.flatMap((symbol) => {
      const address = preset.tokens[symbol]
      return address === undefined ? [] : [[symbol, { address, decimals: decimalsOf[symbol] }]]
    })
  )
})

/** Fills in the presets of public networks, and the one section that has a required key. */
export const withPresets = (given: Tree): Tree => {
  const chains = networks.flatMap((network) => {
    const path = ["chains", network.chain, network.mode]
    const settings = at(given, path)
    const preset = isTree(settings) ? presetOf(network, settings.chain_id) : undefined
    return preset === undefined ? [] : [only(path, presetKeys(network, preset))]
  })
  return [...chains, given].reduce(merge, { server: {} })
}

/** The absolute path of the folder that a key's relative path is resolved from. */
export type BaseOf = (key: Path) => string

const chainOf = (file: File, network: Network): ReadonlyArray<ChainSettings> => {
  const section = file.chains[network.chain]?.[network.mode]
  if (section === undefined) return []
  const { policy, tokens, ...chain } = section
  const preset = presetOf(network, chain.chainId)
  return [
    {
      ...network,
      ...chain,
      tokens: Erc20.literals.flatMap((symbol) => {
        const token = tokens[symbol]
        return token === undefined ? [] : [{ symbol, ...token }]
      }),
      wrongTokens: Object.entries(preset?.wrongTokens ?? {}).map(([name, address]) => ({
        name,
        address: address.toLowerCase()
      })),
      policies: policy,
      knownBlocks: preset === undefined ? [] : (knownBlocks[preset.chainId] ?? [])
    }
  ]
}

/** The settings: the decoded file with absolute paths, and its chains as a list. */
export const shapeOf = (file: File, base: BaseOf, env: SettingsSource["env"]): SettingsShape => {
  const { checkout, control, database, webhooks } = file
  const absolute = (key: Path, path: string): string => (path === "" ? "" : resolve(base(key), path))
  const path = absolute(["database", "path"], database.path)
  return {
    ...file,
    database: {
      path,
      markFolder: absolute(["database", "mark_folder"], database.markFolder) || markFolderOf(path, env)
    },
    control: { readSocket: absolute(["control", "read_socket"], control.readSocket) },
    checkout: { logoFolder: absolute(["checkout", "logo_folder"], checkout.logoFolder) },
    webhooks: { ...webhooks, extraCaFile: absolute(["webhooks", "extra_ca_file"], webhooks.extraCaFile) },
    chains: networks.flatMap((network) => chainOf(file, network))
  }
}
