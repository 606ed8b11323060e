import { Effect, Either } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { Ballot, quorum, yes } from "../evidence/Ballot.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { type BlockHeader, findHeader, sendBatch } from "../rpc/methods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { wrongBlock } from "./blockDispute.ts"

/**
 * The time of a stored block, as a quorum of the providers has it. One provider alone has reported the stored time, and
 * payments end by it: where a quorum says otherwise, its time replaces the stored one, and providers of another one are
 * contradicted. Without a quorum the stored time stays: `isDisputed` where two have the block, with different times.
 */
export const corroborateTime = Effect.fn("Watcher.corroborateTime")(function* (
  { network, providers, writer }: WatchContext,
  asked: ReadonlyArray<Provider>,
  block: BlockRef
) {
  const ballot = new Ballot<BlockRef, BlockHeader, Provider>(
    (one, other) => one.hash === other.hash && one.time === other.time
  )
  for (const provider of asked) {
    // A failed one has no vote. The next step asks it too, and handles its failure.
    const look = yield* Effect.either(sendBatch(provider.client, [findHeader(block.number)]))
    const header = Either.isRight(look) ? look.right[0] : undefined
    if (header === undefined) continue
    ballot.vote(block, provider, yes(header))
  }
  const { agreed, claims, outcome } = ballot.tally(block)
  const found = agreed[0]?.value
  if (outcome !== "shown" || found === undefined) {
    const having = claims.filter(({ value }) => value.hash === block.hash)
    return { time: block.time, isDisputed: having.length >= quorum }
  }
  const { hash, time } = found
  for (const { by, value } of claims) {
    if (value.hash !== hash) {
      // A branch that two others do not have is left once another one serves.
      yield* providers.failed(by, wrongBlock(by, block.number, value.hash, hash))
    } else if (value.time !== time) {
      const detail = `block ${block.number} has the time ${value.time} by it, and ${time} by two others`
      yield* providers.contradicted(by, detail)
    }
  }
  if (hash !== block.hash) return { time: block.time, isDisputed: true }
  if (time === block.time) return { time, isDisputed: false }
  yield* Effect.logError("a provider reported a false block time, which the time by two others replaces").pipe(
    Effect.annotateLogs({ number: block.number, hash: block.hash, reported: block.time, time })
  )
  yield* writer.write(Ledger.setBlockTime(network, { ...block, time }))
  return { time, isDisputed: false }
})
