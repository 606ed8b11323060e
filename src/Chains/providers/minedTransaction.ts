import { Effect, Either, Option, Schema } from "effect"
import { Ballot, no, reached, yes } from "../evidence/Ballot.ts"
import { getHead, getHeader, optional, sendBatch } from "../rpc/methods.ts"
import { inconsistent, RpcError } from "../rpc/RpcError.ts"
import { ContractLog, transferIn } from "../rpc/tokenTransfer.ts"
import { getMinedValue, hasSucceeded, receiptReader } from "../rpc/transactionMethods.ts"
import type { Provider, Providers } from "./Providers.ts"

const getMinedReceipt = receiptReader("transactionHash", "blockHash", "blockNumber", "status")
const getMinedLogs = receiptReader("transactionHash", "blockHash", "blockNumber", "status", "logs")

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

/** A transfer of a mined transaction: of a token, or of its own value. Addresses in lower case, amounts in base units. */
export interface MinedTransfer {
  /** Undefined for the native coin. */
  readonly contract: string | undefined
  readonly from: string
  readonly to: string
  readonly amount: bigint
  /** Its place in the transaction, the same by every provider: `tx`, or that of its log among the transaction's. */
  readonly position: string
}

/** A transaction with what it transfers. Native coin that moves inside contracts is not among it. */
export interface MinedTransfers extends MinedTransaction {
  /** Of its block, Unix seconds. */
  readonly blockTime: number
  readonly transfers: ReadonlyArray<MinedTransfer>
  /** Whether it calls a contract, which may have moved native coin. */
  readonly isCall: boolean
}

const decodeLog = Schema.decodeUnknownOption(ContractLog)

/** The transfer that a receipt's log shows. Non-fungible tokens share the topic, with a fourth one. */
const transferAt = (log: unknown, index: number): ReadonlyArray<MinedTransfer> =>
  Option.toArray(decodeLog(log))
    .filter(({ topics }) => topics.length === 3)
    .flatMap(transferIn)
    .map((transfer) => ({ ...transfer, position: `log:${index}` }))

const transfersBy = Effect.fnUntraced(function* (providers: Providers, provider: Provider, hash: string) {
  const noted = <A>(call: Effect.Effect<A, RpcError>) =>
    Effect.tapError(call, (error) => providers.failed(provider, error))
  const [mined, head] = yield* noted(sendBatch(provider.client, [optional(getMinedLogs(hash)), getHead]))
  if (mined?.transactionHash !== hash) return undefined
  const { blockHash, blockNumber, logs } = mined
  // Asked for once it is in a block: one that waits has none, which is no fault of the provider's.
  const calls = [optional(getMinedValue(hash)), getHeader(blockNumber)] as const
  const [sent, block] = yield* noted(sendBatch(provider.client, calls))
  if (sent?.hash !== hash || sent.blockHash !== blockHash) {
    return yield* inconsistent(provider.client, "eth_getTransactionByHash", `${hash} is in block ${sent?.blockHash}`)
  }
  if (block.hash !== blockHash) {
    return yield* inconsistent(provider.client, "eth_getBlockByNumber", `block ${blockNumber} is ${block.hash}`)
  }
  const { from, input, to, value: amount } = sent
  const own = amount > 0n && to ? [{ contract: undefined, from, to, amount, position: "tx" }] : []
  const confirmations = head.number - blockNumber + 1
  const succeeded = hasSucceeded(mined)
  const transfers = [...own, ...logs.flatMap(transferAt)]
  return {
    blockNumber,
    blockHash,
    blockTime: block.time,
    succeeded,
    confirmations,
    isCall: input !== "0x",
    transfers
  } satisfies MinedTransfers
})

const isSameBlock = (one: MinedTransaction, other: MinedTransaction): boolean =>
  one.blockHash === other.blockHash && one.succeeded === other.succeeded

const textOf = ({ amount, contract, from, position, to }: MinedTransfer) =>
  [position, contract, from, to, amount].join(" ")
const isSameTransfers = (one: MinedTransfers, other: MinedTransfers): boolean =>
  isSameBlock(one, other) &&
  one.isCall === other.isCall &&
  one.transfers.map(textOf).join() === other.transfers.map(textOf).join()

/**
 * A transaction that is in a block, by two providers; by the serving one where it decides alone. Undefined where the
 * chain has none of that hash. Fails where the serving provider does, and as `inconsistent` where no two agree.
 */
const agreedBy = <Mined extends MinedTransaction, E>(
  ask: (providers: Providers, provider: Provider, hash: string) => Effect.Effect<Mined | undefined, E>,
  isSame: (one: Mined, other: Mined) => boolean
) =>
  Effect.fn("Providers.minedTransaction")(function* (providers: Providers, hash: string) {
    const serving = yield* providers.current
    const ballot = new Ballot<string, Mined, Provider>(isSame)
    const own = yield* ask(providers, serving, hash)
    ballot.vote(hash, serving, own === undefined ? no : yes(own))
    for (const other of yield* providers.witnesses(serving)) {
      if (ballot.tally(hash).outcome !== "open") break
      const found = yield* Effect.either(ask(providers, other, hash))
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

export const minedTransaction = agreedBy(minedBy, isSameBlock)

/** The same with what it transfers, which two providers have to agree on, too. */
export const minedTransfers = agreedBy(transfersBy, isSameTransfers)
