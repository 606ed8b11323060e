import { Array as Arr, Effect, Either, Schema } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import { AddressSet } from "../ledger/AddressSet.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Transfer } from "../ledger/Transfer.ts"
import type { Provider } from "../providers/Providers.ts"
import {
  type BlockHeader,
  badResponse,
  type Call,
  decoder,
  findHeader,
  getHead,
  Hash,
  sendBatch
} from "../rpc/methods.ts"
import { nativeTransfers, transfersAmong } from "../scan/transfers.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import { corroborateInternal, isInternal } from "./corroborateInternal.ts"

// What one provider says of receipts that another one has reported.

const MinedTransactionReceipt = Schema.Struct({
  transactionHash: Hash,
  blockHash: Hash,
  status: Schema.Literal("0x0", "0x1"),
  logs: Schema.Array(Schema.Unknown)
})
type MinedTransactionReceipt = typeof MinedTransactionReceipt.Type
const decodeMinedReceipt = decoder(MinedTransactionReceipt)

/** A transaction's receipt with its logs; undefined where the node has none. */
const findMinedReceipt = (hash: string): Call<MinedTransactionReceipt | undefined> => ({
  method: "eth_getTransactionReceipt",
  params: [hash],
  decode: (result) => (result === null ? Either.right(undefined) : decodeMinedReceipt(result))
})

/** A transaction, which is checked where it is looked at; null where the node has none. */
const findTransaction = (hash: string): Call<unknown> => ({
  method: "eth_getTransactionByHash",
  params: [hash],
  decode: Either.right
})

const Listed = Schema.Struct({ hash: Hash, transactions: Schema.Array(Hash) })
type Listed = typeof Listed.Type
const decodeListed = decoder(Listed)

/** The hashes of a block's transactions; undefined where the node does not have the block. */
const findListed = (number: number): Call<Listed | undefined> => ({
  method: "eth_getBlockByNumber",
  params: [`0x${number.toString(16)}`, false],
  decode: (result) => (result === null ? Either.right(undefined) : decodeListed(result))
})

/** What a provider says of receipts; of those in neither list it cannot tell. */
export interface ReceiptEvidence {
  /** The times of the blocks of those that it has, by hash; Unix seconds. Nothing but the header's hash vouches for one. */
  readonly times: ReadonlyMap<string, number>
  /** It has them, in the same block, as deep as the chain's confirmations. */
  readonly has: ReadonlyArray<Uncorroborated>
  /** It has that depth, and not these. */
  readonly lacks: ReadonlyArray<Uncorroborated>
  /** They moved inside contracts, and it has neither the states nor a trace that would tell. */
  readonly unable: ReadonlyArray<Uncorroborated>
  /** Number of its head. */
  readonly head: number
}

/** Any transaction in the right block could be named for a transfer that never was: it must be told the same. */
const isTold = (receipt: Uncorroborated, transfers: ReadonlyArray<Transfer>): boolean =>
  transfers.some((transfer) => Ledger.keyOf(transfer) === Ledger.keyOf(receipt) && transfer.amount === receipt.amount)

/** What a transaction sends by its own value, if it is in the block of the receipt. */
const sentBy = (
  transaction: unknown,
  { blockHash, blockNumber }: Uncorroborated,
  coin: string,
  addresses: AddressSet
) => {
  const header = { number: blockNumber, hash: blockHash, time: 0, parentHash: "", logsBloom: undefined }
  return Either.getOrElse(nativeTransfers({ header, transactions: [transaction] }, coin, addresses), () => [])
}

/** The transfers that a provider's receipt and transaction tell of, in the block of the given receipts. */
const toldIn = (
  { client }: Provider,
  { contracts, network }: WatchContext,
  mined: MinedTransactionReceipt,
  transaction: unknown,
  receipts: ReadonlyArray<Uncorroborated>
) => {
  const addresses = new AddressSet()
  for (const { address } of receipts) addresses.add(address)
  return Either.match(transfersAmong(mined.logs, contracts, addresses), {
    onLeft: (detail) => badResponse(client, findMinedReceipt(mined.transactionHash), detail),
    onRight: (tokens) =>
      Effect.succeed([
        ...tokens,
        ...receipts.flatMap((one) => sentBy(transaction, one, nativeToken(network.chain), addresses))
      ])
  })
}

