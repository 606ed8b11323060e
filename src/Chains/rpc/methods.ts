/**
 * JSON-RPC calls as data: method, parameters, and a decoder of the result. `sendBatch` sends several and decodes each
 * response. Here are the types that all calls share, and the calls about blocks, logs and contracts;
 * transactionMethods.ts and balanceMethods.ts have the others. Each method is defined once. `get…` fails where the node
 * responds with null, `find…` and `optional` give undefined.
 */
import { Array as Arr, Effect, Either, ParseResult, Schema } from "effect"
import type { BlockRef, FinalityTag } from "../../Domain/Receipt.ts"
import { cut } from "../../lib/text.ts"
import type { RpcClient, RpcRequest } from "./Rpc.ts"
import { RpcError } from "./RpcError.ts"

/** keccak256("Transfer(address,address,uint256)"), https://eips.ethereum.org/EIPS/eip-20 */
export const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

/** A call and the decoder of its result; on the left, what is wrong with the result. */
export interface Call<out A> extends RpcRequest {
  readonly decode: (result: unknown) => Either.Either<A, string>
}

/** The result of a call; undefined where no call was made. */
type Result<C> = C extends Call<infer A> ? A : undefined
type Results<Calls> = { readonly [K in keyof Calls]: Result<Calls[K]> }

/**
 * Sends the calls in one batch and decodes each result. `undefined` in the list is a call that is not needed. Fails as
 * a whole: with `missing` where the node responds with null, with `garbage` where a result cannot be decoded.
 */
export const sendBatch = <const Calls extends ReadonlyArray<Call<unknown> | undefined>>(
  client: RpcClient,
  calls: Calls
): Effect.Effect<Results<Calls>, RpcError> =>
  Effect.gen(function* () {
    const made = calls.filter((call) => call !== undefined)
    const results = yield* client.send(made.map(({ method, params }) => ({ method, params })))
    const values: Array<unknown> = []
    for (const [i, call] of made.entries()) {
      const decoded = call.decode(results[i])
      if (Either.isLeft(decoded)) return yield* badResponse(client, call, decoded.left)
      values.push(decoded.right)
    }
    let next = 0
    return calls.map((call) => (call === undefined ? undefined : values[next++])) as Results<Calls>
  })

/** Sends calls of one kind in batches of at most `size`; providers allow from 100 up. Fails as `sendBatch` does. */
export const sendInBatches = <A>(
  client: RpcClient,
  calls: ReadonlyArray<Call<A>>,
  size = 90,
  concurrency = 1
): Effect.Effect<ReadonlyArray<A>, RpcError> =>
  Effect.forEach(Arr.chunksOf(calls, size), (part) => sendBatch(client, part), { concurrency }).pipe(
    Effect.map((parts) => parts.flat() as ReadonlyArray<A>)
  )

const absent = "the node answered null"

/** The error of a result that the call cannot use: `missing` where it is null, else `garbage`. */
export const badResponse = (client: RpcClient, call: RpcRequest, detail: string): RpcError =>
  new RpcError({
    host: client.host,
    method: `${call.method}(${cut(call.params.map((param) => JSON.stringify(param)).join(", "), 100)})`,
    reason: detail === absent ? "missing" : "garbage",
    detail: cut(detail, 300)
  })

const hex = (digits: number) => Schema.String.pipe(Schema.pattern(new RegExp(`^0x[0-9a-fA-F]{${digits}}$`)))
const lowerCase = <A extends string>(form: Schema.Schema<A>) =>
  Schema.transform(form, Schema.String, {
    strict: true,
    decode: (text) => text.toLowerCase(),
    encode: (text) => text as A
  })

/** 32 bytes; lower case once decoded. */
export const Hash = lowerCase(hex(64))
/** 20 bytes; lower case once decoded. */
export const Address = lowerCase(hex(40))
/** 32 bytes of data, as a number. */
export const Word = Schema.transform(hex(64), Schema.BigIntFromSelf, {
  strict: true,
  decode: BigInt,
  encode: (value) => `0x${value.toString(16).padStart(64, "0")}`
})
const digits = Schema.String.pipe(Schema.pattern(/^0x[0-9a-fA-F]{1,64}$/))
/** A number as JSON-RPC takes it: hexadecimal, without leading zeros. */
export const quantity = (value: number | bigint): string => `0x${value.toString(16)}`
/** A quantity of any size. */
export const Quantity = Schema.transform(digits, Schema.BigIntFromSelf, {
  strict: true,
  decode: BigInt,
  encode: quantity
})
/** A quantity that a number holds exactly: block numbers, indexes, times. */
export const Count = Schema.transform(
  digits.pipe(Schema.filter((text) => Number.isSafeInteger(Number(text)))),
  Schema.NonNegativeInt,
  { strict: true, decode: Number, encode: quantity }
)

