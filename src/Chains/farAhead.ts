import { Clock, Duration, Effect, Either } from "effect"
import type { BlockRef } from "../Domain/Receipt.ts"
import { ask, findHeader, getHead } from "./calls.ts"
import type { Provider, Providers } from "./Providers.ts"
import { RpcError } from "./Rpc.ts"

/** A head that is so many blocks above what has been read, or above another provider's, is looked at once more. */
const farAhead = 1_000

/** A head that is older than this may be that of a node that is behind: it says nothing about a higher one. */
const staleAfter = Duration.toMillis("2 minutes")

/** The head of another provider, where one can be used that follows the chain. */
const othersHead = Effect.fnUntraced(function* (providers: Providers, provider: Provider) {
  const other = yield* providers.other(provider)
  if (other === undefined) return undefined
  const found = yield* Effect.either(ask(other.client, [getHead]))
  if (Either.isRight(found)) {
    const [{ number, time }] = found.right
    return (yield* Clock.currentTimeMillis) - time * 1000 > staleAfter ? undefined : number
  }
  yield* providers.failed(other, found.left)
  return undefined
})

/**
 * Fails unless a head that is far above the scanned one, as after a downtime, is near another provider's or, where there is
 * none that follows the chain, is there at another look. A wrong number would be kept where no block below it is read, and
 * made-up blocks be read up to it where they are: every right head would be behind for long, or for ever.
 */
export const checkAhead = Effect.fn("Watcher.checkAhead")(function* (
  providers: Providers,
  provider: Provider,
  after: BlockRef,
  { hash, number }: BlockRef
) {
  if (number - after.number <= farAhead) return
  const { client } = provider
  const theirs = yield* othersHead(providers, provider)
  if (theirs !== undefined && number - theirs <= farAhead) return
  const again = theirs === undefined ? (yield* ask(client, [findHeader(number)]))[0]?.hash : undefined
  if (again === hash) return
  const told = theirs === undefined ? `at another look that is ${again ?? "none"}` : `another provider's is ${theirs}`
  const detail = `its head is ${number} with ${hash}, and ${told}`
  return yield* new RpcError({ host: client.host, method: "eth_getBlockByNumber", reason: "inconsistent", detail })
})
