import { Array as Arr, Context, Effect, Layer } from "effect"
import type { ChainName, Mode } from "../../Domain/Chain.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type ChainSettings, Settings } from "../../Settings.ts"
import { Networks } from "../providers/Networks.ts"
import type { Provider, Providers } from "../providers/Providers.ts"
import { readPackedBalances } from "../rpc/capabilities.ts"
import { getHead, getTransactionCount, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { readTokenBalances } from "./tokenBalances.ts"

/** Calls in one batch; providers allow from 100 up. */
const callsPerBatch = 90
/** Whoever is asked to confirm answers within this, or counts as silent: a payment may wait. */
const confirmWithin = "2 seconds"

/** Transactions that each of the addresses has sent: who was paid once and has spent it all is known by them alone. */
const sentBy = (client: RpcClient, addresses: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(Arr.chunksOf(addresses, callsPerBatch), (part) => sendBatch(client, part.map(getTransactionCount)), {
      concurrency: 1
    }),
    (parts) => parts.flat()
  )

/** Those of the addresses that the chain knows: by coins at the block `at`, tokens, or transactions sent. */
export const usedOn = Effect.fn("History.usedOn")(function* (
  chain: ChainSettings,
  client: RpcClient,
  addresses: ReadonlyArray<string>,
  at: BlockRef
) {
  const lower = addresses.map((address) => address.toLowerCase())
  const coins = yield* readPackedBalances(client, lower, at)
  const sent = yield* sentBy(client, addresses)
  const tokens = yield* Effect.forEach(chain.tokens, ({ address }) => readTokenBalances(client, address, lower), {
    concurrency: 1
  })
  const isUsed = (i: number) => [coins, sent, ...tokens].some((found) => (found[i] ?? 0) > 0)
  return addresses.filter((_, i) => isUsed(i))
})

/** Addresses that a chain's serving provider claims to have a history. */
export interface Found {
  readonly chain: ChainName
  /** As they were given. */
  readonly addresses: ReadonlyArray<string>
  /** Another provider of the chain says so too. */
  readonly isConfirmed: boolean
}

/** What one provider of a chain claims, by whether any other one confirms it: who lags behind denies what is new. */
const confirm = Effect.fnUntraced(function* (
  chain: ChainSettings,
  providers: Providers,
  provider: Provider,
  claimed: ReadonlyArray<string>
) {
  const answers = yield* Effect.forEach(
    yield* providers.others(provider),
    ({ client }) =>
      Effect.flatMap(sendBatch(client, [getHead]), ([head]) => usedOn(chain, client, claimed, head)).pipe(
        Effect.timeout(confirmWithin),
        Effect.option
      ),
    { concurrency: "unbounded" }
  )
  const confirmed = new Set(Arr.getSomes(answers).flat())
  const [alone, shared] = Arr.partition(claimed, (address) => confirmed.has(address))
  const found: ReadonlyArray<Found> = [
    { chain: chain.chain, addresses: shared, isConfirmed: true },
    { chain: chain.chain, addresses: alone, isConfirmed: false }
  ]
  return found.filter(({ addresses }) => addresses.length > 0)
})

/** What the chains know of addresses that are to be handed out. */
export class AddressHistory extends Context.Tag("tilld/Chains/AddressHistory")<
  AddressHistory,
  {
    /**
     * Which addresses have a history on any chain of the mode: coins, configured tokens, or transactions sent. `found`
     * hears of them as soon as a chain has answered. Of each chain it takes a call for each address, and one for 500 of each
     * token, and the same of its other providers for what is claimed; gives the chains that could not be asked.
     */
    readonly vet: (
      mode: Mode,
      addresses: ReadonlyArray<string>,
      found: (used: Found) => void
    ) => Effect.Effect<ReadonlyArray<ChainName>>
  }
>() {
  static readonly layer = Layer.effect(
    AddressHistory,
    Effect.gen(function* () {
      const settings = yield* Settings
      const networks = yield* Networks

      const vet = Effect.fn("History.vet")(function* (
        mode: Mode,
        addresses: ReadonlyArray<string>,
        found: (used: Found) => void
      ) {
        const unreachable = yield* Effect.forEach(
          settings.chains.filter((chain) => chain.mode === mode),
          (chain) =>
            Effect.gen(function* () {
              const { providers } = networks.connected(chain)
              const provider = yield* providers.current
              const [head] = yield* sendBatch(provider.client, [getHead])
              const claimed = yield* usedOn(chain, provider.client, addresses, head)
              for (const one of claimed.length > 0 ? yield* confirm(chain, providers, provider, claimed) : [])
                found(one)
              return []
            }).pipe(Effect.orElseSucceed(() => [chain.chain])),
          { concurrency: "unbounded" }
        )
        return unreachable.flat()
      })
      return { vet }
    })
  )
}
