/**
 * The JSON-RPC methods that read transactions and their receipts. A call decodes only the fields that its caller needs:
 * one that some nodes leave out or fill in their own way makes no response bad for the others.
 */
import { Array as Arr, Effect, Either, Schema } from "effect"
import { Address, type Call, Count, decoder, Hash, LogsBloom, Quantity, quantity, sendBatch } from "./methods.ts"
import type { RpcClient } from "./Rpc.ts"
import { inconsistent } from "./RpcError.ts"

const TransactionReceipt = Schema.Struct({
  transactionHash: Hash,
  blockHash: Hash,
  blockNumber: Count,
  status: Schema.Literal("0x0", "0x1"),
  gasUsed: Quantity,
  effectiveGasPrice: Quantity,
  /** On OP-stack chains: what the sender also pays, for the data on Ethereum. */
  l1Fee: Schema.optional(Schema.NullOr(Quantity)),
  /** Left out by some nodes. */
  logsBloom: Schema.optional(Schema.NullOr(LogsBloom)),
  /** Each log is checked where it is used. */
  logs: Schema.Array(Schema.Unknown)
})
type ReceiptFields = typeof TransactionReceipt.Type

/** Some fields of a transaction's receipt. */
export type ReceiptWith<Field extends keyof ReceiptFields> = Pick<ReceiptFields, Field>

/** Whether a mined transaction succeeded. A failed one moved nothing. */
export const hasSucceeded = ({ status }: ReceiptWith<"status">): boolean => status === "0x1"

/** The call that reads these fields of a transaction's receipt. Make it once, since it compiles their decoder. */
export const receiptReader = <const Field extends keyof ReceiptFields>(...fields: ReadonlyArray<Field>) => {
  // A generic selection of fields is beyond the inference of Schema's types.
  const schema = TransactionReceipt.pick(...fields) as unknown as Schema.Schema<ReceiptWith<Field>>
  const decode = decoder(schema)
  return (hash: string): Call<ReceiptWith<Field>> => ({ method: "eth_getTransactionReceipt", params: [hash], decode })
}

/** The block that a transaction is in, and its status there. */
export const getTransactionReceipt = receiptReader("transactionHash", "blockHash", "status")

/** A receipt with its logs, and the bloom filter that they must be in. */
export type LoggedReceipt = ReceiptWith<"transactionHash" | "blockHash" | "logsBloom" | "logs">
const loggedFields = ["transactionHash", "blockHash", "logsBloom", "logs"] as const

export const getLoggedReceipt = receiptReader(...loggedFields)
const decodeBlockReceipts = decoder(Schema.Array(TransactionReceipt.pick(...loggedFields)))

/** The receipts of a block. By its number, since some providers take no hash; each receipt names its block's hash. */
export const getBlockReceipts = (number: number): Call<ReadonlyArray<LoggedReceipt>> => ({
  method: "eth_getBlockReceipts",
  params: [quantity(number)],
  decode: decodeBlockReceipts
})

/** The outcome of a transaction. */
export interface TransactionOutcome extends ReceiptWith<"transactionHash" | "blockHash"> {
  readonly succeeded: boolean
  /** Wei that its sender paid for it in addition to its value. */
  readonly fee: bigint
}

const getPaidReceipt = receiptReader("transactionHash", "blockHash", "status", "gasUsed", "effectiveGasPrice", "l1Fee")

export const getTransactionOutcome = (hash: string): Call<TransactionOutcome> => {
  const call = getPaidReceipt(hash)
  return {
    ...call,
    decode: (result) =>
      Either.map(call.decode(result), ({ blockHash, effectiveGasPrice, gasUsed, l1Fee, status, transactionHash }) => ({
        transactionHash,
        blockHash,
        succeeded: hasSucceeded({ status }),
        fee: gasUsed * effectiveGasPrice + (l1Fee ?? 0n)
      }))
  }
}

/** Receipts in one batch; providers allow from 100 calls up. */
const receiptsPerBatch = 50

/** Each transaction with what `call` reads of its receipt. Fails as `inconsistent` where one is in another block. */
export const withReceipts = Effect.fnUntraced(function* <
  A extends { readonly hash: string; readonly blockHash: string },
  R extends ReceiptWith<"transactionHash" | "blockHash">
>(client: RpcClient, transactions: ReadonlyArray<A>, call: (hash: string) => Call<R>) {
  const found: Array<readonly [A, R]> = []
  for (const part of Arr.chunksOf(transactions, receiptsPerBatch)) {
    const calls = part.map(({ hash }) => call(hash))
    const receipts = (yield* sendBatch(client, calls)) as ReadonlyArray<R>
    for (const [transaction, receipt] of Arr.zip(part, receipts)) {
      if (receipt.transactionHash !== transaction.hash || receipt.blockHash !== transaction.blockHash) {
        const detail = `${transaction.hash} is in block ${receipt.blockHash}`
        return yield* inconsistent(client, "eth_getTransactionReceipt", detail)
      }
      found.push([transaction, receipt])
    }
  }
  return found
})

const Transaction = Schema.Struct({
  hash: Hash,
  blockHash: Hash,
  transactionIndex: Count,
  from: Address,
  to: Schema.optional(Schema.NullOr(Address)),
  value: Quantity,
  gas: Quantity,
  input: Schema.String.pipe(Schema.pattern(/^0x(?:[0-9a-fA-F]{2})*$/))
})
export type Transaction = typeof Transaction.Type
/** Decodes a transaction of a block, of a full block or by its hash. */
export const decodeTransaction = decoder(Transaction)

/** A transaction as the node returns it, unchecked; null where the node has none. */
export const findRawTransaction = (hash: string): Call<unknown> => ({
  method: "eth_getTransactionByHash",
  params: [hash],
  decode: Either.right
})

/** The sender, receiver and value of a transaction in a block, and the call that it makes. */
export const getMinedValue = (hash: string): Call<Transaction> => ({
  ...findRawTransaction(hash),
  decode: decodeTransaction
})

const decodeReceiver = decoder(Schema.Struct({ hash: Hash, to: Schema.NullOr(Address) }))

/** A transaction as the node returns it, maybe in no block yet, and its receiver: null where it makes a contract. */
export const getTransaction = (hash: string): Call<{ readonly raw: unknown; readonly to: string | null }> => ({
  ...findRawTransaction(hash),
  decode: (result) =>
    Either.flatMap(decodeReceiver(result), ({ hash: found, to }) =>
      found === hash ? Either.right({ raw: result, to }) : Either.left(`it is ${found}`)
    )
})
