import { Clock, Duration, Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import { RpcError } from "../rpc/RpcError.ts"
import { headOf } from "./headOf.ts"
import type { Provider, Providers } from "./Providers.ts"

/** A newest block that is older than this is late, and so is a provider whose newest block is that much older. */
const lateAfter = Duration.toMillis("2 minutes")
/** How often another provider is asked for its head while the newest block is late. */
const compareInterval = Duration.toMillis("1 minute")
/** A lag of this many times the confirmations holds payments up. */
const lagConfirmations = 2

/** Two providers that both follow the chain may see a block at different times. */
const usualLag = 1

/**
 * Whether another provider has a higher head than this one, whose `head` has not moved for some time: a node that has
 * lost its peers goes on to answer, and looks like a chain on which nothing happens. Undefined where nobody knows better.
 */
export const higherHead = Effect.fn("Watcher.overtaken")(function* (
  { providers }: { readonly providers: Providers },
  provider: Provider,
  head: number
) {
  const other = yield* providers.other(provider)
  if (other === undefined) return undefined
  const theirs = yield* headOf(providers, other)
  if (theirs === undefined || theirs.number <= head + usualLag) return undefined
  const detail = `its head stands at ${head}, and another provider's at ${theirs.number}`
  return new RpcError({ host: provider.client.host, method: "eth_getBlockByNumber", reason: "behind", detail })
})

/** Whether a provider's head, which moves, is more and more behind another one's. Undefined where it is not. */
export type Lags = (provider: Provider, head: BlockRef) => Effect.Effect<RpcError | undefined>

/**
 * A head that moves may be that of a node which cannot keep up. While its block is late by this machine's clock, another
 * provider is asked for its own once a minute: a newer one alone proves nothing, since anybody can claim it.
 */
export const makeLags = ({
  chain,
  providers
}: {
  readonly chain: ChainSettings
  readonly providers: Providers
}): Lags => {
  let comparedAt = Number.NEGATIVE_INFINITY
  return Effect.fnUntraced(function* (provider: Provider, head: BlockRef) {
    const now = yield* Clock.currentTimeMillis
    if (now - head.time * 1000 <= lateAfter) return undefined
    if (now >= comparedAt && now - comparedAt < compareInterval) return undefined
    comparedAt = now
    const other = yield* providers.other(provider)
    const theirs = other && (yield* headOf(providers, other))
    if (theirs === undefined) return undefined
    const isLate = (theirs.time - head.time) * 1000 > lateAfter
    if (!isLate || theirs.number - head.number <= lagConfirmations * chain.confirmations) return undefined
    const detail = `its head is ${head.number}, and another provider's is ${theirs.number} and ${theirs.time - head.time} s newer`
    return new RpcError({ host: provider.client.host, method: "eth_getBlockByNumber", reason: "behind", detail })
  })
}
