import { Schema } from "effect"
import { type ChainName, chainNames, chainTraits, modes, type Network } from "../Domain/Chain.ts"
import { decimalsOf, Erc20 } from "../Domain/Currency.ts"
import { at, isTree, merge, only, type Tree } from "./configTree.ts"
import { type Preset, presets } from "./publicNetworks.ts"
import {
  anyText,
  cidr,
  contractAddress,
  databasePath,
  decimal,
  duration,
  flag,
  integer,
  listOf,
  nonEmpty,
  oneOf,
  optionalUrl,
  positiveDecimalText,
  publicUrl,
  rpcUrl,
  section,
  sourceUrl,
  startBlock,
  walletKey
} from "./valueSchemas.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const port = integer(0, 65_535, " (0 takes any free port)")

const token = optional(section({ address: contractAddress, decimals: integer(0, 36) }))

const chain = optional(
  section({
    rpc_urls: listOf("http or https URLs", rpcUrl).pipe(
      Schema.filter((urls) => urls.length > 0, { message: () => "must name at least one http or https URL" })
    ),
    chain_id: integer(1, Number.MAX_SAFE_INTEGER),
    confirmations: integer(1, 10_000),
    poll_interval: duration("100 millis", "1 hour"),
    balance_interval: duration("1 second", "1 hour"),
    start_block: startBlock,
    tokens: section({ USDC: token, USDT: token, DAI: token, WBTC: token }),
    policy: listOf("sections", section({ above_usd: positiveDecimalText, require: oneOf("safe", "finalized") }))
  })
)

const bothModes = optional(section({ live: chain, test: chain }))

const price = optional(positiveDecimalText)

/** The schema of the configuration file, after all defaults and presets are filled in. */
export const File = section({
  server: section({ host: nonEmpty, port, public_url: publicUrl, trusted_proxies: listOf("CIDR blocks", cidr) }),
  admin: optional(section({ host: nonEmpty, port })),
  database: section({ path: databasePath, mark_folder: anyText }),
  control: section({ read_socket: anyText }),
  limits: section({ per_minute: integer(1, 1_000_000), per_hour: integer(1, 100_000_000) }),
  wallets: section({ live: optional(walletKey), test: optional(walletKey) }),
  payments: section({
    settle_grace: duration("0 seconds", "1 day"),
    late_window: duration("1 hour", "3650 days"),
    // 10000 would make an unpaid payment count as paid. More than half is certainly a mistake.
    tolerance_bps: integer(0, 5_000, " (100 are 1 %)"),
    sole_provider_patience: duration("0 seconds", "3650 days"),
    clock_tolerance: duration("1 minute", "3650 days"),
    look_ahead: integer(20, 10_000),
    dust_floor_usd: decimal
  }),
  accounts: section({ quota_bytes: integer(1_000_000, Number.MAX_SAFE_INTEGER) }),
  webhooks: section({
    allow_targets: listOf("CIDR blocks", cidr),
    deny_targets: listOf("CIDR blocks", cidr),
    extra_ca_file: anyText,
    concurrency: integer(1, 1_024),
    concurrency_per_endpoint: integer(1, 1_024)
  }),
  rates: section({
    sources: listOf("sources", oneOf("chainlink", "coinbase", "kraken", "coingecko", "fixed")),
    fixed: section({
      ETH: price,
      MATIC: price,
      USDC: price,
      USDT: price,
      DAI: price,
      WBTC: price,
      EUR: price,
      GBP: price,
      MXN: price
    }),
    coinbase_url: sourceUrl,
    kraken_url: sourceUrl
  }),
  portal: section({ enabled: flag, allow: listOf("CIDR blocks", cidr) }),
  log: section({ level: oneOf("trace", "debug", "info", "warning", "error"), format: oneOf("json", "pretty") }),
  telemetry: section({ otlp_endpoint: optionalUrl }),
  retention: section({ requests: duration("1 day", "3650 days"), deliveries: duration("1 day", "3650 days") }),
  alerts: section({ url: optionalUrl }),
  chains: section({
    ethereum: bothModes,
    polygon: bothModes,
    arbitrum: bothModes,
    optimism: bothModes,
    base: bothModes
  })
})
export type File = typeof File.Type

// `public_url` has none, and `admin` and each chain are off unless their section is there.
const defaults: Tree = {
  server: { host: "127.0.0.1", port: 8080, trusted_proxies: [] },
  database: { path: "/var/lib/tilld/tilld.db", mark_folder: "" },
  control: { read_socket: "" },
  limits: { per_minute: 100, per_hour: 1000 },
  wallets: {},
  payments: {
    settle_grace: "60 seconds",
    late_window: "30 days",
    tolerance_bps: 0,
    sole_provider_patience: "10 minutes",
    clock_tolerance: "15 minutes",
    look_ahead: 200,
    dust_floor_usd: "0.10"
  },
  accounts: { quota_bytes: 1_000_000_000 },
  webhooks: { allow_targets: [], deny_targets: [], extra_ca_file: "", concurrency: 64, concurrency_per_endpoint: 8 },
  rates: {
    sources: ["chainlink", "coinbase", "kraken"],
    fixed: {},
    coinbase_url: "https://api.coinbase.com",
    kraken_url: "https://api.kraken.com"
  },
  portal: { enabled: true, allow: [] },
  log: { level: "info", format: "json" },
  telemetry: { otlp_endpoint: "" },
  retention: { requests: "30 days", deliveries: "90 days" },
  alerts: { url: "" },
  chains: {}
}

const adminDefaults: Tree = { host: "127.0.0.1", port: 9090 }

const chainDefaults: Tree = { balance_interval: "15 seconds", start_block: "latest", tokens: {}, policy: [] }

const presetDefaults = (chain: ChainName, preset: Preset): Tree => ({
  ...chainDefaults,
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

/** The preset of a chain's section: for one without a chain id, or with the public network's. */
export const presetOf = ({ chain, mode }: Network, settings: unknown): Preset | undefined => {
  const preset = presets[mode][chain]
  const chainId = at(settings, ["chain_id"])
  return chainId === undefined || chainId === preset.chainId ? preset : undefined
}

/** All combinations of chain and mode. */
export const networks: ReadonlyArray<Network> = chainNames.flatMap((chain) => modes.map((mode) => ({ chain, mode })))

/** Fills in defaults and presets. */
export const withDefaults = (given: Tree): Tree => {
  const chains = networks.flatMap((network) => {
    const path = ["chains", network.chain, network.mode]
    const settings = at(given, path)
    if (!isTree(settings)) return []
    const preset = presetOf(network, settings)
    return [only(path, preset === undefined ? chainDefaults : presetDefaults(network.chain, preset))]
  })
  const admin = isTree(given.admin) ? [{ admin: adminDefaults }] : []
  return [...chains, ...admin, given].reduce(merge, defaults)
}
