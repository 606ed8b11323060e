/**
 * This machine's clock compared with the chains' heads, shared by all watchers. It distinguishes a wrong clock from a
 * provider's wrong head, and measures how far the clock is behind, so that no payment ends early by a wrong clock.
 */
import { Clock, Duration, Effect } from "effect"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import { RpcError } from "../rpc/RpcError.ts"
import type { Heads } from "./Heads.ts"
import type { Provider } from "./Providers.ts"

/** How long a head that was far ahead counts for the other chains, and one that another provider has reached too. Milliseconds. */
const memory = Duration.toMillis("5 minutes")

/** A lead of up to this moves no deadline by more: one provider alone may have it. Milliseconds. */
const unseen = Duration.toMillis("5 seconds")

/** Milliseconds that a block's time (Unix seconds) is ahead of `now`, where that is more than `tolerance`. */
export const aheadOf = (time: number, now: number, tolerance: number): number | undefined =>
  time * 1000 - now > tolerance ? time * 1000 - now : undefined

/** Milliseconds of the monotonic clock, which cannot be set. */
const monotonic = (clock: Clock.Clock): number => Number(clock.unsafeCurrentTimeNanos() / 1_000_000n)

/**
 * Compares heads with this machine's clock. A head far ahead of the clock is a provider's error, unless another
 * provider of the chain shows the same or, where no other responds, another chain does: then the clock is behind. While
 * it is, reading goes on and transfers are credited, but no payment ends by its time.
 */
export class HeadClock {
  /** @param tolerance milliseconds by which a head may be ahead of the clock */
  constructor(
    readonly tolerance: number,
    /** The number of the last payment before the daemon started: later ones are made by this process's clock. */
    readonly lastPayment: number
  ) {}

  /** By network, when its head was last far ahead. Unix milliseconds. */
  readonly #farAhead = new Map<string, number>()

  /** By network, by how many milliseconds a head was ahead, and another provider's too, and when that was seen. */
  readonly #corroborated = new Map<string, { readonly ahead: number; readonly at: number }>()

  /** By network, milliseconds by which its last head was ahead of the monotonic clock. */
  readonly #heads = new Map<string, number>()

  /**
   * Milliseconds by which the last head's time was ahead of the clock when it was read, negative by its age; undefined
   * before the first head. Right also where the clock has been set since.
   */
  ahead(network: Network, clock: Clock.Clock): number | undefined {
    const head = this.#heads.get(networkKey(network))
    return head === undefined ? undefined : head + monotonic(clock) - clock.unsafeCurrentTimeMillis()
  }

  /** Milliseconds by which the clock is behind the chain's heads, 0 where it is not; undefined before the first head. */
  behind(network: Network, clock: Clock.Clock): number | undefined {
    const ahead = this.ahead(network, clock)
    return ahead && Math.max(0, ahead)
  }

  /** Notes the time of a head that was read, Unix seconds: before the clock's, unless the clock is behind. */
  note(network: Network, time: number, clock: Clock.Clock): void {
    this.#heads.set(networkKey(network), time * 1000 - monotonic(clock))
  }

  /** Whether the head of another chain was far ahead within the last minutes. */
  #isShownElsewhere({ chain }: Network, now: number): boolean {
    return Array.from(this.#farAhead).some(
      ([key, at]) => !key.startsWith(`${chain}.`) && now >= at && now - at <= memory
    )
  }

  /**
   * Compares a head's time, Unix seconds, with the clock. `time`: the latest time that this provider and another one have
   * reached, or that it alone claims where it decides alone; a few seconds ahead need no other. `wrong`: why the clock is
   * wrong, where another source shows a head far ahead too. Fails where none does.
   */
  check(network: Network, heads: Heads, provider: Provider, time: number) {
    return Effect.gen(this, function* () {
      const now = yield* Clock.currentTimeMillis
      const key = networkKey(network)
      const isFar = aheadOf(time, now, this.tolerance) !== undefined
      if (isFar) this.#farAhead.set(key, now)
      else this.#farAhead.delete(key)
      const ahead = aheadOf(time, now, unseen)
      if (ahead === undefined || (!isFar && this.#isCorroborated(key, ahead, now))) return { time, wrong: undefined }
      const theirs = yield* othersTime(heads, provider, time)
      const by = Duration.format(Duration.seconds(Math.round(ahead / 1000)))
      if (isFar) {
        const isShown = theirs === undefined ? undefined : aheadOf(theirs, now, this.tolerance) !== undefined
        // Another chain counts only where no other provider of this one responds: one company may serve both chains.
        if (!(isShown ?? this.#isShownElsewhere(network, now))) {
          return yield* new RpcError({
            host: provider.client.host,
            method: "eth_getBlockByNumber",
            reason: "inconsistent",
            detail: `its head is ${by} ahead of this machine's clock: one of the two is wrong`,
            remedy: "let chrony or systemd-timesyncd set the clock, or put another provider in its place in rpc_urls"
          })
        }
        const wrong = `this machine's clock is ${by} behind the chain's: payments do not end until it is set right`
        return { time: Math.min(time, theirs ?? time), wrong }
      }
      const reachedBy = theirs ?? (heads.providers.decidesAlone(provider) ? time : Math.floor(now / 1000))
      if (aheadOf(time, reachedBy * 1000, unseen) === undefined) this.#corroborated.set(key, { ahead, at: now })
      return { time: Math.min(time, reachedBy), wrong: undefined }
    })
  }

  /** Whether another provider had a head that was as far ahead, a short while ago. */
  #isCorroborated(key: string, ahead: number, now: number): boolean {
    const corroborated = this.#corroborated.get(key)
    if (corroborated === undefined || now < corroborated.at || now - corroborated.at > memory) return false
    return ahead <= corroborated.ahead + unseen
  }
}

/**
 * The latest time of another head, Unix seconds, up to the first that reaches `time`; undefined where none responds.
 */
const othersTime = Effect.fnUntraced(function* (heads: Heads, provider: Provider, time: number) {
  let latest: number | undefined
  for (const other of yield* heads.providers.others(provider)) {
    const head = yield* heads.of(other)
    if (head === undefined) continue
    latest = Math.max(latest ?? 0, head.time)
    if (latest >= time) break
  }
  return latest
})
