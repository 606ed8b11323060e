import { Effect } from "effect"
import { BlockRange } from "../../src/Chains/providers/BlockRange.ts"
import type { Provider, Providers } from "../../src/Chains/providers/Providers.ts"
import type { RpcClient } from "../../src/Chains/rpc/Rpc.ts"
import type { RpcReason } from "../../src/Chains/rpc/RpcError.ts"

/** A chain's only provider, which never gets a cooldown, as `Providers`. */
export const soleProvider = (client: RpcClient): { readonly provider: Provider; readonly providers: Providers } => {
  const provider: Provider = { client, blockRange: new BlockRange(), index: 0 }
  return {
    provider,
    providers: {
      current: Effect.succeed(provider),
      other: () => Effect.succeed(undefined),
      others: () => Effect.succeed([]),
      witnesses: () => Effect.succeed([]),
      answering: () => Effect.succeed([]),
      contradicted: () => Effect.void,
      agree: () => Effect.succeed({ genesis: undefined }),
      began: () => undefined,
      verify: () => Effect.void,
      failed: () => Effect.void,
      succeeded: () => undefined,
      answered: () => Effect.void,
      decidesAlone: () => true,
      areAllContradicted: () => false,
      aloneSince: () => undefined,
      nextTry: (now) => now,
      health: () => [],
      look: Effect.void,
      all: [provider]
    }
  }
}

/** A chain's providers, the first of which serves. None gets a cooldown; `aside` has the reasons for which one would. */
export const someProviders = (...clients: readonly [RpcClient, ...Array<RpcClient>]) => {
  const all = clients.map((client, index): Provider => ({ client, blockRange: new BlockRange(), index }))
  const sole = soleProvider(clients[0])
  const aside: Array<RpcReason> = []
  const others = (than: Provider) => all.filter(({ index }) => index !== than.index)
  const providers: Providers = {
    ...sole.providers,
    other: (than) => Effect.succeed(others(than)[0]),
    others: (than) => Effect.succeed(others(than)),
    witnesses: (than) => Effect.succeed(others(than)),
    answering: (than) => Effect.succeed(others(than)),
    decidesAlone: () => all.length < 2,
    failed: (_, error) => Effect.sync(() => void ("reason" in error && aside.push(error.reason))),
    all
  }
  return { provider: sole.provider, providers, aside }
}
