/**
 * `tilld claim`: credits the money of one transaction that the ledger lacks. Reads the transaction and its receipt,
 * decodes its token, native and internal transfers to addresses of ours, and stores them, bounded by what balances
 * show: the ledger may have the money already, under another transaction or unattributed. A claim that cannot succeed
 * fails with `RepairRefused`, whose message tells the operator why. The control socket calls `claim`, and the search
 * for tokens of skipped addresses `claimOnce`.
 */
import { Array as Arr, Effect, Either, Predicate, Schema } from "effect"
import { networkKey } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import { plainTransfer, receivedBy, spent, traced } from "../balances/attribution.ts"
import { outcomesOf } from "../balances/blockIncome.ts"
import { stateOf } from "../balances/historicalStates.ts"
import * as Income from "../balances/IncomeRepo.ts"
import { AddressSet } from "../ledger/AddressSet.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Transfer } from "../ledger/Transfer.ts"
import { currencyFor, type Owner, ownersOf } from "../ledger/WatchedAddressesRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { traceTransaction } from "../rpc/balanceMethods.ts"
import { isCapabilityRefused, mayBeCapable } from "../rpc/capabilities.ts"
import {
  type BlockHeader,
  badResponse,
  Count,
  decoder,
  getBlockLogs,
  getFullBlock,
  getHeader,
  Hash,
  optional,
  sendBatch,
  transferTopic
} from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent, otherBlock, providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import { decodeTransaction, getTransaction, hasSucceeded, receiptReader } from "../rpc/transactionMethods.ts"
import { nativeTransfers, transfersAmong } from "../scan/transfers.ts"
import type { ExclusiveWork, WatchContext } from "../scan/WatchContext.ts"
import * as Repair from "./RepairRepo.ts"
import { checkBranch, persistently, refused, scanOf, storeRepaired } from "./rescan.ts"

const getIncluded = receiptReader("transactionHash", "blockHash", "blockNumber", "status", "logs")

/** Offset of the address in a log's topic: `0x` and twelve bytes of zeros stand before it. */
const addressOffset = 26

/** The receivers and contracts of those logs that are Transfers of fungible tokens. */
const tokensIn = (logs: ReadonlyArray<unknown>) =>
  logs.flatMap((log) => {
    if (!Predicate.isRecord(log) || !Array.isArray(log.topics) || log.topics.length !== 3) return []
    const [topic, , to]: ReadonlyArray<unknown> = log.topics
    if (topic !== transferTopic || typeof to !== "string" || !/^0x0{24}[0-9a-fA-F]{40}$/.test(to)) return []
    const contract = typeof log.address === "string" ? log.address : "an unknown contract"
    return [{ address: `0x${to.slice(addressOffset).toLowerCase()}`, contract }]
  })

/** The reason why an included transaction credits nothing. */
const creditsNothing = (
  { contracts, network }: WatchContext,
  hash: string,
  logs: ReadonlyArray<unknown>,
  ours: ReadonlyMap<string, Owner>,
  isTraced: boolean
) => {
  const key = `chains.${networkKey(network)}`
  const toUs = tokensIn(logs).filter(({ address }) => ours.has(address))
  const foreign = toUs.find(({ contract }) => !contracts.has(contract.toLowerCase()))
  if (foreign !== undefined) {
    const { address, contract } = foreign
    return refused(
      `${hash} brings ${address} a token of the contract ${contract}, which is none of ${key}: anybody can make ` +
        `such a contract. If it is one that you take, configure it under [${key}.tokens] and claim again`
    )
  }
  if (toUs.length > 0) return refused(`${hash} transfers nothing: the amount is 0`)
  return refused(
    `${hash} pays no address that was handed out here in ${network.mode} mode: neither by a token that ${key} takes, ` +
      `nor with ${nativeToken(network.chain)}${isTraced ? "" : " of its own, and no provider shows what its contracts moved"}. ` +
      "Check the hash, the chain and the mode"
  )
}

const decodePlace = decoder(Schema.Struct({ blockHash: Hash, blockNumber: Count }))
/** The block of a transaction. */
type Place = Pick<Transfer, "blockHash" | "blockNumber">

/**
 * What the logs of its block show of a transaction that has no receipt, as Polygon's nodes list those of state syncs;
 * undefined where there is none.
 */
const logged = Effect.fnUntraced(function* (
  { contracts }: WatchContext,
  { client }: Provider,
  hash: string,
  place: Place | undefined
) {
  if (place === undefined || contracts.size === 0) return undefined
  const filter = { address: [...contracts.keys()], topics: [transferTopic] }
  // The block may be gone, and is then refused by some.
  const [all] = yield* Effect.catchIf(
    sendBatch(client, [getBlockLogs(place.blockHash, filter)]),
    ({ reason }) => !providerTrouble.has(reason),
    () => Effect.succeed([[]])
  )
  const logs = all.filter((log) => Predicate.isRecord(log) && log.transactionHash === hash)
  return logs.length === 0 ? undefined : { ...place, transactionHash: hash, status: "0x1" as const, logs }
})

