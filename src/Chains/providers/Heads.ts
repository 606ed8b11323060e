import { Clock, Duration, Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type BlockHeader, findHeader, getHead, sendBatch } from "../rpc/methods.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import type { Provider, Providers } from "./Providers.ts"
import { behind } from "./providerHealth.ts"

/** A newest block older than this is late, and a provider whose newest block is that much older than another's. */
const lateAfter = Duration.toMillis("2 minutes")
/** How often heads are compared with another provider's while the newest block is late. */
const compareInterval = Duration.toMillis("1 minute")
/** A lag of more than this many times the confirmations delays payments. */
const lagConfirmations = 2
/** Blocks by which the heads of two providers that follow the chain may differ. */
const usualLag = 1
/** Blocks above the last plausible head, or above another provider's, from which a head is implausible. */
const farAhead = 1_000
/** A head that has not moved for this long is stalled. */
const stillAfter = Duration.toMillis("1 minute")

/**
 * The heads of one network's providers, each compared with another one: whether a head is implausibly high, stalled, or
 * lagging. A single one proves nothing: any provider can claim a higher block.
 */
export class Heads {
  /** The last plausible head: another provider had one near it, or none could be asked. */
  #plausible: number | undefined
  /** When heads were last compared for a lag. Unix milliseconds. */
  #comparedAt = Number.NEGATIVE_INFINITY
  /** By index, the heads of providers that lack a block, and since when; Unix milliseconds. */
  readonly #still = new Map<number, { readonly number: number; readonly since: number }>()

  /** The last scanned block that heads are below, and since when. Unix milliseconds. */
  #below: { readonly hash: string; readonly since: number } | undefined

  /** @param confirmations of the chain */
  constructor(
    readonly providers: Providers,
    readonly confirmations: number
  ) {}

  /** The head of a provider that is not the serving one; undefined where the call fails, which counts as its failure. */
  of(provider: Provider): Effect.Effect<BlockHeader | undefined> {
    return sendBatch(provider.client, [getHead]).pipe(
      Effect.map(([head]) => head),
      Effect.catchAll((error) => Effect.as(this.providers.failed(provider, error), undefined))
    )
  }