/** A decoder by a schema; the left side names the first problem. */
export const decoder = <A, I>(schema: Schema.Schema<A, I>): ((result: unknown) => Either.Either<A, string>) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (result) =>
    result === null
      ? Either.left(absent)
      : Either.getOrElse(
          // A bad response must only fail its call.
          Either.try(() =>
            Either.mapLeft(decode(result), (error) => cut(ParseResult.TreeFormatter.formatErrorSync(error), 300))
          ),
          (cause) => Either.left(`it cannot be read: ${cause}`)
        )
}

/** The fields of a block's header that are used. */
export interface BlockHeader extends BlockRef {
  readonly parentHash: string
  /** 256 bytes, hexadecimal, lower case; undefined where the node leaves it out. */
  readonly logsBloom: string | undefined
}

/** A block with its transactions, which are checked where they are used. */
export interface FullBlock {
  readonly header: BlockHeader
  readonly transactions: ReadonlyArray<unknown>
}

/** 256 bytes; lower case once decoded. */
export const LogsBloom = lowerCase(hex(512))

const RawHeader = Schema.Struct({
  number: Count,
  hash: Hash,
  parentHash: Hash,
  timestamp: Count,
  logsBloom: Schema.optionalWith(LogsBloom, { nullable: true })
})
const decodeRawHeader = decoder(RawHeader)

const decodeHeader = (result: unknown): Either.Either<BlockHeader, string> =>
  Either.map(decodeRawHeader(result), ({ logsBloom, timestamp, ...ids }) => ({ ...ids, time: timestamp, logsBloom }))

const decodeNumbered = (number: number, result: unknown): Either.Either<BlockHeader, string> =>
  Either.filterOrLeft(
    decodeHeader(result),
    (header) => header.number === number,
    (header) => `block ${header.number} came where ${number} was asked for`
  )

/** A call whose response may be null; undefined then. */
export const optional = <A>(call: Call<A>): Call<A | undefined> => ({
  ...call,
  decode: (result) => (result === null ? Either.right(undefined) : call.decode(result))
})

const blockByNumber = (block: number | "latest" | FinalityTag, withTransactions = false): RpcRequest => ({
  method: "eth_getBlockByNumber",
  params: [typeof block === "number" ? quantity(block) : block, withTransactions]
})

/** The newest header. */
export const getHead: Call<BlockHeader> = { ...blockByNumber("latest"), decode: decodeHeader }

/** The newest block with a finality tag. Some chains and nodes do not know the tags. */
export const getTagged = (tag: FinalityTag): Call<BlockHeader> => ({ ...blockByNumber(tag), decode: decodeHeader })

/** The header of a block. Another block's header is not a valid result. */
export const getHeader = (number: number): Call<BlockHeader> => ({
  ...blockByNumber(number),
  decode: (result) => decodeNumbered(number, result)
})

/** A header that the node may not have yet. */
export const findHeader = (number: number): Call<BlockHeader | undefined> => optional(getHeader(number))

/** A block with its transactions. Another block is not a valid result. */
export const getFullBlock = (number: number): Call<FullBlock> => ({
  ...blockByNumber(number, true),
  decode: (result) =>
    Either.flatMap(decodeNumbered(number, result), (header) => {
      const { transactions } = result as { readonly transactions?: unknown }
      return Array.isArray(transactions)
        ? Either.right({ header, transactions: transactions as ReadonlyArray<unknown> })
        : Either.left("a block without its list of transactions")
    })
})

/** Which logs: of any of the addresses, and with all topics; null matches any topic. */
export interface LogFilter {
  readonly address: ReadonlyArray<string>
  readonly topics: ReadonlyArray<string | null | ReadonlyArray<string>>
}

