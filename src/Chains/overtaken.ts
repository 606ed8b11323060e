import { Effect, Option } from "effect"
import { ask, getHead } from "./calls.ts"
import type { Provider } from "./Providers.ts"
import { RpcError } from "./Rpc.ts"
import type { Watch } from "./watch.ts"

/** Two providers that both follow the chain may see a block at different times. */
const usualLag = 1

/**
 * Whether another provider has a higher head than this one, whose `head` has not moved for some time: a node that has
 * lost its peers goes on to answer, and looks like a chain on which nothing happens. Undefined where nobody knows better.
 */
export const overtaken = Effect.fn("Watcher.overtaken")(function* (
  { providers }: Watch,
  provider: Provider,
  head: number
) {
  const other = yield* providers.other(provider)
  if (other === undefined) return undefined
  const [theirs] = yield* Effect.option(ask(other.client, [getHead])).pipe(
    Effect.map(Option.getOrElse(() => [undefined] as const))
  )
  if (theirs === undefined || theirs.number <= head + usualLag) return undefined
  const detail = `its head stands at ${head}, and another provider's at ${theirs.number}`
  return new RpcError({ host: provider.client.host, method: "eth_getBlockByNumber", reason: "behind", detail })
})