/** The transaction, its receipt and header, in a scanned block; undefined where the provider does not know it. */
const findOnChain = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  hash: string,
  scanned: number,
  place: Place | undefined
) {
  const calls = [optional(getTransaction(hash)), optional(getIncluded(hash))] as const
  const [transaction, receipt] = yield* sendBatch(provider.client, calls)
  const key = `chains.${networkKey(watch.network)}`
  const included =
    receipt ??
    (yield* logged(
      watch,
      provider,
      hash,
      place ??
        Either.getOrUndefined(decodePlace(transaction?.raw)) ??
        (yield* Repair.reportedBlock(watch.reader, watch.network, hash))
    ))
  if (transaction === undefined && included === undefined) return undefined
  if (included === undefined) return yield* refused(`${hash} is known and in no block yet: claim it once it is`)
  if (included.transactionHash !== hash) {
    return yield* inconsistent(provider.client, "eth_getTransactionReceipt", `it is of ${included.transactionHash}`)
  }
  if (!hasSucceeded(included)) {
    return yield* refused(`${hash} is in block ${included.blockNumber}, where it failed: it moved nothing`)
  }
  if (included.blockNumber > scanned) {
    const where = `is in block ${included.blockNumber}, and ${key} has been read up to ${scanned}`
    return yield* refused(`${hash} ${where}: it is read soon`)
  }
  const [header] = yield* sendBatch(provider.client, [getHeader(included.blockNumber)])
  if (header.hash !== included.blockHash) {
    const detail = `${hash} is in block ${included.blockHash}, which is not the chain's`
    return yield* inconsistent(provider.client, "eth_getTransactionReceipt", detail)
  }
  return { raw: transaction?.raw, to: transaction?.to ?? null, included, header }
})

/** The result of the provider or, without one, of another provider. */
const fromTwo = Effect.fnUntraced(function* <A>(
  { providers }: WatchContext,
  provider: Provider,
  read: (client: RpcClient) => Effect.Effect<A | undefined, RpcError>
) {
  for (const asked of [provider, yield* providers.other(provider)]) {
    const found = asked && (yield* read(asked.client))
    if (found !== undefined) return found
  }
  return undefined
})

/** All moves of coins by a transaction, its own value included; undefined where neither of two providers traces it. */
const movesOf = (watch: WatchContext, provider: Provider, hash: string) =>
  fromTwo(watch, provider, (client) =>
    Effect.gen(function* () {
      if (!(yield* mayBeCapable(client, "trace"))) return undefined
      const [moves] = yield* Effect.orElseSucceed(sendBatch(client, [traceTransaction(hash)]), () => [undefined])
      return moves
    })
  )

/** The internal transfers of a successful transaction, as the node returns it, without its own value; see `movesOf`. */
const internalMoves = Effect.fnUntraced(function* (watch: WatchContext, provider: Provider, raw: unknown) {
  const decoded = decodeTransaction(raw)
  if (Either.isLeft(decoded)) return undefined
  const { from, gas, hash, to, value } = decoded.right
  if (gas <= plainTransfer) return []
  const moves = yield* movesOf(watch, provider, hash)
  const own = moves?.findIndex((move) => move.from === from && move.to === to && move.amount === value)
  return moves?.filter((_, i) => i !== own)
})

/** The income of an address in one block, wei: the change of its balance plus what it spent there. */
const incomeIn = Effect.fnUntraced(function* (client: RpcClient, address: string, block: BlockHeader) {
  const before = yield* stateOf(client, address, { number: block.number - 1, hash: block.parentHash })
  const after = yield* stateOf(client, address, block)
  const change = after.balance - before.balance
  if (before.nonce === after.nonce) return change
  const [{ header, transactions }] = yield* sendBatch(client, [getFullBlock(block.number)])
  if (header.hash !== block.hash) return yield* otherBlock(client, block, header.hash)
  const sent = Arr.getRights(transactions.map(decodeTransaction)).filter(({ from }) => from === address)
  return change + spent(address, sent, yield* outcomesOf(client, sent))
})

/**
 * The bounds of an address's income in a block, and between the balance points around it, for a claim of the
 * transaction `hash`; empty where neither is known. Without traces, reconciliation may have attributed the income of
 * several transactions to one, and without states that of several blocks: each bound says what the other transactions
 * really transferred, as far as traces show it.
 */
