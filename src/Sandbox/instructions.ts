import type { ChainName } from "../Domain/Chain.ts"
import { nativeToken, PaymentCurrency } from "../Domain/Currency.ts"
import type { LocalChain } from "./LocalChain.ts"

/** A local chain that the daemon watches. */
export interface RunningChain extends LocalChain {
  readonly name: ChainName
  readonly confirmations: number
}

type ShownChain = Pick<RunningChain, "name" | "url" | "chainId" | "tokens" | "confirmations">

/** A sandbox that is up. */
export interface Sandbox {
  /** Base of the API. */
  readonly url: string
  readonly apiKey: string
  /** A link that signs in to the portal, once. */
  readonly portal: string
  /** A payment's id and the URL of its checkout page. */
  readonly checkout?: { readonly id: string; readonly url: string }
  readonly chains: ReadonlyArray<ShownChain>
  /** The words that run this program with the sandbox's configuration: a command and its options follow. */
  readonly program: string
  /** Path of the configuration. */
  readonly config: string
  /** Files with a certificate for localhost and its private key. */
  readonly certificates: { readonly certificate: string; readonly key: string }
}

const describe = ({ chainId, name, tokens, url }: ShownChain): string => {
  const coin = nativeToken(name)
  const taken = PaymentCurrency.literals.filter((currency) => currency === coin || currency in tokens).join(" ")
  const quoted = coin === "MATIC" ? " (MATIC is quoted, not taken)" : ""
  return `  ${name.padEnd(10)}${url}   chain id ${chainId}   ${taken}${quoted}`
}

/** Shell commands that create a payment, pay it and show its end. */
const example = (
  { apiKey, program, url }: Sandbox,
  chain: ShownChain
): string => `Create a payment of 25 USDC on ${chain.name}:

  curl -sS ${url}/v1/payments \\
    -H 'X-API-Key: ${apiKey}' \\
    -H 'Content-Type: application/json' \\
    -d '{"merchantRef":"order-1","amount":"25000000","currency":"USDC","chain":"${chain.name}"}'

Pay it, with the "id" of the answer; --help shows how to pay too little, too much, or with the wrong token:

  ${program} sandbox pay pay_…

See it confirm, ${chain.confirmations} blocks later:

  curl -sS ${url}/v1/payments -H 'X-API-Key: ${apiKey}'
`

/** The running parts and their addresses. */
export const overview = ({
  apiKey,
  chains,
  config,
  portal,
  program,
  url
}: Sandbox): string => `${chains.map(describe).join("\n")}
  API       ${url}/v1
  test key  ${apiKey}
  portal    ${portal}
            (works once, within 10 minutes; another one: ${program} login --config ${config})
`

/** The checkout page of a first payment. */
const look = ({ checkout, program }: Sandbox): string =>
  checkout === undefined
    ? ""
    : `Look at the checkout page of a payment of 25 USDC, and pay it while you look:

  ${checkout.url}
  ${program} sandbox pay ${checkout.id}

`

/** The first steps with the sandbox. */
export const instructions = (sandbox: Sandbox): string => {
  const { certificate, key } = sandbox.certificates
  const examples = sandbox.chains.filter(({ name }) => name === "base").map((chain) => example(sandbox, chain))
  return `${look(sandbox)}${examples.join("")}
A webhook receiver on this machine must speak https: ${certificate} and ${key}
are a certificate for localhost that this sandbox trusts. Ctrl-C stops everything.
`
}
