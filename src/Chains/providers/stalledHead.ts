import { Clock, Duration, Effect, Either } from "effect"
import { type BlockHeader, getHead, sendBatch } from "../rpc/methods.ts"
import { RpcError } from "../rpc/RpcError.ts"
import { headOf } from "./headOf.ts"
import type { Provider, Providers } from "./Providers.ts"

/** A provider whose head has not moved for this long no longer follows the chain. */
const stillAfter = Duration.toMillis("1 minute")

/** Whether a provider whose head is below the block `deep`, which another one has read, no longer follows the chain. */
export type IsStalled = (provider: Provider, deep: number) => Effect.Effect<boolean>

/** Whether another provider has the same head: then the chain stands still, and who has read further has made that up. */
const isSharedHead = Effect.fnUntraced(function* ({ all }: Providers, provider: Provider, { hash }: BlockHeader) {
  for (const { client, index } of all) {
    if (index === provider.index) continue
    const found = yield* Effect.either(sendBatch(client, [getHead]))
    if (Either.isRight(found) && found.right[0].hash === hash) return true
  }
  return false
})

/**
 * A provider whose head is below such a block and does not move is put aside: it will never have what it is asked about. One
 * whose head moves is only behind, and is waited for: the block may be of a branch that somebody has made up.
 */
export const makeIsStalled = (providers: Providers): IsStalled => {
  /** The heads of those that were behind, by provider. Times are Unix milliseconds. */
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