/**
 * Of receipts whose transaction a provider does not give: those it really lacks. A node without an index of old
 * transactions gives none of them, and lists them in their block all the same.
 */
const reallyLacked = Effect.fnUntraced(function* ({ client }: Provider, unknown: ReadonlyArray<Uncorroborated>) {
  const numbers = [...new Set(unknown.map(({ blockNumber }) => blockNumber))]
  if (numbers.length === 0) return []
  const blocks = new Map(Arr.zip(numbers, yield* sendBatch(client, numbers.map(findListed))))
  return unknown.filter(({ blockHash, blockNumber, txHash }) => {
    const block = blocks.get(blockNumber)
    return block !== undefined && !(block.hash === blockHash && block.transactions.includes(txHash))
  })
})

/**
 * Asks one provider about receipts: for each transaction's receipt, for the transaction where its own value is the money,
 * and for its head, in one batch. Its own head tells the depth: a head that another provider claims proves none.
 */
export const receiptEvidenceOf = Effect.fn("Chains.testimonyOf")(function* (
  provider: Provider,
  watch: WatchContext,
  receipts: ReadonlyArray<Uncorroborated>
) {
  const [outside, inside] = Arr.partition(receipts, isInternal)
  const byHash = Arr.groupBy(outside, (receipt) => receipt.txHash)
  const hashes = Object.keys(byHash)
  const paying = hashes.filter((hash) => byHash[hash]?.some(({ position }) => position.startsWith("tx:")))
  const numbers = [...new Set(receipts.map(({ blockNumber }) => blockNumber))]
  const [head, ...all] = yield* sendBatch(provider.client, [
    getHead,
    ...numbers.map(findHeader),
    ...hashes.map(findMinedReceipt),
    ...paying.map(findTransaction)
  ])
  const headers = all.slice(0, numbers.length) as ReadonlyArray<BlockHeader | undefined>
  const times = new Map(
    headers.flatMap((header) => (header === undefined ? [] : [[header.hash, header.time] as const]))
  )
  const answers = all.slice(numbers.length)
  const isDeep = ({ blockNumber }: Uncorroborated) => head.number - blockNumber + 1 >= watch.chain.confirmations
  const transactions = new Map(Arr.zip(paying, answers.slice(hashes.length)))
  const has: Array<Uncorroborated> = []
  const lacks: Array<Uncorroborated> = []
  const unknown: Array<Uncorroborated> = []
  for (const [hash, mined] of Arr.zip(hashes, answers as ReadonlyArray<MinedTransactionReceipt | undefined>)) {
    const asked = (byHash[hash] ?? []).filter(isDeep)
    if (mined === undefined || mined.transactionHash !== hash) {
      unknown.push(...asked)
      continue
    }
    const told = yield* toldIn(provider, watch, mined, transactions.get(hash), asked)
    for (const receipt of asked) {
      const isSame = mined.blockHash === receipt.blockHash && mined.status === "0x1" && isTold(receipt, told)
      ;(isSame ? has : lacks).push(receipt)
    }
  }
  lacks.push(...(yield* reallyLacked(provider, unknown)))
  const deepInside = inside.filter(isDeep)
  if (deepInside.length === 0) return { has, lacks, unable: [], times, head: head.number } satisfies ReceiptEvidence
  const { corroborated, denied, unable } = yield* corroborateInternal(provider, watch, deepInside)
  return {
    has: [...has, ...corroborated],
    lacks: [...lacks, ...denied],
    unable,
    times,
    head: head.number
  } satisfies ReceiptEvidence
})
