import { Clock, Duration, Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import { headOf } from "./headOf.ts"
import type { Provider, Providers } from "./Providers.ts"

/** A head that is so many blocks above what was believed, or above another provider's, is far ahead. */
const farAhead = 1_000

/** A head that is older than this may be that of a node that is behind: it says nothing about a higher one. */
const staleAfter = Duration.toMillis("2 minutes")

/** The head of another provider, where one can be used that follows the chain. */
const othersHead = Effect.fnUntraced(function* (providers: Providers, provider: Provider) {
  const other = yield* providers.other(provider)
  if (other === undefined) return undefined
  const head = yield* headOf(providers, other)
  if (head === undefined) return undefined
  return (yield* Clock.currentTimeMillis) - head.time * 1000 > staleAfter ? undefined : head.number
})

/**
 * Holds a watcher's heads against another provider's wherever they have moved far since they last were, be it at once or
 * step by step: a wrong number would be kept where no block below it is read, and made-up blocks be read up to it where they
 * are, and every right head would be behind for long, or for ever.
 */
export class ImplausibleHeads {
  /** Up to here heads have been believed: another provider had one near, or nobody else could be asked. */
  #believed: number | undefined

  constructor(readonly providers: Providers) {}

  /**
   * Fails unless a head that is far above what was believed is near another provider's or, where there is none that follows
   * the chain, is there at another look.
   *
   * @param after what has been read; undefined where nothing has
   */
  check(provider: Provider, { hash, number }: BlockRef, after?: BlockRef) {
    return Effect.gen(this, function* () {
      this.#believed ??= after?.number
      if (this.#believed !== undefined && number - this.#believed <= farAhead) return
      const { client } = provider
      const theirs = yield* othersHead(this.providers, provider)
      const isNear = theirs !== undefined && number - theirs <= farAhead
      const again = theirs === undefined ? (yield* sendBatch(client, [findHeader(number)]))[0]?.hash : undefined
      if (isNear || again === hash) {
        this.#believed = number
        return
      }
      const told =
        theirs === undefined ? `at another look that is ${again ?? "none"}` : `another provider's is ${theirs}`
      const detail = `its head is ${number} with ${hash}, and ${told}`
      return yield* inconsistent(client, "eth_getBlockByNumber", detail)
    })
  }
}
