import { Effect } from "effect"
import { type BlockHeader, getHead, sendBatch } from "../rpc/methods.ts"
import type { Provider, Providers } from "./Providers.ts"

/** The head of a provider that is not the serving one; undefined where the call fails, which counts as its failure. */
export const headOf = (
  { failed }: Pick<Providers, "failed">,
  provider: Provider
): Effect.Effect<BlockHeader | undefined> =>
  sendBatch(provider.client, [getHead]).pipe(
    Effect.map(([head]) => head),
    Effect.catchAll((error) => Effect.as(failed(provider, error), undefined))
  )
