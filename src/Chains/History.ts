import { Array as Arr, Context, Effect, Layer } from "effect"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import { type ChainSettings, Settings } from "../Settings.ts"
import { ask, type Call, getHead, getTokenBalance, getTransactionCount } from "./calls.ts"
import { Networks } from "./Networks.ts"
import { readPacked } from "./packedBalances.ts"
import type { RpcClient } from "./Rpc.ts"

/** Calls in one batch; providers allow from 100 up. */
const callsPerBatch = 90

export interface Vetting {
  /** Those of the given addresses that hold something or have sent something, as they were given. */
  readonly used: ReadonlySet<string>
  /** Chains that could not be asked. */
  readonly unreachable: ReadonlyArray<ChainName>
}

/** Of the first of the addresses it is also asked what they have sent: the next to be used, and a call each. */
const askedForNonce = 20

/** Calls about each of some addresses, whose answers are above zero for those that the chain knows. */
const knownBy = Effect.fnUntraced(function* (
  client: RpcClient,
  addresses: ReadonlyArray<string>,
  call: (address: string) => Call<number | bigint>
) {
  const known: Array<string> = []
  for (const part of Arr.chunksOf(addresses, callsPerBatch)) {
    const answers = yield* ask(client, part.map(call))
    known.push(...part.filter((_, i) => BigInt(answers[i] ?? 0) > 0n))
  }
  return known
})

/** Those of the addresses that the chain knows: by coins at the block `at`, tokens, or transactions sent. */
export const usedOn = Effect.fn("History.usedOn")(function* (
  chain: ChainSettings,
  client: RpcClient,
  addresses: ReadonlyArray<string>,
  at: BlockRef
) {
  const coins = yield* readPacked(
    client,
    addresses.map((address) => address.toLowerCase()),
    at
  )
  const used = new Set(addresses.filter((_, i) => (coins[i] ?? 0n) > 0n))
  const senders = yield* knownBy(client, addresses.slice(0, askedForNonce), getTransactionCount)
  for (const address of senders) used.add(address)
  for (const token of chain.tokens) {
    const holders = yield* knownBy(client, addresses, (address) => getTokenBalance(token.address, address))
    for (const address of holders) used.add(address)
  }
  return addresses.filter((address) => used.has(address))
})

/** What the chains know of addresses that are to be handed out. */
export class History extends Context.Tag("tilld/Chains/History")<
  History,
  {
    /**
     * Which addresses have a history on any chain of the mode: coins, configured tokens or, of the first 20, transactions
     * sent. It asks each chain a call for each address and token. A chain that does not answer is left out and named.
     */
    readonly vet: (mode: Mode, addresses: ReadonlyArray<string>) => Effect.Effect<Vetting>
  }
>() {
  static readonly layer = Layer.effect(
    History,
    Effect.gen(function* () {
      const settings = yield* Settings
      const networks = yield* Networks

      const vet = Effect.fn("History.vet")(function* (mode: Mode, addresses: ReadonlyArray<string>) {
        const chains = settings.chains.filter((chain) => chain.mode === mode)
        const found = yield* Effect.forEach(
          chains,
          (chain) =>
            Effect.gen(function* () {
              const { providers } = networks.connected(chain)
              const provider = yield* providers.current
              const [head] = yield* ask(provider.client, [getHead])
              return yield* usedOn(chain, provider.client, addresses, head)
            }).pipe(Effect.either),
          { concurrency: "unbounded" }
        )
        const unreachable = Arr.zip(chains, found).flatMap(([chain, used]) =>
          used._tag === "Left" ? [chain.chain] : []
        )
        return { used: new Set(Arr.getRights(found).flat()), unreachable }
      })
      return { vet }
    })
  )
}
