import { Duration, Effect, Logger, Redacted, TestClock } from "effect"
import { makeProviders, type Provider, type Providers } from "../../src/Chains/providers/Providers.ts"
import type { RpcClient } from "../../src/Chains/rpc/Rpc.ts"
import { RpcError, type RpcReason } from "../../src/Chains/rpc/RpcError.ts"
import type { BlockRef } from "../../src/Domain/Receipt.ts"
import type { ChainSettings } from "../../src/Settings.ts"
import { testChain } from "../lib/settings.ts"
import { nodeClient, replies } from "../sim/nodeClient.ts"
import { headerOf } from "../sim/shapes.ts"

export const hash = (digit: string): string => `0x${digit.repeat(64)}`

/** A node in this process, with the calls that it gets. */
export class Node {
  chainId = 77
  /** Of block 0; undefined where it is not kept. */
  genesis: string | undefined = hash("a")
  /** Hashes of other blocks that it keeps, by number. */
  readonly kept = new Map<number, string>()
  /** Its newest block; undefined where it reports none. */
  head: BlockRef | undefined
  failure: RpcReason | undefined
  /** What it fails with when asked for block 0. */
  genesisFailure: RpcReason | undefined
  /** Methods, in order. */
  asked: Array<string> = []
  readonly client: RpcClient

  constructor(host: string) {
    this.client = nodeClient(host, (calls) =>
      Effect.suspend(() => {
        this.asked.push(...calls.map(({ method }) => method))
        const ofGenesis = calls.some(({ method }) => method !== "eth_chainId")
        const reason = this.failure ?? (ofGenesis ? this.genesisFailure : undefined)
        if (reason !== undefined) return errorOf(host, reason)
        return replies(host, calls, ({ method, params: [block] }) =>
          block === "latest" && this.head !== undefined
            ? headerOf(this.head, hash("0"))
            : this.#answer(method, Number(block))
        )
      })
    )
  }

  #answer(method: string, number: number): unknown {
    if (method === "eth_chainId") return `0x${this.chainId.toString(16)}`
    const known = number === 0 ? this.genesis : this.kept.get(number)
    return known === undefined ? null : headerOf({ number, hash: known, time: 0 }, hash("0"))
  }
}

export const errorOf = (host: string, reason: RpcReason, more: { retryAfter?: number; maxBlocks?: number } = {}) =>
  new RpcError({ host, method: "eth_getLogs", reason, detail: "as the test wants", ...more })

const network = { chain: "base", mode: "test" } as const

const settings = (nodes: ReadonlyArray<Node>, over: Partial<ChainSettings> = {}): ChainSettings =>
  testChain({ ...network, rpcUrls: nodes.map((node) => Redacted.make(node.client.host)), chainId: 77, ...over })

export const providersOf = (
  nodes: ReadonlyArray<Node>,
  known?: string,
  over: Partial<ChainSettings> = {},
  patience = Duration.minutes(10)
) => {
  const client = (url: Redacted.Redacted<string>) => {
    const node = nodes.find((one) => one.client.host === Redacted.value(url))
    if (node === undefined) throw new Error("no such node")
    return node.client
  }
  return makeProviders(network, settings(nodes, over), { client }, known, patience)
}

export const hostOf = (provider: Provider | undefined) => provider?.client.host
export const currentHost = (providers: Providers) => Effect.map(providers.current, hostOf)
export const now = TestClock.currentTimeMillis

export const wait = Effect.fnUntraced(function* (providers: Providers) {
  const at = yield* now
  return providers.nextTry(at) - at
})

/** The serving provider fails. */
export const fail = Effect.fnUntraced(function* (
  providers: Providers,
  reason: RpcReason,
  more: { retryAfter?: number; maxBlocks?: number } = {}
) {
  const provider = yield* providers.current
  yield* providers.failed(provider, errorOf(provider.client.host, reason, more))
  return provider
})

export const quiet = Effect.provide(Logger.remove(Logger.defaultLogger))
