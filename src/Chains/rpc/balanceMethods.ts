/**
 * The JSON-RPC methods about native coins and many balances at once: balances and nonces of a block, reads of many
 * addresses in one `eth_call`, and the moves of coins inside a transaction by trace or simulation.
 */
import { Array as Arr, Either, Predicate, Schema } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { aggregate3, multicall3Address } from "./contractViews.ts"
import {
  Address,
  type Call,
  Count,
  decoder,
  ethCall,
  Hash,
  Quantity,
  quantity,
  transferTopic,
  Word
} from "./methods.ts"
import type { Transaction } from "./transactionMethods.ts"

/** A block by its hash (EIP-1898), or by its number on the node's current branch. */
export type At = Pick<BlockRef, "hash"> | number

export const blockParameter = (at: At): unknown => (typeof at === "number" ? quantity(at) : { blockHash: at.hash })

/** Wei after a block. */
export const balanceAt = (address: string, at: At): Call<bigint> => ({
  method: "eth_getBalance",
  params: [address, blockParameter(at)],
  decode: decoder(Quantity)
})

const transactionCount = (address: string, block: unknown): Call<number> => ({
  method: "eth_getTransactionCount",
  params: [address, block],
  decode: decoder(Count)
})

/** Transactions that an address has sent by the head. */
export const getTransactionCount = (address: string): Call<number> => transactionCount(address, "latest")

/** Transactions that an address has sent by the end of a block. */
export const nonceAt = (address: string, at: At): Call<number> => transactionCount(address, blockParameter(at))

/**
 * Reads packed 20-byte addresses from the calldata and returns their balances as 32-byte words. On the stack, its top
 * last, are `i`, the offset in the calldata, and `o`, the offset in memory.
 *
 *     00  6000  PUSH1 0
 *     02  6000  PUSH1 0        i o
 *     04  5b    JUMPDEST       i o                 the loop
 *     05  36    CALLDATASIZE   i o size
 *     06  82    DUP3           i o size i
 *     07  10    LT             i o (i < size)
 *     08  600e  PUSH1 0x0e
 *     0a  57    JUMPI          i o
 *     0b  6000  PUSH1 0        i o 0
 *     0d  f3    RETURN         memory from 0, o bytes
 *     0e  5b    JUMPDEST       i o
 *     0f  81    DUP2           i o i
 *     10  35    CALLDATALOAD   i o word
 *     11  6060  PUSH1 96
 *     13  1c    SHR            i o address         its first 20 bytes
 *     14  31    BALANCE        i o balance
 *     15  81    DUP2           i o balance o
 *     16  52    MSTORE         i o
 *     17  6020  PUSH1 32
 *     19  01    ADD            i o+32
 *     1a  90    SWAP1          o+32 i
 *     1b  6014  PUSH1 20
 *     1d  01    ADD            o+32 i+20
 *     1e  90    SWAP1          i+20 o+32
 *     1f  6004  PUSH1 4
 *     21  56    JUMP           to the loop
 */
const balanceReader = "0x600060005b368210600e576000f35b813560601c3181526020019060140190600456"
/** The address of the reader during a call. It is unused, and the call would work if it were not. */
const readerAddress = "0x00000000000000000000000000ba1a9ce00ba1a9"

const decodeWords =
  (count: number) =>
  (result: unknown): Either.Either<ReadonlyArray<bigint>, string> =>
    typeof result === "string" && result.length === 2 + 64 * count && /^0x[0-9a-fA-F]*$/.test(result)
      ? Either.right(Array.from({ length: count }, (_, i) => BigInt(`0x${result.slice(2 + 64 * i, 66 + 64 * i)}`)))
      : // The result is "0x" where a node ignored the override and found no code.
        Either.left(`not ${count} words`)

/** Wei of up to 1,000 addresses in one call, by a contract that exists for this call only: 2.8 M gas, 39 KB. */
export const balancesByOverride = (addresses: ReadonlyArray<string>, at: At): Call<ReadonlyArray<bigint>> => ({
  ...ethCall(
    { to: readerAddress, data: `0x${addresses.map((address) => address.slice(2)).join("")}` },
    blockParameter(at),
    { [readerAddress]: { code: balanceReader } }
  ),
  decode: decodeWords(addresses.length)
})

/**
 * One function with each address as its only argument, which returns one word, in one call of Multicall3. viem hashes the
 * function's name for each call, and checks the address's capitals: at 500 addresses that is ten milliseconds.
 *
 * @param selector the function's first four bytes: keccak256 of its signature
 */
