import { Array as Arr, Effect, Either } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import { isUnserved } from "../balances/historicalStates.ts"
import { no, onOtherBlock, type Tally, type Vote, yes } from "../evidence/Ballot.ts"
import { AddressSet } from "../ledger/AddressSet.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Transfer } from "../ledger/Transfer.ts"
import type { Provider } from "../providers/Providers.ts"
import {
  type BlockHeader,
  badResponse,
  findBlockTransactions,
  findHeader,
  getBlockLogs,
  getHead,
  optional,
  sendBatch
} from "../rpc/methods.ts"
import type { RpcRequest } from "../rpc/Rpc.ts"
import { findRawTransaction, hasSucceeded, type ReceiptWith, receiptReader } from "../rpc/transactionMethods.ts"
import { transferFilter } from "../scan/ScanSource.ts"
import { contractIn, nativeTransfers, transfersAmong } from "../scan/transfers.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import { corroborateInternal, isInternal } from "./corroborateInternal.ts"

/**
 * The answers of one provider about receipts that another provider reported: which of them it has, which it lacks and
 * which it cannot check. Called by `corroborate.ts` for receipts that wait for a quorum.
 *
 * A receipt counts as present only with the same transaction, block, position, receiver and amount, and with all its
 * confirmations below the provider's own head. Money that moved inside contracts is left to `corroborateInternal.ts`.
 */

type MinedReceipt = ReceiptWith<"transactionHash" | "blockHash" | "status" | "logs">
const getMinedReceipt = receiptReader("transactionHash", "blockHash", "status", "logs")

/** A transaction's receipt with its logs; undefined where the node has none. */
const findMinedReceipt = (hash: string) => optional(getMinedReceipt(hash))

/** A provider's values of a receipt that it has. */
export interface ReceiptFacts {
  /** Unix seconds, as in its header at that height: nothing else proves a block time. */
  readonly time: number
  /** Who sent it, lower case; undefined where it moved inside contracts. */
  readonly sender: string | undefined
}

/** The responses of several providers about a receipt. */
export type ReceiptTally = Tally<ReceiptFacts, Provider>

/** One provider's answers. */
export interface ReceiptEvidence {
  /**
   * - yes: in the same block, with the chain's confirmations.
   * - no: absent, although its head is high enough for the confirmations.
   * - unable: moved inside contracts, and it has neither the states nor a trace to check that.
   *
   * There is none about receipts above what its head confirms.
   */
  readonly answers: ReadonlyMap<Uncorroborated, Vote<ReceiptFacts>>
  /** Number of its head. */
  readonly head: number
}

/**
 * The reported transfer among those that the transaction really made. The transaction's presence in the block is not
 * enough: a provider could attach an invented transfer to any transaction there.
 */
const findAmong = (receipt: Uncorroborated, transfers: ReadonlyArray<Transfer>): Transfer | undefined =>
  transfers.find((transfer) => Ledger.keyOf(transfer) === Ledger.keyOf(receipt) && transfer.amount === receipt.amount)

/** What a transaction sends by its own value; nothing where it is in another block than the receipt. */
const sentBy = (
  transaction: unknown,
  { blockHash, blockNumber }: Uncorroborated,
  coin: string,
  addresses: AddressSet
) => {
  const header = { number: blockNumber, hash: blockHash, time: 0, parentHash: "", logsBloom: undefined }
  return Either.getOrElse(nativeTransfers({ header, transactions: [transaction] }, coin, addresses), () => [])
}

/**
 * The token transfers to the receivers among a provider's logs. Read by the receipts' own contracts: the current
 * configuration may differ from the former one.
 */
const tokensAmong = (
  { client }: Provider,
  call: RpcRequest,
  logs: ReadonlyArray<unknown>,
  { addresses, contracts }: ReturnType<typeof soughtBy>
) => Effect.mapError(transfersAmong(logs, contracts, addresses), (detail) => badResponse(client, call, detail))

/** The contracts and receivers of receipts. */
const soughtBy = (receipts: ReadonlyArray<Uncorroborated>) => {
  const addresses = new AddressSet()
  for (const { address } of receipts) addresses.add(address)
  const contracts = new Map(
    receipts.flatMap(({ currency, position }) => {
      const contract = contractIn(position)
      return contract === undefined ? [] : [[contract, currency] as const]
    })
  )
  return { addresses, contracts }
}

/**
 * The token transfers that a provider lists in the logs of their block, of transactions that it has no receipt of:
 * Polygon's nodes list logs of state syncs without a receipt (erigon issue 8866).
 */
const listedInBlock = Effect.fnUntraced(function* (provider: Provider, receipts: ReadonlyArray<Uncorroborated>) {
  const found = new Map<Uncorroborated, Transfer>()
  const tokens = receipts.filter(({ position }) => contractIn(position) !== undefined)
  for (const [blockHash, some] of Object.entries(Arr.groupBy(tokens, (receipt) => receipt.blockHash))) {
    const sought = soughtBy(some)
    const call = getBlockLogs(blockHash, transferFilter(sought.contracts.keys(), sought.addresses))
    // A provider that does not serve this is left with its receipts.
    const [logs] = yield* Effect.catchIf(sendBatch(provider.client, [call]), isUnserved, () => Effect.succeed([[]]))
    const transfers = yield* tokensAmong(provider, call, logs, sought)
    for (const receipt of some) {
      const transfer = findAmong(receipt, transfers)
      if (transfer !== undefined) found.set(receipt, transfer)
    }
  }
  return found
})

