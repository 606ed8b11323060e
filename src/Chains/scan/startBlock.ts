import { Duration, Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { Db } from "../../Sql.ts"
import type { AddressSet } from "../ledger/AddressSet.ts"
import * as Watched from "../ledger/WatchedAddressesRepo.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { RpcError } from "../rpc/RpcError.ts"

/** How far a block's time may lag behind this machine's clock, milliseconds. */
const clockTolerance = Duration.toMillis("10 minutes")
/** Distance of the first probe, in blocks; each further one goes twice as deep. */
const firstDistance = 64

/**
 * The newest block, up to `from`, that is older than `time`, Unix seconds; the chain's first block where none is. Takes
 * at most two calls for each doubling of the distance. Fails where the node does not have a block on the way.
 */
export const newestBefore = Effect.fn("Scan.newestBefore")(function* (client: RpcClient, from: BlockRef, time: number) {
  let below = from
  let above = from
  for (let distance = firstDistance; below.time >= time; distance *= 2) {
    if (below.number === 0) return below
    above = below
    const [deeper] = yield* sendBatch(client, [getHeader(Math.max(0, from.number - distance))])
    below = deeper
  }
  while (above.number - below.number > 1) {
    const [middle] = yield* sendBatch(client, [getHeader(Math.floor((below.number + above.number) / 2))])
    if (middle.time < time) below = middle
    else above = middle
  }
  return below
})

const why =
  "payments were made before the chain's first head was known, and reading has to start below them: a provider that keeps such blocks helps, or a start_block"

/**
 * Number of the block above which scanning starts where no start_block is configured: below the head by the
 * confirmations, and below every block that may have money of payments created while no provider responded.
 */
export const latestStart = Effect.fn("Scan.latestStart")(function* (
  chain: ChainSettings,
  client: RpcClient,
  reader: Db,
  watched: AddressSet,
  head: BlockRef
) {
  const start = Math.max(head.number - chain.confirmations, 0)
  const oldest = yield* Watched.oldestUnplaced(reader, chain, watched)
  if (oldest === undefined) return start
  // A start that is too high is stored and hides everything below it, so a node that lacks old blocks must not set it.
  const before = yield* Effect.mapError(
    newestBefore(client, head, Math.floor((oldest - clockTolerance) / 1000)),
    (error) => new RpcError({ ...error, detail: `${error.detail}; ${why}` })
  )
  return Math.min(start, before.number)
})
