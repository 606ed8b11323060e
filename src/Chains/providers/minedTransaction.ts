import { Effect, Either } from "effect"
import { Ballot, no, reached, yes } from "../evidence/Ballot.ts"
import { getHead, optional, sendBatch } from "../rpc/methods.ts"
import { RpcError } from "../rpc/RpcError.ts"
import { hasSucceeded, receiptReader } from "../rpc/transactionMethods.ts"
import type { Provider, Providers } from "./Providers.ts"

const getMinedReceipt = receiptReader("transactionHash", "blockHash", "blockNumber", "status")

/** The block and outcome of a transaction. */
export interface MinedTransaction {
  readonly blockNumber: number
  readonly blockHash: string
  readonly succeeded: boolean
  /** Blocks from its own to the head, its own included. */
  readonly confirmations: number
}

/** One provider's response; undefined where it has the transaction in no block. */
const minedBy = Effect.fnUntraced(function* (providers: Providers, provider: Provider, hash: string) {
  const [mined, head] = yield* sendBatch(provider.client, [optional(getMinedReceipt(hash)), getHead]).pipe(
    Effect.tapError((error) => providers.failed(provider, error))
  )
  if (mined?.transactionHash !== hash) return undefined
  const { blockHash, blockNumber } = mined
  const confirmations = head.number - blockNumber + 1
  return { blockNumber, blockHash, succeeded: hasSucceeded(mined), confirmations } satisfies MinedTransaction
})

/**
 * A transaction that is in a block, by two providers; by the serving one where it decides alone. Undefined where the
 * chain has none of that hash. Fails where the serving provider does, and as `inconsistent` where no two agree.
 */
export const minedTransaction = Effect.fn("Providers.minedTransaction")(function* (providers: Providers, hash: string) {
  const serving = yield* providers.current
  const ballot = new Ballot<string, MinedTransaction, Provider>(
    (one, other) => one.blockHash === other.blockHash && one.succeeded === other.succeeded
  )
  const own = yield* minedBy(providers, serving, hash)
  ballot.vote(hash, serving, own === undefined ? no : yes(own))
  for (const other of yield* providers.witnesses(serving)) {
    if (ballot.tally(hash).outcome !== "open") break
    const found = yield* Effect.either(minedBy(providers, other, hash))
    if (Either.isRight(found)) ballot.vote(hash, other, found.right === undefined ? no : yes(found.right))
  }
  const { agreed, claims, denials, outcome } = ballot.tally(hash)
  if (outcome === "denied") return undefined
  // The depth is that by the second of two heads.
  const shown = reached(
    agreed.map(({ value }) => value),
    ({ confirmations }) => confirmations
  )
  if (shown !== undefined) return shown
  if (claims.length + denials.length === 1 && providers.decidesAlone(serving)) return own
  const detail = "no two providers say the same of this transaction"
  const remedy = "try again later, and add another provider to rpc_urls if it lasts"
  const { host } = serving.client
  return yield* new RpcError({ host, method: "eth_getTransactionReceipt", reason: "inconsistent", detail, remedy })
})
