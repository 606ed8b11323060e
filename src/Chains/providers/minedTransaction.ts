import { Effect, Either, Schema } from "effect"
import { type Call, Count, decoder, getHead, Hash, sendBatch } from "../rpc/methods.ts"
import type { Providers } from "./Providers.ts"

const Mined = Schema.Struct({
  transactionHash: Hash,
  blockHash: Hash,
  blockNumber: Count,
  status: Schema.Literal("0x0", "0x1")
})

const decode = decoder(Mined)

const findMined = (hash: string): Call<typeof Mined.Type | undefined> => ({
  method: "eth_getTransactionReceipt",
  params: [hash],
  decode: (result) => (result === null ? Either.right(undefined) : decode(result))
})

/** Where a transaction stands on its chain. */
export interface MinedTransaction {
  readonly blockNumber: number
  readonly blockHash: string
  readonly succeeded: boolean
  /** Its block is the first. */
  readonly confirmations: number
}

/** Asks a chain's provider for a transaction that is in a block; undefined where the chain has none of that hash. */
export const minedTransaction = Effect.fn("Chains.minedTransaction")(function* (providers: Providers, hash: string) {
  const provider = yield* providers.current
  const [mined, head] = yield* sendBatch(provider.client, [findMined(hash), getHead]).pipe(
    Effect.tapError((error) => providers.failed(provider, error))
  )
  if (mined?.transactionHash !== hash) return undefined
  const { blockHash, blockNumber, status } = mined
  const found: MinedTransaction = {
    blockNumber,
    blockHash,
    succeeded: status === "0x1",
    confirmations: head.number - blockNumber + 1
  }
  return found
})
