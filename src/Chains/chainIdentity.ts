import { Array as Arr, Data, Effect, Option } from "effect"
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

/** The hash of a chain's first block: as it was stored, else as its providers tell it; undefined while nobody does. */
export interface Genesis {
  known: string | undefined
}

/**
 * Fails unless the provider serves the chain of that id. With `withGenesis` its first block is looked at too: the first
 * that is told is the one that the others must have. A node that has let go of it passes.
 */
export const checkIdentity = Effect.fn("Providers.check")(function* (
  network: Network,
  chainId: number,
  genesis: Genesis,
  client: RpcClient,
  withGenesis: boolean
) {
  const wrong = (expected: number | string, found: number | string) =>
    new WrongChain({ network, host: client.host, expected, found })
  const [found] = yield* ask(client, [getChainId])
  if (found !== chainId) return yield* wrong(chainId, found)
  if (!withGenesis) return
  const [first] = yield* Effect.catchIf(
    ask(client, [findHeader(0)]),
    ({ reason }) => pruned.has(reason),
    () => Effect.succeed([undefined])
  )
  if (first === undefined) return
  genesis.known ??= first.hash
  if (first.hash !== genesis.known) return yield* wrong(genesis.known, first.hash)
})

/**
 * What each of the providers says of the first block of the chain of that id, where they do not all say the same: then
 * none is believed. Those that do not answer, or serve a chain of another id, have no say.
 */
export const disagreementOf = Effect.fn("Providers.disagreement")(function* (
  chainId: number,
  genesis: Genesis,
  clients: ReadonlyArray<RpcClient>
) {
  const answers = yield* Effect.forEach(clients, (client) => Effect.option(ask(client, [getChainId, findHeader(0)])), {
    concurrency: "unbounded"
  })
  const told = Arr.zip(clients, answers).flatMap(([{ host }, answer]) =>
    Option.toArray(answer).flatMap(([id, first]) =>
      id === chainId && first !== undefined ? [{ host, hash: first.hash }] : []
    )
  )
  const [one] = told
  if (one === undefined) return undefined
  const areSame = told.every(({ hash }) => hash === one.hash)
  genesis.known = areSame ? one.hash : undefined
  return areSame ? undefined : told.map(({ hash, host }) => `${host} says ${hash}`).join(", ")
})
