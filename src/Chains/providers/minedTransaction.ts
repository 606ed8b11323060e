import { Effect } from "effect"
import { getHead, optional, sendBatch } from "../rpc/methods.ts"
import { hasSucceeded, receiptReader } from "../rpc/transactionMethods.ts"
import type { Providers } from "./Providers.ts"

const getMinedReceipt = receiptReader("transactionHash", "blockHash", "blockNumber", "status")

/** The block and outcome of a transaction. */
export interface MinedTransaction {
  readonly blockNumber: number
  readonly blockHash: string
  readonly succeeded: boolean
  /** Blocks from its own to the head, its own included. */
  readonly confirmations: number
}

/**
 * Reads from the serving provider a transaction that is in a block; undefined where the chain has none of that hash.
 */
export const minedTransaction = Effect.fn("Providers.minedTransaction")(function* (providers: Providers, hash: string) {
  const provider = yield* providers.current
  const [mined, head] = yield* sendBatch(provider.client, [optional(getMinedReceipt(hash)), getHead]).pipe(
    Effect.tapError((error) => providers.failed(provider, error))
  )
  if (mined?.transactionHash !== hash) return undefined
  const { blockHash, blockNumber } = mined
  const found: MinedTransaction = {
    blockNumber,
    blockHash,
    succeeded: hasSucceeded(mined),
    confirmations: head.number - blockNumber + 1
  }
  return found
})
