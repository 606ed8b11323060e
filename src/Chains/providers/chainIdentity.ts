import { Array as Arr, Clock, Data, Duration, Effect, Either } from "effect"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import type { KnownBlock } from "../../Settings/knownBlocks.ts"
import type { ChainSettings } from "../../Settings.ts"
import { findHeader, getChainId, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import type { RpcError, RpcReason } from "../rpc/RpcError.ts"

/** How long one that does not answer may keep a new chain from being read: it might know it by another first block. */
const silencePatience = Duration.toMillis("1 minute")

/** What a node answers that has let go of its first block. */
const pruned: ReadonlySet<RpcReason> = new Set(["state", "missing"])

/** The provider serves another chain: nothing of it may be read. Either the ids differ, or the hashes of block 0 do. */
export class WrongChain extends Data.TaggedError("WrongChain")<{
  readonly network: Network
  readonly host: string
  readonly expected: number | string
  readonly found: number | string
  /** Whose hashes differ, where not the ids do. */
  readonly block?: number
}> {
  override get message() {
    const key = `chains.${networkKey(this.network)}`
    return typeof this.found === "number"
      ? `${this.host} serves chain ${this.found}, and ${key} is chain ${this.expected}: nothing is read from it. Remedy: check rpc_urls and chain_id of ${key}.`
      : `${this.host} serves another chain with the chain id of ${key}: ${this.#difference(key)}: nothing is read from it. Remedy: check rpc_urls of ${key}; a test chain that was started anew needs a new database.`
  }

  #difference(key: string): string {
    return this.block === undefined || this.block === 0
      ? `its first block is ${this.found}, and ${key} began with ${this.expected}`
      : `its block ${this.block} is ${this.found}, and that of ${key} is ${this.expected}`
  }
}

/** What the node says of an old block; undefined where it has let go of it. */
const oldBlock = (client: RpcClient, number: number) =>
  Effect.catchIf(
    Effect.map(sendBatch(client, [findHeader(number)]), ([found]) => found),
    ({ reason }) => pruned.has(reason),
    () => Effect.succeed(undefined)
  )

/**
 * Fails unless the provider serves the chain of that id, with the known blocks. A node that has not got them passes. Gives
 * the numbers of those that it has.
 */
export const checkIdentity = Effect.fn("Providers.check")(function* (
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

/** The hash of the first block, undefined where nobody has it any more; or why that cannot be said yet. */
export type GenesisConsensus = { readonly genesis: string | undefined } | { readonly doubt: string }

/**
 * Which chain this is, before anything of it is stored: all providers are asked for its first block at once, and none is
 * believed against another. One that does not answer is waited for, not for long; `since` is when all were first asked,
 * in Unix milliseconds. Fails where the one that serves, by its place in `clients`, does not tell.
 */
export const corroborateGenesis = Effect.fn("Providers.agree")(function* (
  network: Network,
  { chainId, knownBlocks }: Pick<ChainSettings, "chainId" | "knownBlocks">,
  clients: ReadonlyArray<RpcClient>,
  serving: number,
  since: number
): Effect.fn.Return<GenesisConsensus, RpcError> {
  const now = yield* Clock.currentTimeMillis
  // One that serves another chain has no first block to tell.
  const say = (client: RpcClient) =>
    checkIdentity(network, chainId, knownBlocks, client).pipe(
      Effect.zipRight(Effect.map(oldBlock(client, 0), (first) => first?.hash)),
      Effect.catchTag("WrongChain", () => Effect.succeed(undefined))
    )
  const answers = yield* Effect.forEach(clients, (client) => Effect.either(say(client)), { concurrency: "unbounded" })
  const own = answers[serving]
  if (own !== undefined && Either.isLeft(own)) return yield* own.left
  const key = `chains.${networkKey(network)}`
  // By their places too: several may be of one company.
  const named = Arr.zip(clients, answers).map(
    ([{ host }, answer], i) => [`${host} (${i + 1} of rpc_urls)`, answer] as const
  )
  const told = named.flatMap(([name, answer]) =>
    Either.isRight(answer) && answer.right !== undefined ? [{ name, hash: answer.right }] : []
  )
  if (told.some(({ hash }) => hash !== told[0]?.hash)) {
    const said = told.map(({ hash, name }) => `${name} says ${hash}`).join(", ")
    return {
      doubt: `the providers of ${key} do not agree on its first block: ${said}. Nothing is read until they do. Remedy: take the one of another chain out of rpc_urls of ${key}`
    }
  }
  const silent = named.flatMap(([name, answer]) => (Either.isLeft(answer) ? [name] : []))
  if (silent.length > 0 && now >= since && now - since < silencePatience) {
    return { doubt: `${silent.join(", ")} of ${key} did not say which chain it serves: it has a minute for that` }
  }
  return { genesis: told[0]?.hash ?? knownBlocks.find(({ number }) => number === 0)?.hash }
})
