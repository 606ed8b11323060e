/**
 * Whether addresses were used before they are handed out: native coins, configured tokens or sent transactions on any
 * chain of a mode. A payment must not get a used address, whose other money would count as the payer's. The address pool
 * calls `vet` and skips what two providers confirm; `tilld doctor` calls `usedOn`.
 */
import { Array as Arr, Context, Effect, Layer } from "effect"
import type { ChainName, Mode } from "../../Domain/Chain.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type ChainSettings, Settings } from "../../Settings.ts"
import { Ballot, yes } from "../evidence/Ballot.ts"
import { Networks } from "../providers/Networks.ts"
import type { Provider, Providers } from "../providers/Providers.ts"
import { getTransactionCount } from "../rpc/balanceMethods.ts"
import { readPackedBalances, readTokenBalances } from "../rpc/capabilities.ts"
import { getHead, sendBatch, sendInBatches } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"

/** Time limit for a second provider to confirm: creating a payment may wait for it. */
const confirmWithin = "2 seconds"

/** The addresses with a history on the chain: coins at the block `at`, tokens, or sent transactions. */
export const usedOn = Effect.fn("AddressHistory.usedOn")(function* (
  chain: ChainSettings,
  client: RpcClient,
  addresses: ReadonlyArray<string>,
  at: BlockRef
) {
  const lower = addresses.map((address) => address.toLowerCase())
  const coins = yield* readPackedBalances(client, lower, at)
  // The only trace of an address that has spent everything.
  const sent = yield* sendInBatches(client, addresses.map(getTransactionCount))
  const tokens = yield* Effect.forEach(chain.tokens, ({ address }) => readTokenBalances(client, address, lower))
  const isUsed = (i: number) => [coins, sent, ...tokens].some((found) => (found[i] ?? 0) > 0)
  return addresses.filter((_, i) => isUsed(i))
})

const usedNow = (chain: ChainSettings, { client }: Provider, addresses: ReadonlyArray<string>) =>
  Effect.flatMap(sendBatch(client, [getHead]), ([head]) => usedOn(chain, client, addresses, head))

/** Addresses that have a history according to a chain's serving provider. */
export interface HistoryFinding {
  readonly chain: ChainName
  /** In the form in which `vet` got them. */
  readonly addresses: ReadonlyArray<string>
  /** Another provider of the chain confirms it. */
  readonly isConfirmed: boolean
}

/** Splits a provider's claims by whether a quorum makes them. A lagging one has not seen new history: it denies none. */
const confirm = Effect.fnUntraced(function* (
  chain: ChainSettings,
  providers: Providers,
  provider: Provider,
  claimed: ReadonlyArray<string>
) {
  const responses = yield* Effect.forEach(
    yield* providers.others(provider),
    (other) => usedNow(chain, other, claimed).pipe(Effect.timeout(confirmWithin), Effect.option),
    { concurrency: "unbounded" }
  )
  const ballot = new Ballot<string, true, number>()
  for (const [voter, addresses] of [claimed, ...Arr.getSomes(responses)].entries()) {
    for (const address of addresses) ballot.vote(address, voter, yes(true))
  }
  const [unconfirmed, shared] = Arr.partition(claimed, (address) => ballot.tally(address).outcome === "shown")
  return [
    { chain: chain.chain, addresses: shared, isConfirmed: true },
    { chain: chain.chain, addresses: unconfirmed, isConfirmed: false }
  ].filter(({ addresses }) => addresses.length > 0)
})

/** The history of addresses that are to be handed out. */
export class AddressHistory extends Context.Tag("tilld/Chains/AddressHistory")<
  AddressHistory,
  {
    /**
     * Finds the addresses with a history on any chain of the mode. Calls `found` as soon as a chain has responded.
     * Takes one call per chain and address, one per token and 500 addresses, and the same from other providers for the
     * addresses found. Returns the chains that could not be asked.
     */
    readonly vet: (
      mode: Mode,
      addresses: ReadonlyArray<string>,
      found: (used: HistoryFinding) => void
    ) => Effect.Effect<ReadonlyArray<ChainName>>
  }
>() {
  static readonly layer = Layer.effect(
    AddressHistory,
    Effect.gen(function* () {
      const settings = yield* Settings
      const networks = yield* Networks

      const vet: AddressHistory["Type"]["vet"] = Effect.fn("AddressHistory.vet")(function* (mode, addresses, found) {
        const vetOn = Effect.fnUntraced(function* (chain: ChainSettings) {
          const providers = networks.providersOf(chain)
          const provider = yield* providers.current
          const claimed = yield* usedNow(chain, provider, addresses)
          if (claimed.length === 0) return
          for (const used of yield* confirm(chain, providers, provider, claimed)) found(used)
        })
        const asked = settings.chains.filter((chain) => chain.mode === mode)
        const unreachable = yield* Effect.forEach(
          asked,
          (chain) => Effect.match(vetOn(chain), { onFailure: () => [chain.chain], onSuccess: () => [] }),
          { concurrency: "unbounded" }
        )
        return unreachable.flat()
      })
      return { vet }
    })
  )
}
