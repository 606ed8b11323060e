import { Clock, Duration, Effect, Either } from "effect"
import { type BlockHeader, getHead, sendBatch } from "../rpc/methods.ts"
import { RpcError } from "../rpc/RpcError.ts"
import { headOf } from "./headOf.ts"
import type { Provider, Providers } from "./Providers.ts"

/** A head that has not moved for this long is stalled. Milliseconds. */
const stillAfter = Duration.toMillis("1 minute")

/**
 * Whether a provider is stalled: its head is below the block `deep`, which was read from another one, and does not
 * move.
 */
export type IsStalled = (provider: Provider, deep: number) => Effect.Effect<boolean>

/**
 * Whether another provider has the same head: then the chain itself has stopped, and the higher blocks are invented.
 */
const isSharedHead = Effect.fnUntraced(function* ({ all }: Providers, provider: Provider, { hash }: BlockHeader) {
  for (const { client, index } of all) {
    if (index === provider.index) continue
    const found = yield* Effect.either(sendBatch(client, [getHead]))
    if (Either.isRight(found) && found.right[0].hash === hash) return true
  }
  return false
})

/**
 * Makes the check for stalled providers. A stalled one goes into cooldown, since it will never have the blocks that it
 * is asked about. One whose head moves only lags, and is waited for: the higher blocks may be invented by another
 * provider.
 */
export const makeIsStalled = (providers: Providers): IsStalled => {
  /** The heads of lagging providers, by index. `since` in Unix milliseconds. */
  const heads = new Map<number, { readonly number: number; readonly since: number }>()

  return Effect.fnUntraced(function* (provider: Provider, deep: number) {
    const head = yield* headOf(providers, provider)
    if (head === undefined) return true
    const { number } = head
    const now = yield* Clock.currentTimeMillis
    const before = heads.get(provider.index)
    if (number >= deep || before?.number !== number || now < before.since) {
      heads.set(provider.index, { number, since: now })
      return false
    }
    if (now - before.since < stillAfter) return false
    if (yield* isSharedHead(providers, provider, head)) return false
    const detail = `its head has been ${number} for ${Duration.format(now - before.since)}, and ${deep} has been read elsewhere`
    const { host } = provider.client
    yield* providers.failed(provider, new RpcError({ host, method: "eth_getBlockByNumber", reason: "behind", detail }))
    return true
  })
}
