import { Data, Redacted } from "effect"
import type { PaymentCurrency } from "../Domain/Currency.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"
import type { PayingChain } from "./pay.ts"

/** Another process listens on a port that a part of the sandbox needs. */
export class PortInUse extends Data.TaggedError("PortInUse")<{
  readonly host: string
  readonly port: number
  /** What wanted the port, as the message names it. */
  readonly wantedBy: string
}> {
  override get message() {
    return `Port ${this.port} on ${this.host} is in use, and ${this.wantedBy} needs it: end the process that listens there (find it with \`ss -ltnp 'sport = :${this.port}'\` or \`lsof -i :${this.port}\`) or choose another port.`
  }
}

export const defaultSandboxConfig = "config/sandbox.toml"

/** Base units, worth a few dollars each. */
export const smallAmounts: Readonly<Record<PaymentCurrency, bigint>> = {
  ETH: 10n ** 16n,
  USDC: 25n * 10n ** 6n,
  USDT: 25n * 10n ** 6n,
  DAI: 25n * 10n ** 18n,
  WBTC: 50_000n
}

/** The port of a local chain, one at http://127.0.0.1:PORT; undefined for any other. */
export const localPort = ({ rpcUrls: [url] }: ChainSettings): number | undefined => {
  const { hostname, port, protocol } = new URL(url === undefined ? "http://none" : Redacted.value(url))
  return protocol === "http:" && hostname === "127.0.0.1" && port !== "" ? Number(port) : undefined
}

/** Whether a daemon is for trying things out: all its chains are local ones of the test mode. */
export const hasOnlyLocalChains = ({ chains }: Pick<SettingsShape, "chains">): boolean =>
  chains.length > 0 && chains.every((chain) => chain.mode === "test" && localPort(chain) !== undefined)

/** A chain whose coins may be spent, with the blocks until a receipt counts. */
export interface LocalNetwork extends PayingChain {
  readonly confirmations: number
}

/** A local chain of the test mode: the only kind whose coins may be spent. Undefined for every other. */
export const localChainIn = (chains: SettingsShape["chains"], name: string): LocalNetwork | undefined => {
  const chain = chains.find((each) => each.chain === name && each.mode === "test")
  const port = chain && localPort(chain)
  if (chain === undefined || port === undefined) return undefined
  return {
    name: chain.chain,
    rpcUrl: `http://127.0.0.1:${port}`,
    tokens: new Map(chain.tokens.map(({ address, symbol }) => [symbol, address])),
    confirmations: chain.confirmations
  }
}
