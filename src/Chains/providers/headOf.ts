import { Effect } from "effect"
import { type BlockHeader, getHead, sendBatch } from "../rpc/methods.ts"
import type { Provider, Providers } from "./Providers.ts"

/** The head of a provider that is asked beside the serving one; where it does not tell, it has failed. */
export const headOf = (
  { failed }: Pick<Providers, "failed">,
  provider: Provider
): Effect.Effect<BlockHeader | undefined> =>
  sendBatch(provider.client, [getHead]).pipe(
    Effect.map(([head]) => head),
    Effect.catchAll((error) => Effect.as(failed(provider, error), undefined))
  )
