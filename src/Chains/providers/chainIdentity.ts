/**
 * Which chain a provider serves: by its chain id, by known blocks, and before the first start by the first block on
 * which all providers agree. Several chains share an id, and a restarted test chain has the same one. `Providers`
 * checks each provider before its use; the doctor uses `checkIdentity`.
 */
import { Array as Arr, Clock, Data, Duration, Effect, Either } from "effect"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import type { KnownBlock } from "../../Settings/knownBlocks.ts"
import type { ChainSettings } from "../../Settings.ts"
import { findHeader, getChainId, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import type { RpcError, RpcReason } from "../rpc/RpcError.ts"

/** How long a silent provider may delay the start of a chain: it might report another first block. */
const silencePatience = Duration.toMillis("1 minute")

/** Reasons with which a node responds that has pruned an old block. */
const pruned: ReadonlySet<RpcReason> = new Set(["state", "missing"])

/** The provider serves another chain, by its chain id or a known block's hash: nothing may be read from it. */
export class WrongChain extends Data.TaggedError("WrongChain")<{
  readonly network: Network
  readonly host: string
  readonly expected: number | string
  readonly found: number | string
  /** The number of the block whose hash differs; undefined where the chain ids differ. */
  readonly block?: number
}> {
  override get message() {
    const key = `chains.${networkKey(this.network)}`
    return typeof this.found === "number"
      ? `${this.host} serves chain ${this.found}, and ${key} is chain ${this.expected}: nothing is read from it. Remedy: check rpc_urls and chain_id of ${key}.`
      : `${this.host} serves another chain with the chain id of ${key}: ${this.#difference(key)}: nothing is read from it. Remedy: check rpc_urls of ${key}; a restarted test chain needs a new database.`
  }

  #difference(key: string): string {
    return this.block === undefined || this.block === 0
      ? `its first block is ${this.found}, and ${key} began with ${this.expected}`
      : `its block ${this.block} is ${this.found}, and that of ${key} is ${this.expected}`
  }
}

/** The header of an old block; undefined where the node has pruned it. */
const oldBlock = (client: RpcClient, number: number) =>
  Effect.catchIf(
    Effect.map(sendBatch(client, [findHeader(number)]), ([found]) => found),
    ({ reason }) => pruned.has(reason),
    () => Effect.succeed(undefined)
  )

/**
 * Fails with `WrongChain` unless the provider serves the chain of that id, with the known blocks. A node without those
 * blocks passes. Returns the numbers of those that it has.
 */
export const checkIdentity = Effect.fn("Providers.checkIdentity")(function* (
  network: Network,
  chainId: number,
  known: ReadonlyArray<KnownBlock>,
  client: RpcClient
) {
  const { host } = client
  const [found] = yield* sendBatch(client, [getChainId])
  if (found !== chainId) return yield* new WrongChain({ network, host, expected: chainId, found })
  const seen: Array<number> = []
  for (const { hash, number } of known) {
    const block = yield* oldBlock(client, number)
    if (block === undefined) continue
    if (block.hash !== hash) {
      return yield* new WrongChain({ network, host, expected: hash, found: block.hash, block: number })
    }
    seen.push(number)
  }
  return seen
})

/** The hash of the first block, undefined where no node still has it; or in `doubt` why it is not known yet. */
export type GenesisConsensus = { readonly genesis: string | undefined } | { readonly doubt: string }

/**
 * Identifies the chain, before anything of it is stored. All providers are asked for the first block, and those that
 * have it must agree. A silent one is waited for up to a minute.
 *
 * @param serving index in `clients` of the serving provider. Fails where that one does not respond, or serves another chain
 * @param since when all were first asked, Unix milliseconds
 */
export const corroborateGenesis = Effect.fn("Providers.corroborateGenesis")(function* (
  network: Network,
  { chainId, knownBlocks }: Pick<ChainSettings, "chainId" | "knownBlocks">,
  clients: ReadonlyArray<RpcClient>,
  serving: number,
  since: number
): Effect.fn.Return<GenesisConsensus, RpcError | WrongChain> {
  const now = yield* Clock.currentTimeMillis
  // A provider of another chain does not count. Where nothing is known of the chain, it is waited for like a silent one.
  const firstBlockOf = (client: RpcClient) =>
    checkIdentity(network, chainId, knownBlocks, client).pipe(
      Effect.zipRight(Effect.map(oldBlock(client, 0), (first) => first?.hash)),
      Effect.catchIf(
        ({ _tag }) => _tag === "WrongChain" && knownBlocks.length > 0,
        () => Effect.succeed(undefined)
      )
    )
  const responses = yield* Effect.forEach(clients, (client) => Effect.either(firstBlockOf(client)), {
    concurrency: "unbounded"
  })
  const own = responses[serving]
  if (own !== undefined && Either.isLeft(own)) return yield* own.left
  const key = `chains.${networkKey(network)}`
  // Named by their index too: several may have the same host.
  const names = clients.map(({ host }, i) => `${host} (${i + 1} of rpc_urls)`)
  const named = Arr.zip(names, responses)
  const reported = named.flatMap(([name, response]) =>
    Either.isRight(response) && response.right !== undefined ? [{ name, hash: response.right }] : []
  )
  if (reported.some(({ hash }) => hash !== reported[0]?.hash)) {
    const said = reported.map(({ hash, name }) => `${name} says ${hash}`).join(", ")
    return {
      doubt: `the providers of ${key} do not agree on its first block: ${said}. Nothing is read until they do. Remedy: take the one of another chain out of rpc_urls of ${key}`
    }
  }
  const silent = named.flatMap(([name, response]) => (Either.isLeft(response) ? [name] : []))
  if (silent.length > 0 && now >= since && now - since < silencePatience) {
    return {
      doubt: `${silent.join(", ")} of ${key} did not say which chain it serves, and is waited for until the first poll after a minute. Remedy: check it, or take it out of rpc_urls of ${key}`
    }
  }
  return { genesis: reported[0]?.hash ?? knownBlocks.find(({ number }) => number === 0)?.hash }
})
