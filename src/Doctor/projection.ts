import { Duration } from "effect"
import { idleTagInterval, policyTagInterval, tagInterval } from "../Chains/watcher/maintenance.ts"
import { idleInterval } from "../Chains/watcher/watcherState.ts"
import { refreshInterval } from "../Quotes/Prices.ts"
import { feedsOf } from "../Quotes/sources/feeds.ts"
import type { ChainSettings } from "../Settings.ts"

const day = Duration.toMillis("1 day")
/** What one of each exchange takes, in bytes of both bodies, as it was measured. */
export interface Sizes {
  /** The head, and the header of the last block that was read. */
  readonly look: number
  /** Logs without a match, and the header of the range's end. */
  readonly read: number
  /** A block with its transactions; 0 on chains that are not read so. */
  readonly block: number
  /** A balance call. */
  readonly balances: number
}

export interface Traffic {
  /** A day. */
  readonly calls: number
  readonly bytes: number
}

export interface Projection {
  /** While a payment of the mode is open all day. */
  readonly busy: Traffic
  /** While none is, and addresses are still watched. */
  readonly idle: Traffic
}

/** How often each is done, in milliseconds; balances: how many times a day. */
interface Pace {
  readonly look: number
  readonly tags: number
  readonly balances: number
  /** Looks at price feeds, a day, at most: without Chainlink among the price sources there are none. */
  readonly prices: number
}

const trafficAt = (pace: Pace, blocks: number, sizes: Sizes): Traffic => {
  const looks = day / pace.look
  // A look at a head that has not moved reads nothing.
  const reads = Math.min(looks, blocks)
  const wholeBlocks = sizes.block > 0 ? blocks : 0
  // With each tag, what has become final is read for the second time.
  const tags = Math.min(day / Math.max(pace.tags, pace.look), blocks)
  return {
    calls: Math.round(2 * looks + 2 * reads + wholeBlocks + 3 * tags + pace.balances + pace.prices),
    bytes: Math.round(
      looks * sizes.look +
        reads * sizes.read +
        wholeBlocks * sizes.block +
        tags * (sizes.look / 2 + sizes.read) +
        pace.balances * sizes.balances
    )
  }
}

/**
 * What a watcher asks of its providers in a day, with up to a thousand open payments in the chain's coin, which fit into
 * one balance call. `blockSeconds` is the time from one block to the next.
 */
export const project = (chain: ChainSettings, blockSeconds: number, sizes: Sizes): Projection => {
  const { balanceInterval, policies, pollInterval } = chain
  const blocks = day / 1000 / blockSeconds
  const besides = {
    prices: feedsOf(chain) === undefined ? 0 : day / Duration.toMillis(refreshInterval)
  } as const
  const look = Duration.toMillis(pollInterval)
  const busy: Pace = {
    ...besides,
    look,
    tags: policies.length > 0 ? policyTagInterval : tagInterval,
    balances: day / Math.max(Duration.toMillis(balanceInterval), look)
  }
  const idle: Pace = {
    ...besides,
    look: Math.max(Duration.toMillis(idleInterval), look),
    tags: idleTagInterval,
    balances: 1
  }
  return { busy: trafficAt(busy, blocks, sizes), idle: trafficAt(idle, blocks, sizes) }
}
