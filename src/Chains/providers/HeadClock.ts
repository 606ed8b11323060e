import { Clock, Duration, Effect } from "effect"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import { headOf } from "./headOf.ts"
import type { Provider, Providers } from "./Providers.ts"

/** What a chain has shown counts for this long. */
const memory = Duration.toMillis("5 minutes")

/** Milliseconds that a block's time (Unix seconds) is ahead of `now`, where that is more than `tolerance`. */
export const aheadOf = (time: number, now: number, tolerance: number): number | undefined =>
  time * 1000 - now > tolerance ? time * 1000 - now : undefined

/** Milliseconds by a clock that nobody sets. */
const monotonic = (clock: Clock.Clock): number => Number(clock.unsafeCurrentTimeNanos() / 1_000_000n)

/**
 * This machine's clock beside the chains' heads. A head that is far ahead is a provider's lie or mistake, unless another
 * provider of the chain shows the same, or another chain where the chain's others do not answer: then the clock is behind. Reading goes on, money is credited,
 * and no payment ends by a time that nobody knows.
 */
export class HeadClock {
  /** @param tolerance milliseconds: block times run behind, and no clock is so wrong */
  constructor(
    readonly tolerance: number,
    /** The payment that was the last when the daemon was started: those after it are made by its clock. */
    readonly lastPayment: number
  ) {}

  /** By network, when its head was last seen far ahead; Unix milliseconds. */
  readonly #seen = new Map<string, number>()

  /** By network, milliseconds that its head was ahead of the monotonic clock when it was last looked at. */
  readonly #heads = new Map<string, number>()

  /**
   * By how many milliseconds the clock is behind the chain's, as far as its heads have shown; undefined before the first.
   * A clock that has been set since the last look is behind by what it is behind now.
   */
  behind(network: Network, clock: Clock.Clock): number | undefined {
    const head = this.#heads.get(networkKey(network))
    return head === undefined ? undefined : Math.max(0, head + monotonic(clock) - clock.unsafeCurrentTimeMillis())
  }

  /** A head of that time, Unix seconds, has been read: blocks run behind the clock, unless that is behind itself. */
  note(network: Network, time: number, clock: Clock.Clock): void {
    this.#heads.set(networkKey(network), time * 1000 - monotonic(clock))
  }

  /** Another chain has shown a head that is far ahead, some minutes ago at the most. */
  #isShownElsewhere({ chain }: Network, now: number): boolean {
    return Array.from(this.#seen).some(([key, at]) => !key.startsWith(`${chain}.`) && now >= at && now - at <= memory)
  }

  /**
   * Fails where a head's time is far ahead of the clock, and nobody else shows the same. Gives what is wrong with the clock
   * where somebody does.
   */
  check(network: Network, providers: Providers, provider: Provider, time: number) {
    return Effect.gen(this, function* () {
      const now = yield* Clock.currentTimeMillis
      const ahead = aheadOf(time, now, this.tolerance)
      if (ahead === undefined) {
        this.#seen.delete(networkKey(network))
        return undefined
      }
      this.#seen.set(networkKey(network), now)
      const by = Duration.format(Duration.seconds(Math.round(ahead / 1000)))
      const isShown = yield* isShownBy(providers, yield* providers.others(provider), now, this.tolerance)
      // One company may serve several chains: another chain tells only where nobody else of this one does.
      if (isShown ?? this.#isShownElsewhere(network, now)) {
        return `this machine's clock is ${by} behind the chain's: payments do not end until it is set right`
      }
      return yield* inconsistent(
        provider.client,
        "eth_getBlockByNumber",
        `its head is ${by} ahead of this machine's clock: one of the two is wrong`
      )
    })
  }
}

/** Whether another provider's head is far ahead of the clock too; undefined where none tells its head. */
const isShownBy = Effect.fnUntraced(function* (
  providers: Providers,
  others: ReadonlyArray<Provider>,
  now: number,
  tolerance: number
) {
  let isShown: boolean | undefined
  for (const other of others) {
    const head = yield* headOf(providers, other)
    if (head === undefined) continue
    if (aheadOf(head.time, now, tolerance) !== undefined) return true
    isShown = false
  }
  return isShown
})
