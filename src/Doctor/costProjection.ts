import { Duration } from "effect"
import { idleInterval } from "../Chains/watcher/interval.ts"
import { idleTagInterval, policyTagInterval, tagInterval } from "../Chains/watcher/maintenance.ts"
import { refreshInterval } from "../Quotes/Prices.ts"
import { feedsOf } from "../Quotes/sources/feeds.ts"
import type { ChainSettings } from "../Settings.ts"

const day = Duration.toMillis("1 day")

/** Measured bytes of each kind of call, request and response bodies together. */
export interface Sizes {
  /** The head, and the header of the last scanned block. */
  readonly look: number
  /** Logs without a match, and the header of the last block of the range. */
  readonly read: number
  /** A block with its transactions; 0 on chains whose full blocks are not read. */
  readonly block: number
  /** A balance call. */
  readonly balances: number
}

/** Traffic of a day. */
export interface Traffic {
  readonly calls: number
  readonly bytes: number
}

export interface Projection {
  /** While a payment of the mode is open all day. */
  readonly busy: Traffic
  /** While none is, and addresses are still watched. */
  readonly idle: Traffic
}

/** Intervals in milliseconds; of balances and prices, times a day. */
interface Intervals {
  readonly look: number
  readonly tags: number
  readonly balances: number
  /** Reads of price feeds a day at most: none without Chainlink among the sources. */
  readonly prices: number
}

const trafficAt = (intervals: Intervals, blocks: number, sizes: Sizes): Traffic => {
  const looks = day / intervals.look
  // A poll of an unchanged head reads nothing.
  const reads = Math.min(looks, blocks)
  const wholeBlocks = sizes.block > 0 ? blocks : 0
  // With each tag the verification pass reads the blocks that have become deep.
  const tags = Math.min(day / Math.max(intervals.tags, intervals.look), blocks)
  return {
    calls: Math.round(2 * looks + 2 * reads + wholeBlocks + 3 * tags + intervals.balances + intervals.prices),
    bytes: Math.round(
      looks * sizes.look +
        reads * sizes.read +
        wholeBlocks * sizes.block +
        tags * (sizes.look / 2 + sizes.read) +
        intervals.balances * sizes.balances
    )
  }
}

/**
 * The calls of a watcher to its providers in a day, with up to a thousand open payments in the native coin, which fit
 * into one balance call. `blockSeconds` is the time from one block to the next.
 */
export const project = (chain: ChainSettings, blockSeconds: number, sizes: Sizes): Projection => {
  const { balanceInterval, policies, pollInterval } = chain
  const blocks = day / 1000 / blockSeconds
  const common = {
    prices: feedsOf(chain) === undefined ? 0 : day / Duration.toMillis(refreshInterval)
  } as const
  const look = Duration.toMillis(pollInterval)
  const busy: Intervals = {
    ...common,
    look,
    tags: policies.length > 0 ? policyTagInterval : tagInterval,
    balances: day / Math.max(Duration.toMillis(balanceInterval), look)
  }
  const idle: Intervals = {
    ...common,
    look: Math.max(Duration.toMillis(idleInterval), look),
    tags: idleTagInterval,
    balances: 1
  }
  return { busy: trafficAt(busy, blocks, sizes), idle: trafficAt(idle, blocks, sizes) }
}