const wordsByMulticall = (
  to: string,
  selector: string,
  addresses: ReadonlyArray<string>,
  block?: unknown
): Call<ReadonlyArray<bigint>> => {
  const argumentOf = (address: string) => address.slice(2).toLowerCase().padStart(64, "0")
  const views = addresses.map((address) => ({ to, data: `0x${selector}${argumentOf(address)}` as const }))
  const call = aggregate3(views, false, block)
  return {
    ...call,
    decode: (result) =>
      Either.filterOrLeft(
        Either.map(call.decode(result), (returned) =>
          Arr.getRights(returned).flatMap((data) => (data.length === 66 ? [BigInt(data)] : []))
        ),
        (words) => words.length === addresses.length,
        () => `not ${addresses.length} balances`
      )
  }
}

/** Wei of up to 500 addresses in one call of Multicall3, by its own getEthBalance(address): 3.6 M gas, 219 KB. */
export const balancesByMulticall = (addresses: ReadonlyArray<string>, at: At): Call<ReadonlyArray<bigint>> =>
  wordsByMulticall(multicall3Address, "4d2301cc", addresses, blockParameter(at))

/** Base units of a token of up to 500 addresses, by its balanceOf(address), in one call of Multicall3. */
export const tokensByMulticall = (
  token: string,
  addresses: ReadonlyArray<string>,
  block?: unknown
): Call<ReadonlyArray<bigint>> => wordsByMulticall(token, "70a08231", addresses, block)

/** Coins that a transaction moved from one account to another, and that no error reverted. */
export interface Move {
  readonly from: string
  readonly to: string
  /** Wei, above zero. */
  readonly amount: bigint
}

const decodeFrame = decoder(
  Schema.Struct({
    type: Schema.String,
    from: Address,
    to: Schema.optional(Schema.NullOr(Address)),
    value: Schema.optional(Schema.NullOr(Quantity)),
    calls: Schema.optional(Schema.NullOr(Schema.Array(Schema.Unknown)))
  })
)

/** Call types that transfer their value to `to`. DELEGATECALL and CALLCODE keep it, STATICCALL has none. */
const paying: ReadonlySet<string> = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT", "SUICIDE"])

const decodeTrace = (result: unknown): Either.Either<ReadonlyArray<Move>, string> => {
  const moves: Array<Move> = []
  // Calls nest up to 1,024 deep: a loop instead of recursion.
  const open: Array<unknown> = [result]
  while (open.length > 0) {
    const next = open.pop()
    // An error reverts the frame and all frames below it.
    if (Predicate.isRecord(next) && next.error !== undefined && next.error !== null) continue
    const frame = decodeFrame(next)
    if (Either.isLeft(frame)) return Either.left(frame.left)
    const { calls, from, to, type, value } = frame.right
    if (paying.has(type) && to != null && value != null && value > 0n) moves.push({ from, to, amount: value })
    for (const call of calls ?? []) open.push(call)
  }
  return Either.right(moves)
}

/** Every move of coins by a transaction, also inside contracts; none where it failed. */
export const traceTransaction = (hash: string): Call<ReadonlyArray<Move>> => ({
  method: "debug_traceTransaction",
  params: [hash, { tracer: "callTracer" }],
  decode: decodeTrace
})

/** The address of the logs that `traceTransfers` adds for transfers of coins. */
const coinLogs = "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
const SimulatedLog = Schema.Struct({ address: Address, topics: Schema.Array(Hash), data: Schema.String })
const SimulatedCall = Schema.Struct({
  status: Schema.Literal("0x0", "0x1"),
  logs: Schema.optional(Schema.Array(SimulatedLog))
})
const decodeSimulation = decoder(Schema.Tuple(Schema.Struct({ calls: Schema.Array(SimulatedCall) })))
const decodeWord = decoder(Word)

const moveOf = ({ address, data, topics: [kind, from, to] }: typeof SimulatedLog.Type): ReadonlyArray<Move> => {
  const amount = Either.getOrElse(decodeWord(data), () => 0n)
  if (address !== coinLogs || kind !== transferTopic || from === undefined || to === undefined) return []
  return amount > 0n ? [{ from: `0x${from.slice(26)}`, to: `0x${to.slice(26)}`, amount }] : []
}

/** The moves of each of a block's transactions, all of them in their order, by simulating them on the parent block. */
export const simulateBlock = (
  block: BlockRef,
  transactions: ReadonlyArray<Transaction>
): Call<ReadonlyArray<ReadonlyArray<Move>>> => ({
  method: "eth_simulateV1",
  params: [
    {
      blockStateCalls: [
        {
          blockOverrides: { number: quantity(block.number), time: quantity(block.time) },
          calls: transactions.map(({ from, gas, input, to, value }) => ({
            from,
            ...(to == null ? {} : { to }),
            value: quantity(value),
            gas: quantity(gas),
            input
          }))
        }
      ],
      traceTransfers: true,
      validation: false
    },
    quantity(block.number - 1)
  ],
  decode: (result) =>
    Either.filterOrLeft(
      Either.map(decodeSimulation(result), ([{ calls }]) => calls.map(({ logs = [] }) => logs.flatMap(moveOf))),
      (calls) => calls.length === transactions.length,
      () => "not as many results as calls"
    )
})
