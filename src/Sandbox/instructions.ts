import { Redacted } from "effect"
import { nativeToken } from "../Domain/Currency.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"

interface Instructions {
  readonly url: string
  readonly apiKey: string
  readonly settings: SettingsShape
  readonly certificates: { readonly certificate: string; readonly key: string }
}

const rpcUrl = ({ rpcUrls: [url] }: ChainSettings): string => (url === undefined ? "" : Redacted.value(url))

const describe = (chain: ChainSettings): string => {
  const currencies = [nativeToken(chain.chain), ...chain.tokens.map((token) => token.symbol)].join(" ")
  return `  ${chain.chain.padEnd(10)}${rpcUrl(chain)}   chain id ${chain.chainId}   ${currencies}`
}

/** Anvil's second account: it holds coins and every test token, and signs for whoever asks. */
const payer = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

/** What somebody who has just started the sandbox needs to see. */
export const instructions = ({ apiKey, certificates, settings, url }: Instructions): string => {
  const chain = settings.chains.find((candidate) => candidate.chain === "base") ?? settings.chains[0]
  const usdc = chain?.tokens.find((token) => token.symbol === "USDC")
  if (chain === undefined || usdc === undefined) return ""
  return `${settings.chains.map(describe).join("\n")}
  API       ${url}/v1
  test key  ${apiKey}

Create a payment of 25 USDC on ${chain.chain}:

  curl -sS ${url}/v1/payments \\
    -H 'X-API-Key: ${apiKey}' -H 'Content-Type: application/json' \\
    -d '{"merchantRef":"order-1","amount":"25000000","currency":"USDC","chain":"${chain.chain}"}'

Pay it, with the "address" of the answer:

  ADDRESS=0x…
  curl -sS ${rpcUrl(chain)} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,
    "method":"eth_sendTransaction","params":[{"from":"${payer}","to":"${usdc.address}",
    "data":"0xa9059cbb000000000000000000000000'"\${ADDRESS#0x}$(printf %064x 25000000)"'"}]}'

See it confirm, ${chain.confirmations} blocks later:

  curl -sS ${url}/v1/payments -H 'X-API-Key: ${apiKey}'

A webhook receiver on this machine must speak https: ${certificates.certificate} and ${certificates.key}
are a certificate for localhost that this sandbox trusts. Ctrl-C stops everything.
`
}
