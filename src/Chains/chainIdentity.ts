import { Data, Effect } from "effect"
import { type Network, networkKey } from "../Domain/Chain.ts"
import { ask, findHeader, getChainId } from "./calls.ts"
import type { RpcClient, RpcReason } from "./Rpc.ts"

/** What a node answers that has let go of its first block. */
const pruned: ReadonlySet<RpcReason> = new Set(["state", "missing"])

/** The provider serves another chain: nothing of it may be read. Either the ids differ, or the hashes of block 0 do. */
export class WrongChain extends Data.TaggedError("WrongChain")<{
  readonly network: Network
  readonly host: string
  readonly expected: number | string
  readonly found: number | string
}> {
  override get message() {
    const key = `chains.${networkKey(this.network)}`
    return typeof this.found === "number"
      ? `${this.host} serves chain ${this.found}, and ${key} is chain ${this.expected}: nothing is read from it. Remedy: check rpc_urls and chain_id of ${key}.`
      : `${this.host} serves another chain with the chain id of ${key}: its first block is ${this.found}, and ${key} began with ${this.expected}: nothing is read from it. Remedy: check rpc_urls of ${key}; a test chain that was started anew needs a new database.`
  }
}

/** What the node says of block 0; undefined where it has let go of it. */
const firstBlock = (client: RpcClient) =>
  Effect.catchIf(
    Effect.map(ask(client, [findHeader(0)]), ([first]) => first),
    ({ reason }) => pruned.has(reason),
    () => Effect.succeed(undefined)
  )

/** Fails unless the provider serves the chain of that id, with the known first block. A node without that block passes. */
export const checkIdentity = Effect.fn("Providers.check")(function* (
  network: Network,
  chainId: number,
  genesis: string | undefined,
  client: RpcClient
) {
  const wrong = (expected: number | string, found: number | string) =>
    new WrongChain({ network, host: client.host, expected, found })
  const [found] = yield* ask(client, [getChainId])
  if (found !== chainId) return yield* wrong(chainId, found)
  if (genesis === undefined) return
  const first = yield* firstBlock(client)
  if (first !== undefined && first.hash !== genesis) return yield* wrong(genesis, first.hash)
})

/** Asks all of them at once for the first block. One that serves a chain of another id has none to tell. */
export const firstBlocksOf = Effect.fn("Providers.firstBlocks")(function* (
  chainId: number,
  clients: ReadonlyArray<RpcClient>
) {
  const say = (client: RpcClient) =>
    Effect.flatMap(ask(client, [getChainId]), ([id]) =>
      id === chainId ? Effect.map(firstBlock(client), (first) => first?.hash) : Effect.succeed(undefined)
    )
  return yield* Effect.forEach(clients, (client) => Effect.either(say(client)), { concurrency: "unbounded" })
})
