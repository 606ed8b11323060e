import type { ChainName } from "../Domain/Chain.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { localTokens } from "./Contracts.ts"
import type { LocalChain } from "./LocalChain.ts"

/** A local chain that the daemon watches. */
export interface RunningChain extends LocalChain {
  readonly name: ChainName
  readonly confirmations: number
}

/** A sandbox that is up. */
interface Sandbox {
  /** Base of the API. */
  readonly url: string
  readonly apiKey: string
  readonly chains: ReadonlyArray<RunningChain>
  /** Files with a certificate for localhost and its private key. */
  readonly certificates: { readonly certificate: string; readonly key: string }
}

const describe = ({ chainId, name, tokens, url }: RunningChain): string =>
  `  ${name.padEnd(10)}${url}   chain id ${chainId}   ${[nativeToken(name), ...Object.keys(tokens)].join(" ")}`

/** Anvil's second account: it holds coins and every test token, and is unlocked for every client. */
export const payer = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

/** Shell commands that create a payment, pay it and show its end. */
const example = (
  { apiKey, url }: Sandbox,
  chain: RunningChain
): string => `Create a payment of 25 USDC on ${chain.name}:

  curl -sS ${url}/v1/payments \\
    -H 'X-API-Key: ${apiKey}' \\
    -H 'Content-Type: application/json' \\
    -d '{"merchantRef":"order-1","amount":"25000000","currency":"USDC","chain":"${chain.name}"}'

Pay it, with the "address" of the answer:

  ADDRESS=0x…
  curl -sS ${chain.url} -H 'Content-Type: application/json' -d '{
    "jsonrpc":"2.0","id":1,"method":"eth_sendTransaction","params":[{
    "from":"${payer}","to":"${localTokens.USDC.address}",
    "data":"0xa9059cbb000000000000000000000000'"\${ADDRESS#0x}$(printf %064x 25000000)"'"}]}'

See it confirm, ${chain.confirmations} blocks later:

  curl -sS ${url}/v1/payments -H 'X-API-Key: ${apiKey}'
`

/** What runs, and at which address. */
export const overview = ({ apiKey, chains, url }: Sandbox): string => `${chains.map(describe).join("\n")}
  API       ${url}/v1
  test key  ${apiKey}
`

/** What a newcomer can do with the sandbox. */
export const instructions = (sandbox: Sandbox): string => {
  const { certificate, key } = sandbox.certificates
  const examples = sandbox.chains.filter(({ name }) => name === "base").map((chain) => example(sandbox, chain))
  return `${examples.join("")}
A webhook receiver on this machine must speak https: ${certificate} and ${key}
are a certificate for localhost that this sandbox trusts. Ctrl-C stops everything.
`
}