  /** The head of one other provider. */
  #another(provider: Provider): Effect.Effect<BlockHeader | undefined> {
    return Effect.flatMap(this.providers.other(provider), (other) =>
      other === undefined ? Effect.succeed(undefined) : this.of(other)
    )
  }

  /**
   * Fails unless a head far above the last plausible one is near another provider's or, where none follows the chain,
   * is reported again. An invented head would be stored with the scan, and every right head would long be below it.
   *
   * @param after the last block that was read; undefined before the first
   */
  checkPlausible(provider: Provider, { hash, number }: BlockRef, after?: BlockRef) {
    return Effect.gen(this, function* () {
      this.#plausible ??= after?.number
      if (this.#plausible !== undefined && number - this.#plausible <= farAhead) return
      const other = yield* this.#another(provider)
      // An old head may be that of a lagging node, and is not evidence against a higher one.
      const isOld = other !== undefined && (yield* Clock.currentTimeMillis) - other.time * 1000 > lateAfter
      const theirs = isOld ? undefined : other?.number
      const isNear = theirs !== undefined && number - theirs <= farAhead
      const again =
        theirs === undefined ? (yield* sendBatch(provider.client, [findHeader(number)]))[0]?.hash : undefined
      if (isNear || again === hash) {
        this.#plausible = number
        return
      }
      const evidence =
        theirs === undefined ? `at another look that is ${again ?? "none"}` : `another provider's is ${theirs}`
      const detail = `its head is ${number} with ${hash}, and ${evidence}`
      return yield* inconsistent(provider.client, "eth_getBlockByNumber", detail)
    })
  }

  /**
   * The error of a provider whose head has not moved for some time while another provider's is higher; undefined where
   * none is. A node that has lost its peers still responds, and looks like a chain without new blocks.
   */
  stands(provider: Provider, head: number) {
    return Effect.map(this.#another(provider), (theirs) =>
      theirs === undefined || theirs.number <= head + usualLag
        ? undefined
        : behind(provider, `its head stands at ${head}, and another provider's at ${theirs.number}`)
    )
  }

  /**
   * The error of a provider whose head moves but lags behind another provider's, or has an old time that the other
   * one's has not; undefined where it does not lag. Asked once a minute while the newest block is late by this
   * machine's clock: both must show, since a higher head alone proves nothing.
   */
  lags(provider: Provider, head: BlockRef) {
    return Effect.gen(this, function* () {
      const now = yield* Clock.currentTimeMillis
      if (now - head.time * 1000 <= lateAfter) return undefined
      if (now >= this.#comparedAt && now - this.#comparedAt < compareInterval) return undefined
      this.#comparedAt = now
      const other = yield* this.providers.other(provider)
      if (other === undefined) return undefined
      const look = sendBatch(other.client, [getHead, findHeader(head.number)])
      const found = yield* Effect.catchAll(look, (error) => Effect.as(this.providers.failed(other, error), undefined))
      if (found === undefined) return undefined
      const [theirs, same] = found
      if (same?.hash === head.hash && (same.time - head.time) * 1000 > lateAfter) {
        const detail = `the time of block ${head.number} is ${head.time} by it, and ${same.time} by another provider`
        return inconsistent(provider.client, "eth_getBlockByNumber", detail)
      }
      const newer = theirs.time - head.time
      const isBehind = theirs.number - head.number > lagConfirmations * this.confirmations
      if (newer * 1000 <= lateAfter || !isBehind) return undefined
      const detail = `its head is ${head.number}, and another provider's is ${theirs.number} and ${newer} s newer`
      return behind(provider, detail)
    })
  }

  /**
   * Whether a provider's head is below the block `deep`, which was read from another one, and does not move. It goes into
   * cooldown, since it will never have the blocks that it is asked about. One whose head moves only lags, and is waited
   * for: the higher blocks may be invented.
   */
  isStalled(provider: Provider, deep: number) {
    return Effect.gen(this, function* () {
      const head = yield* this.of(provider)
      if (head === undefined) return true
      const { number } = head
      const now = yield* Clock.currentTimeMillis
      const before = this.#still.get(provider.index)
      if (number >= deep || before?.number !== number || now < before.since) {
        this.#still.set(provider.index, { number, since: now })
        return false
      }
      if (now - before.since < stillAfter || (yield* this.#isShared(provider, head))) return false
      const still = Duration.format(now - before.since)
      const error = behind(provider, `its head has been ${number} for ${still}, and ${deep} has been read elsewhere`)
      yield* this.providers.failed(provider, error)
      return true
    })
  }

  /** Whether another provider has the same head: then the chain itself has stopped, and the higher blocks are invented. */
  #isShared({ index }: Provider, { hash }: BlockHeader) {
    const others = this.providers.all.filter((other) => other.index !== index)
    return Effect.exists(others, ({ client }) =>
      Effect.match(sendBatch(client, [getHead]), { onFailure: () => false, onSuccess: ([head]) => head.hash === hash })
    )
  }

  /**
   * Whether the last scanned block is of a branch that a provider invented: the heads of this provider and another one
   * have lower numbers but later times, which is impossible on one chain, or have been lower for two minutes. Without this
   * check they would count as lagging until the chain reaches that number.
   */
  areBelow(provider: Provider, head: BlockRef, last: BlockRef) {
    return Effect.gen(this, function* () {
      if (head.number >= last.number) return false
      const now = yield* Clock.currentTimeMillis
      if (this.#below?.hash !== last.hash || now < this.#below.since) this.#below = { hash: last.hash, since: now }
      const isOverdue = now - this.#below.since >= lateAfter
      const isInvented = ({ number, time }: BlockRef) => number < last.number && (isOverdue || time > last.time)
      if (!isInvented(head)) return false
      return yield* Effect.exists(yield* this.providers.answering(provider), (other) =>
        Effect.map(this.of(other), (theirs) => theirs !== undefined && isInvented(theirs))
      )
    })
  }
}
