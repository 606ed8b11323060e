import { resolve } from "node:path"
import type { Network } from "../Domain/Chain.ts"
import { Erc20 } from "../Domain/Currency.ts"
import { type File, networks, presetOf } from "./configSchema.ts"
import type { SettingsSource } from "./configSource.ts"
import type { Path } from "./configTree.ts"
import { markFolderOf } from "./indexMarkFolder.ts"
import { knownBlocks } from "./knownBlocks.ts"
import type { ChainSettings, SettingsShape } from "./SettingsShape.ts"

/** The absolute path of the folder that a key's relative path is resolved from. */
export type BaseOf = (key: Path) => string

const chainOf = (file: File, network: Network): ReadonlyArray<ChainSettings> => {
  const chain = file.chains[network.chain]?.[network.mode]
  if (chain === undefined) return []
  const preset = presetOf(network, chain)
  const wrongTokens = preset?.wrongTokens ?? {}
  return [
    {
      ...network,
      rpcUrls: chain.rpc_urls,
      chainId: chain.chain_id,
      confirmations: chain.confirmations,
      pollInterval: chain.poll_interval,
      balanceInterval: chain.balance_interval,
      startBlock: chain.start_block,
      tokens: Erc20.literals.flatMap((symbol) => {
        const token = chain.tokens[symbol]
        return token === undefined ? [] : [{ symbol, ...token }]
      }),
      wrongTokens: Object.entries(wrongTokens).map(([name, address]) => ({ name, address: address.toLowerCase() })),
      policies: chain.policy.map((policy) => ({ aboveUsd: policy.above_usd, require: policy.require })),
      knownBlocks: preset === undefined ? [] : (knownBlocks[preset.chainId] ?? [])
    }
  ]
}

const databaseOf = ({ database }: File, base: BaseOf, env: SettingsSource["env"]): SettingsShape["database"] => {
  const path = resolve(base(["database", "path"]), database.path)
  const given = database.mark_folder
  return {
    path,
    markFolder: given === "" ? markFolderOf(path, env) : resolve(base(["database", "mark_folder"]), given)
  }
}

const pathOf = (base: BaseOf, key: Path, path: string): string => (path === "" ? "" : resolve(base(key), path))

/** Converts the decoded file to `SettingsShape`. */
export const shapeOf = (file: File, base: BaseOf, env: SettingsSource["env"]): SettingsShape => ({
  server: {
    host: file.server.host,
    port: file.server.port,
    publicUrl: file.server.public_url.replace(/\/+$/, ""),
    trustedProxies: file.server.trusted_proxies
  },
  admin: file.admin,
  database: databaseOf(file, base, env),
  control: { readSocket: pathOf(base, ["control", "read_socket"], file.control.read_socket) },
  limits: { perMinute: file.limits.per_minute, perHour: file.limits.per_hour },
  wallets: { live: file.wallets.live, test: file.wallets.test },
  payments: {
    settleGrace: file.payments.settle_grace,
    lateWindow: file.payments.late_window,
    toleranceBps: file.payments.tolerance_bps,
    soleProviderPatience: file.payments.sole_provider_patience,
    clockTolerance: file.payments.clock_tolerance,
    lookAhead: file.payments.look_ahead,
    dustFloorUsd: file.payments.dust_floor_usd
  },
  accounts: { quotaBytes: file.accounts.quota_bytes },
  webhooks: {
    allowTargets: file.webhooks.allow_targets,
    denyTargets: file.webhooks.deny_targets,
    extraCaFile: pathOf(base, ["webhooks", "extra_ca_file"], file.webhooks.extra_ca_file),
    concurrency: file.webhooks.concurrency,
    concurrencyPerEndpoint: file.webhooks.concurrency_per_endpoint
  },
  rates: {
    sources: file.rates.sources,
    fixed: file.rates.fixed,
    coinbaseUrl: file.rates.coinbase_url.replace(/\/+$/, ""),
    krakenUrl: file.rates.kraken_url.replace(/\/+$/, "")
  },
  portal: file.portal,
  log: file.log,
  telemetry: { otlpEndpoint: file.telemetry.otlp_endpoint },
  retention: file.retention,
  alerts: file.alerts,
  chains: networks.flatMap((network) => chainOf(file, network))
})
