import { Effect } from "effect"
import type { Provider, Providers } from "../../src/Chains/Providers.ts"
import type { RpcClient } from "../../src/Chains/Rpc.ts"
import { Span } from "../../src/Chains/Span.ts"

/** A chain's only provider, which is never put aside, and the providers that it is. */
export const soleProvider = (client: RpcClient): { readonly provider: Provider; readonly providers: Providers } => {
  const provider: Provider = { client, span: new Span(), index: 0 }
  return {
    provider,
    providers: {
      current: Effect.succeed(provider),
      other: () => Effect.succeed(undefined),
      others: () => Effect.succeed([]),
      agree: () => Effect.succeed({ genesis: undefined }),
      began: () => undefined,
      verify: () => Effect.void,
      failed: () => Effect.void,
      succeeded: () => undefined,
      nextTry: (now) => now,
      health: () => [],
      all: [provider]
    }
  }
}
