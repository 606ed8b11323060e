import { Array as Arr, Context, Effect, Layer } from "effect"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import { type ChainSettings, Settings } from "../Settings.ts"
import { ask, getBalance, getTokenBalance, getTransactionCount } from "./calls.ts"
import { Rpc, type RpcClient } from "./Rpc.ts"

/** Calls in one batch; providers allow from 100 up. */
const callsPerBatch = 90

export interface Vetting {
  /** Those of the given addresses that hold something or have sent something, as they were given. */
  readonly used: ReadonlySet<string>
  /** Chains that could not be asked. */
  readonly unreachable: ReadonlyArray<ChainName>
}

const holdings = (chain: ChainSettings, address: string) => [
  getBalance(address),
  getTransactionCount(address),
  ...chain.tokens.map((token) => getTokenBalance(token.address, address))
]

/** Those of the addresses that the chain knows. */
const usedOn = Effect.fn("History.usedOn")(function* (
  chain: ChainSettings,
  client: RpcClient,
  addresses: ReadonlyArray<string>
) {
  const perBatch = Math.max(1, Math.floor(callsPerBatch / (2 + chain.tokens.length)))
  const used: Array<string> = []
  for (const part of Arr.chunksOf(addresses, perBatch)) {
    const calls = part.map((address) => holdings(chain, address))
    const answers = yield* ask(client, calls.flat())
    const each = Arr.chunksOf(answers, 2 + chain.tokens.length)
    used.push(...part.filter((_, i) => each[i]?.some((held) => BigInt(held) > 0n)))
  }
  return used
})

/** What the chains know of addresses that are to be handed out. */
export class History extends Context.Tag("tilld/Chains/History")<
  History,
  {
    /**
     * Which addresses have a history on any chain of the mode: coins, configured tokens or transactions sent. It asks
     * each chain a few calls for each address. A chain that does not answer is left out and named.
     */
    readonly vet: (mode: Mode, addresses: ReadonlyArray<string>) => Effect.Effect<Vetting>
  }
>() {
  static readonly layer = Layer.effect(
    History,
    Effect.gen(function* () {
      const settings = yield* Settings
      const rpc = yield* Rpc

      const vet = Effect.fn("History.vet")(function* (mode: Mode, addresses: ReadonlyArray<string>) {
        const chains = settings.chains.filter((chain) => chain.mode === mode)
        const found = yield* Effect.forEach(
          chains,
          (chain) =>
            Effect.gen(function* () {
              const [url] = chain.rpcUrls
              return url === undefined ? [] : yield* usedOn(chain, rpc.client(url), addresses)
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
