/** The JSON-RPC methods of those who send transactions: what one would do and cost, and to hand it in. */
import { Either, Schema } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type Call, Count, decoder, Hash, Quantity, quantity } from "./methods.ts"
import { ContractLog } from "./tokenTransfer.ts"

/** A transaction that is not made: who would send what. */
export interface UnsentCall {
  readonly from: string
  readonly to: string
  readonly data?: string
  /** Wei. */
  readonly value?: bigint
}

const parametersOf = ({ data, from, to, value }: UnsentCall) => ({
  from,
  to,
  ...(data === undefined ? {} : { data }),
  ...(value === undefined ? {} : { value: quantity(value) })
})

/** The gas that a transaction needs. Fails as `refused` where it would be reverted. */
export const estimateGas = (attempt: UnsentCall): Call<bigint> => ({
  method: "eth_estimateGas",
  params: [parametersOf(attempt)],
  decode: decoder(Quantity)
})

/** What a contract answers to a transaction, without making it; unchecked. */
export const tryCall = (attempt: UnsentCall): Call<string> => ({
  method: "eth_call",
  params: [parametersOf(attempt), "latest"],
  decode: decoder(Schema.String)
})

/** The head, with the fee that its block burns for a unit of gas, and the state to read of it. */
export interface PricedHead extends BlockRef {
  /** Wei. */
  readonly baseFee: bigint
}

const decodePricedHead = decoder(
  Schema.Struct({ number: Count, hash: Hash, timestamp: Count, baseFeePerGas: Quantity })
)

export const getPricedHead: Call<PricedHead> = {
  method: "eth_getBlockByNumber",
  params: ["latest", false],
  decode: (result) =>
    Either.map(decodePricedHead(result), ({ baseFeePerGas, timestamp, ...block }) => ({
      ...block,
      time: timestamp,
      baseFee: baseFeePerGas
    }))
}

/** Wei for a unit of gas that a block's maker wants at present. */
export const getPriorityFee: Call<bigint> = {
  method: "eth_maxPriorityFeePerGas",
  params: [],
  decode: decoder(Quantity)
}

/** Transactions that an address has sent, with those in no block yet. */
export const getPendingCount = (address: string): Call<number> => ({
  method: "eth_getTransactionCount",
  params: [address, "pending"],
  decode: decoder(Count)
})

/** Hands in a signed transaction. Fails as `refused` also where the node has it already. */
export const sendRawTransaction = (raw: string): Call<string> => ({
  method: "eth_sendRawTransaction",
  params: [raw],
  decode: decoder(Hash)
})

const decodeAttempts = decoder(
  Schema.Tuple(
    Schema.Struct({
      calls: Schema.Array(
        Schema.Struct({
          status: Schema.Literal("0x0", "0x1"),
          logs: Schema.optional(Schema.Array(ContractLog)),
          returnData: Schema.optional(Schema.NullOr(Schema.String)),
          error: Schema.optional(Schema.NullOr(Schema.Struct({ message: Schema.optional(Schema.String) })))
        })
      )
    })
  )
)

/** What a simulated transaction came to. */
export interface Attempted {
  readonly succeeded: boolean
  readonly logs: ReadonlyArray<typeof ContractLog.Type>
  /** What the contract returned, or why it reverted; undefined where the node does not say. */
  readonly returned: string | undefined
  readonly message: string | undefined
}

/** What transactions would do on top of the head, one after another. Not every provider serves it. */
export const simulateAttempts = (attempts: ReadonlyArray<UnsentCall>): Call<ReadonlyArray<Attempted>> => ({
  method: "eth_simulateV1",
  params: [{ blockStateCalls: [{ calls: attempts.map(parametersOf) }], validation: false }, "latest"],
  decode: (result) =>
    Either.filterOrLeft(
      Either.map(decodeAttempts(result), ([{ calls }]) =>
        calls.map(({ error, logs = [], returnData, status }) => ({
          succeeded: status === "0x1",
          logs,
          returned: returnData ?? undefined,
          message: error?.message
        }))
      ),
      (calls) => calls.length === attempts.length,
      () => "not as many results as calls"
    )
})
