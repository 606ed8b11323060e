import { Clock, Duration, Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import { findHeader, getHead, sendBatch } from "../rpc/methods.ts"
import { inconsistent, RpcError } from "../rpc/RpcError.ts"
import { headOf } from "./headOf.ts"
import type { Provider, Providers } from "./Providers.ts"

/**
 * A newest block older than this is late, and so is a provider whose newest block is that much older than another's.
 */
const lateAfter = Duration.toMillis("2 minutes")
/** How often heads are compared with another provider's while the newest block is late. */
const compareInterval = Duration.toMillis("1 minute")
/** A lag of more than this many times the confirmations delays payments. */
const lagConfirmations = 2

/** Blocks by which the heads of two providers that follow the chain may differ. */
const usualLag = 1

/**
 * The error of a provider whose head has not moved for some time while another provider's is higher; undefined where
 * none is. A node that has lost its peers still responds, and looks like a chain without new blocks.
 */
export const higherHead = Effect.fn("Providers.higherHead")(function* (
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

/**
 * The error of a provider whose head moves but lags behind another provider's, or has an old time that it has not there;
 * undefined where it does not lag.
 */
export type Lags = (provider: Provider, head: BlockRef) => Effect.Effect<RpcError | undefined>

/**
 * Makes the check of one watcher for a node that cannot keep up with the chain. While the newest block is late by this
 * machine's clock, its head is compared with another provider's once a minute. Both lateness and lag must show: a
 * higher head alone proves nothing, since any provider can claim one.
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
    if (other === undefined) return undefined
    const look = sendBatch(other.client, [getHead, findHeader(head.number)])
    const found = yield* Effect.catchAll(look, (error) => Effect.as(providers.failed(other, error), undefined))
    if (found === undefined) return undefined
    const [theirs, same] = found
    if (same?.hash === head.hash && (same.time - head.time) * 1000 > lateAfter) {
      const detail = `the time of block ${head.number} is ${head.time} by it, and ${same.time} by another provider`
      return inconsistent(provider.client, "eth_getBlockByNumber", detail)
    }
    const isLate = (theirs.time - head.time) * 1000 > lateAfter
    if (!isLate || theirs.number - head.number <= lagConfirmations * chain.confirmations) return undefined
    const detail = `its head is ${head.number}, and another provider's is ${theirs.number} and ${theirs.time - head.time} s newer`
    return new RpcError({ host: provider.client.host, method: "eth_getBlockByNumber", reason: "behind", detail })
  })
}
