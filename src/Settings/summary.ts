import { Redacted } from "effect"
import type { ChainSettings, SettingsShape } from "./configSchema.ts"

const address = ({ host, port }: { readonly host: string; readonly port: number }): string => `${host}:${port}`

const chainText = ({ chain, chainId, confirmations, mode, rpcUrls }: ChainSettings): string => {
  const hosts = rpcUrls.map((url) => new URL(Redacted.value(url)).host)
  return `${chain}.${mode} (id ${chainId}, ${confirmations} confirmations, ${hosts.join(", ")})`
}

/** The configuration in the log line of a start: context for the lines after it, without secrets. */
export const summaryOf = ({
  admin,
  chains,
  database,
  log,
  portal,
  rates,
  server,
  wallets,
  webhooks
}: SettingsShape) => ({
  server: address(server),
  publicUrl: server.publicUrl,
  admin: admin === undefined ? "off" : address(admin),
  portal: portal.enabled ? "on" : "off",
  database: database.path,
  wallets: (["live", "test"] as const).filter((mode) => wallets[mode] !== undefined).join(", ") || "none",
  chains: chains.map(chainText).join("; ") || "none",
  prices: rates.sources.join(", "),
  webhookConcurrency: webhooks.concurrency,
  logLevel: log.level
})