/**
 * Of receipts whose transaction a provider does not return: the ones that its block does not list either. A node
 * without an index of old transactions returns none of them, and still lists them in their blocks.
 */
const absentFromBlock = Effect.fnUntraced(function* ({ client }: Provider, unknown: ReadonlyArray<Uncorroborated>) {
  const numbers = [...new Set(unknown.map(({ blockNumber }) => blockNumber))]
  if (numbers.length === 0) return []
  const blocks = new Map(Arr.zip(numbers, yield* sendBatch(client, numbers.map(findBlockTransactions))))
  return unknown.filter(({ blockHash, blockNumber, txHash }) => {
    const block = blocks.get(blockNumber)
    return block !== undefined && !(block.hash === blockHash && block.transactions.includes(txHash))
  })
})

/**
 * Asks one provider about receipts, in one batch: its head, the headers, each transaction's receipt, and the
 * transaction itself where its value is the money. Depth is measured from the provider's own head: a head that another
 * provider claims proves none. Receipts of money that moved inside contracts take further calls.
 *
 * Fails with an `RpcError` where the provider gives no usable response to the batch.
 */
export const receiptEvidenceOf = Effect.fn("Chains.receiptEvidenceOf")(function* (
  provider: Provider,
  watch: WatchContext,
  receipts: ReadonlyArray<Uncorroborated>
) {
  const [external, internal] = Arr.partition(receipts, isInternal)
  const byHash = Arr.groupBy(external, (receipt) => receipt.txHash)
  const hashes = Object.keys(byHash)
  const paying = hashes.filter((hash) => byHash[hash]?.some(({ position }) => position.startsWith("tx:")))
  const numbers = [...new Set(receipts.map(({ blockNumber }) => blockNumber))]
  const [head, ...all] = yield* sendBatch(provider.client, [
    getHead,
    ...numbers.map(findHeader),
    ...hashes.map(findMinedReceipt),
    ...paying.map(findRawTransaction)
  ])
  const headers = all.slice(0, numbers.length) as ReadonlyArray<BlockHeader | undefined>
  const times = new Map(
    headers.flatMap((header) => (header === undefined ? [] : [[header.hash, header.time] as const]))
  )
  const responses = all.slice(numbers.length)
  const isDeep = ({ blockNumber }: Uncorroborated) => head.number - blockNumber + 1 >= watch.chain.confirmations
  const transactions = new Map(Arr.zip(paying, responses.slice(hashes.length)))
  const answers = new Map<Uncorroborated, Vote<ReceiptFacts>>()
  const tell = (receipt: Uncorroborated, isPresent: boolean, sender?: string) => {
    const time = times.get(receipt.blockHash)
    if (!isPresent) answers.set(receipt, time === undefined ? onOtherBlock : no)
    else if (time !== undefined) answers.set(receipt, yes({ time, sender }))
  }
  const unknown: Array<Uncorroborated> = []
  for (const [hash, mined] of Arr.zip(hashes, responses as ReadonlyArray<MinedReceipt | undefined>)) {
    const asked = (byHash[hash] ?? []).filter(isDeep)
    if (mined === undefined || mined.transactionHash !== hash) {
      unknown.push(...asked)
      continue
    }
    const sought = soughtBy(asked)
    const coin = nativeToken(watch.network.chain)
    const transfers = [
      ...(yield* tokensAmong(provider, findMinedReceipt(hash), mined.logs, sought)),
      ...asked.flatMap((receipt) => sentBy(transactions.get(hash), receipt, coin, sought.addresses))
    ]
    for (const receipt of asked) {
      const isMined = mined.blockHash === receipt.blockHash && hasSucceeded(mined)
      const transfer = isMined ? findAmong(receipt, transfers) : undefined
      tell(receipt, transfer !== undefined, transfer?.sender)
    }
  }
  const listed = yield* listedInBlock(
    provider,
    unknown.filter(({ blockHash }) => times.has(blockHash))
  )
  for (const [receipt, { sender }] of listed) tell(receipt, true, sender)
  const unlisted = unknown.filter((receipt) => !listed.has(receipt))
  for (const receipt of yield* absentFromBlock(provider, unlisted)) tell(receipt, false)
  const deepInternal = internal.filter(isDeep)
  if (deepInternal.length > 0) {
    for (const [receipt, answer] of yield* corroborateInternal(provider, watch, deepInternal)) {
      if (answer.is === "unable") answers.set(receipt, answer)
      else tell(receipt, answer.is === "yes")
    }
  }
  return { answers, head: head.number } satisfies ReceiptEvidence
})