const incomeBoundsOf = Effect.fn("Balances.incomeBoundsOf")(function* (
  watch: WatchContext,
  provider: Provider,
  address: string,
  header: BlockHeader,
  hash: string
) {
  const bounds: Array<Income.IncomeBound> = []
  const { network, reader } = watch
  // Undefined where neither of two providers still has the states of the block.
  const amount = yield* fromTwo(watch, provider, (client) =>
    Effect.catchIf(incomeIn(client, address, header), isCapabilityRefused, () => Effect.succeed(undefined))
  )
  const incomes = [
    amount === undefined ? undefined : { address, after: header.number - 1, upTo: header.number, amount },
    yield* Income.incomeAround(reader, network, address, header.number)
  ]
  for (const income of incomes.filter((one) => one !== undefined)) {
    const transferred: Array<Income.IncomePart> = []
    for (const part of yield* Income.partsOf(reader, network, income)) {
      if (part.txHash === hash || !part.position.startsWith("call:")) continue
      const moves = yield* movesOf(watch, provider, part.txHash)
      if (moves !== undefined) transferred.push({ ...part, amount: receivedBy(address, moves) })
    }
    bounds.push({ ...income, transferred })
  }
  return bounds
})

/**
 * `claim` for a caller between two ticks of the watcher, as the only writer of the network's rows. `place`: where
 * logs show the transaction, if the caller has them.
 */
export const claimOnce = Effect.fnUntraced(function* (
  watch: WatchContext,
  first: Provider,
  hash: string,
  place?: Place
) {
  const scan = yield* scanOf(watch)
  let provider = first
  let found = yield* findOnChain(watch, provider, hash, scan.head.number, place)
  if (found === undefined) {
    // A node without an index of old transactions responds as if the transaction did not exist: another one may have it.
    provider = (yield* watch.providers.other(first)) ?? first
    found = provider === first ? undefined : yield* findOnChain(watch, provider, hash, scan.head.number, place)
  }
  if (found === undefined) {
    return yield* refused(
      `No provider of chains.${networkKey(watch.network)} knows ${hash}: check the hash, the chain and the mode. ` +
        "For an old transaction the provider must keep an index of all of them; tilld rescan reads a block without one"
    )
  }
  const { header, raw } = found
  const { blockHash, blockNumber, logs } = found.included
  const moves = yield* internalMoves(watch, provider, raw)
  const receivers = [
    ...tokensIn(logs).map(({ address }) => address),
    ...(found.to === null ? [] : [found.to]),
    ...(moves ?? []).map(({ to }) => to)
  ]
  const owners = yield* ownersOf(watch.reader, watch.network.mode, receivers)
  const ours = new AddressSet()
  for (const address of owners.keys()) ours.add(address)
  const coin = nativeToken(watch.network.chain)
  const bad = (method: string) => (detail: string) => badResponse(provider.client, { method, params: [] }, detail)
  const tokens = transfersAmong(logs, watch.contracts, ours)
  const direct = nativeTransfers({ header, transactions: raw === undefined ? [] : [raw] }, coin, ours)
  const own = [
    ...(yield* Effect.mapError(tokens, bad("eth_getTransactionReceipt"))),
    ...(yield* Effect.mapError(direct, bad("eth_getTransactionByHash")))
  ]
  const internal = [{ block: header, hash }, moves ?? []] as const
  const transfers: ReadonlyArray<DatedTransfer> = [
    ...own.map((transfer) => ({ ...transfer, blockTime: header.time })),
    ...Array.from(owners.keys()).flatMap((address) => traced({ address, currency: coin }, [internal]))
  ]
  if (transfers.length === 0) return yield* creditsNothing(watch, hash, logs, owners, moves !== undefined)
  const paid = new Set(transfers.flatMap(({ address, currency }) => (currency === coin ? [address] : [])))
  const bounds = yield* Effect.forEach(paid, (address) => incomeBoundsOf(watch, provider, address, header, hash), {
    concurrency: 1
  })
  yield* checkBranch(provider, scan)
  const added = yield* storeRepaired(watch, provider, scan, transfers, bounds.flat())
  const credits = transfers.flatMap((transfer) => {
    const { address, amount } = transfer
    const owner = owners.get(address)
    if (owner === undefined) return []
    return [{ address, amount, currency: currencyFor(watch.network, owner, transfer), payment: owner.payment }]
  })
  return { blockNumber, blockHash, credits, added }
})

/**
 * Credits the money of one transaction, whatever the reason that the ledger lacks it: scanning missed it, its address
 * is no longer watched, or no provider could attribute it. The transaction must be in a scanned block. Nothing changes
 * where nothing is missing, and the ledger never has more native coins of an address than its income.
 *
 * Returns the transaction's block, all its transfers to addresses of ours as `credits` (base units; no `payment` for a
 * skipped address), which are in the ledger now, and the number of receipts that it lacked.
 *
 * Fails with `RepairRefused` when the transaction credits nothing, and with `RpcError` after some retries.
 *
 * @param hash lower case
 */
export const claim = Effect.fn("Repair.claim")(function* (exclusively: ExclusiveWork, hash: string) {
  return yield* persistently(exclusively, (watch, provider) => claimOnce(watch, provider, hash))
})
