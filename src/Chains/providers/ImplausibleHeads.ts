import { Clock, Duration, Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import { headOf } from "./headOf.ts"
import type { Provider, Providers } from "./Providers.ts"

/** Blocks above the last plausible head, or above another provider's, from which a head is implausible. */
const farAhead = 1_000

/** A head older than this may be that of a lagging node, and is no evidence against a higher one. Milliseconds. */
const staleAfter = Duration.toMillis("2 minutes")

/** The number of another provider's head; undefined where none can be used or it lags. */
const othersHead = Effect.fnUntraced(function* (providers: Providers, provider: Provider) {
  const other = yield* providers.other(provider)
  if (other === undefined) return undefined
  const head = yield* headOf(providers, other)
  if (head === undefined) return undefined
  return (yield* Clock.currentTimeMillis) - head.time * 1000 > staleAfter ? undefined : head.number
})

/**
 * Compares a watcher's heads with another provider's whenever they have moved far since the last comparison, at once or
 * step by step. An invented head would be stored with the scan, and every right head would be below it for long, or for
 * ever.
 */
export class ImplausibleHeads {
  /** The last plausible head: another provider had one near it, or none could be asked. */
  #plausible: number | undefined

  constructor(readonly providers: Providers) {}

  /**
   * Fails unless a head far above the last plausible one is near another provider's or, where none follows the chain,
   * is reported again.
   *
   * @param after the last block that was read; undefined before the first
   */
  check(provider: Provider, { hash, number }: BlockRef, after?: BlockRef) {
    return Effect.gen(this, function* () {
      this.#plausible ??= after?.number
      if (this.#plausible !== undefined && number - this.#plausible <= farAhead) return
      const { client } = provider
      const theirs = yield* othersHead(this.providers, provider)
      const isNear = theirs !== undefined && number - theirs <= farAhead
      const again = theirs === undefined ? (yield* sendBatch(client, [findHeader(number)]))[0]?.hash : undefined
      if (isNear || again === hash) {
        this.#plausible = number
        return
      }
      const evidence =
        theirs === undefined ? `at another look that is ${again ?? "none"}` : `another provider's is ${theirs}`
      const detail = `its head is ${number} with ${hash}, and ${evidence}`
      return yield* inconsistent(client, "eth_getBlockByNumber", detail)
    })
  }
}
