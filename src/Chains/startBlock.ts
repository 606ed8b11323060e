import { Duration, Effect } from "effect"
import type { BlockRef } from "../Domain/Receipt.ts"
import type { ChainSettings } from "../Settings.ts"
import type { Db } from "../Sql.ts"
import { ask, findHeader } from "./calls.ts"
import type { RpcClient } from "./Rpc.ts"
import * as Watched from "./WatchedRepo.ts"

/** How far behind this machine's clock a block's time may be. */
const clockTolerance = Duration.toMillis("10 minutes")

/** How far down the first look goes, in blocks; each further one goes as many times deeper. */
const firstLook = 64
const deeper = 8

/**
 * The newest block below `from` that is older than `time`, Unix seconds, or the chain's first. Takes a call for each
 * halving of the distance. Where the node does not keep blocks that old: the oldest that it has.
 */
export const newestBefore = Effect.fn("Chains.newestBefore")(function* (
  client: RpcClient,
  from: BlockRef,
  time: number
) {
  let above = from
  let below: BlockRef | undefined
  let lowest = from.number
  for (let distance = firstLook; lowest > 0 && below === undefined; distance *= deeper) {
    lowest = Math.max(0, from.number - distance)
    const [found] = yield* ask(client, [findHeader(lowest)])
    if (found === undefined) break
    if (found.time < time || lowest === 0) below = found
    else above = found
  }
  // Between `lowest`, which is old enough or is not kept, and `above`, which is too young.
  while (above.number - lowest > 1) {
    const middle = Math.floor((lowest + above.number) / 2)
    const [found] = yield* ask(client, [findHeader(middle)])
    if (found !== undefined && found.time >= time) above = found
    else {
      lowest = middle
      below = found ?? below
    }
  }
  return below ?? above
})

/**
 * Below which block reading starts where none is configured: a few below the head, and below all that may hold money of
 * payments that were made while no provider answered.
 */
export const latestStart = Effect.fn("Chains.latestStart")(function* (
  chain: ChainSettings,
  client: RpcClient,
  reader: Db,
  head: BlockRef
) {
  const start = Math.max(head.number - chain.confirmations, 0)
  const oldest = yield* Watched.oldestUnplaced(reader, chain)
  if (oldest === undefined) return start
  const before = yield* newestBefore(client, head, Math.floor((oldest - clockTolerance) / 1000))
  return Math.min(start, before.number)
})