const decodeLogs = (result: unknown): Either.Either<ReadonlyArray<unknown>, string> =>
  Array.isArray(result) ? Either.right(result) : Either.left("no list of logs")

/** Logs of a range of blocks, both ends included. Each log is checked where it is used. */
export const getLogs = (fromBlock: number, toBlock: number, filter: LogFilter): Call<ReadonlyArray<unknown>> => ({
  method: "eth_getLogs",
  params: [{ ...filter, fromBlock: quantity(fromBlock), toBlock: quantity(toBlock) }],
  decode: decodeLogs
})

/** Logs of one block, by its hash. */
export const getBlockLogs = (blockHash: string, filter: LogFilter): Call<ReadonlyArray<unknown>> => ({
  method: "eth_getLogs",
  params: [{ ...filter, blockHash }],
  decode: decodeLogs
})

const TransactionList = Schema.Struct({
  hash: Hash,
  logsBloom: RawHeader.fields.logsBloom,
  transactions: Schema.Array(Hash)
})
/** The hashes of a block's transactions. */
export type TransactionList = typeof TransactionList.Type
const decodeTransactionList = decoder(TransactionList)
const HashedList = TransactionList.pick("hash", "transactions")
const decodeHashedList = decoder(HashedList)

/** The transactions of a block, by its hash. */
export const getBlockTransactions = (blockHash: string): Call<TransactionList> => ({
  method: "eth_getBlockByHash",
  params: [blockHash, false],
  decode: (result) =>
    Either.filterOrLeft(
      decodeTransactionList(result),
      ({ hash }) => hash === blockHash,
      ({ hash }) => `block ${hash} came where ${blockHash} was asked for`
    )
})

/** The hash of a block, and of its transactions; undefined where the node does not have the block. */
export const findBlockTransactions = (number: number): Call<typeof HashedList.Type | undefined> =>
  optional({ ...blockByNumber(number), decode: decodeHashedList })

/** The hashes of a block's transactions. */
export const getTransactionHashes = (number: number): Call<ReadonlyArray<string>> => ({
  ...blockByNumber(number),
  decode: (result) => Either.map(decodeHashedList(result), ({ transactions }) => transactions)
})

/** The chain id (EIP-155) of the provider's chain. */
export const getChainId: Call<number> = { method: "eth_chainId", params: [], decode: decoder(Count) }

/** Wei for a unit of gas. */
export const getGasPrice: Call<bigint> = { method: "eth_gasPrice", params: [], decode: decoder(Quantity) }

/** The code of a contract at the head, unchecked. "0x" where there is none. */
export const getCode = (address: string): RpcRequest => ({ method: "eth_getCode", params: [address, "latest"] })

/** Calls a contract at a block parameter, with overrides of state by address. The response is unchecked. */
export const ethCall = (
  call: { readonly to: string; readonly data: string },
  block: unknown = "latest",
  ...overrides: ReadonlyArray<unknown>
): RpcRequest => ({ method: "eth_call", params: [call, block, ...overrides] })

/** First four bytes of keccak256("balanceOf(address)"), https://eips.ethereum.org/EIPS/eip-20 */
const balanceOf = "0x70a08231"
const decodeWord = decoder(Word)
const decodeWordOrNothing = (result: unknown) => (result === "0x" ? Either.right(0n) : decodeWord(result))

/** Base units of a token after a block, the head unless it is given; 0 where the contract does not exist. */
export const getTokenBalance = (token: string, address: string, block?: unknown): Call<bigint> => ({
  ...ethCall({ to: token, data: `${balanceOf}${address.slice(2).toLowerCase().padStart(64, "0")}` }, block),
  decode: decodeWordOrNothing
})

/** The same on every OP-stack chain, https://specs.optimism.io/protocol/fjord/predeploys.html */
const gasPriceOracle = "0x420000000000000000000000000000000000000f"
/** First four bytes of keccak256("getL1FeeUpperBound(uint256)"). */
const getL1FeeUpperBound = "0xf1c7a58b"

/** The most wei that the data of an unsigned transaction costs on Ethereum; 0 on a chain without the contract. */
export const getL1Fee = (bytes: number): Call<bigint> => ({
  ...ethCall({ to: gasPriceOracle, data: `${getL1FeeUpperBound}${bytes.toString(16).padStart(64, "0")}` }),
  decode: decodeWordOrNothing
})
