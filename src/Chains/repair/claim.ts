/**
 * `tilld claim`: credits the money of one transaction that the ledger lacks. Reads the transaction and its receipt,
 * decodes its token, native and internal transfers to addresses of ours, and stores them, bounded by what balances
 * show. A claim that cannot succeed fails with `RepairRefused`, whose message tells the operator why.
 *
 * The control socket calls `claim`, and the search for tokens of skipped addresses `claimOnce`.
 */
import { Effect, Predicate } from "effect"
import { networkKey } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import { RepairRefused } from "../../Domain/RepairErrors.ts"
import { traced } from "../balances/attribution.ts"
import { incomeBoundsOf, internalMoves } from "../balances/claimedIncome.ts"
import { AddressSet } from "../ledger/AddressSet.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import { currencyFor, type Owner, ownersOf } from "../ledger/WatchedAddressesRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { badResponse, getHeader, optional, sendBatch, transferTopic } from "../rpc/methods.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import { getTransaction, hasSucceeded, receiptReader } from "../rpc/transactionMethods.ts"
import { nativeTransfers, transfersAmong } from "../scan/transfers.ts"
import type { ExclusiveWork, WatchContext } from "../scan/WatchContext.ts"
import { checkBranch, persistently, scanOf, storeRepaired } from "./rescan.ts"

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

/** Why an included transaction credits nothing. */
const creditsNothing = (
  { contracts, network }: WatchContext,
  hash: string,
  logs: ReadonlyArray<unknown>,
  ours: ReadonlyMap<string, Owner>,
  isTraced: boolean
): RepairRefused => {
  const key = `chains.${networkKey(network)}`
  const toUs = tokensIn(logs).filter(({ address }) => ours.has(address))
  const foreign = toUs.find(({ contract }) => !contracts.has(contract.toLowerCase()))
  if (foreign !== undefined) {
    const { address, contract } = foreign
    return new RepairRefused({
      message:
        `${hash} brings ${address} a token of the contract ${contract}, which is none of ${key}: anybody can make ` +
        `such a contract. If it is one that you take, configure it under [${key}.tokens] and claim again`
    })
  }
  if (toUs.length > 0) return new RepairRefused({ message: `${hash} transfers nothing: the amount is 0` })
  return new RepairRefused({
    message:
      `${hash} pays no address that was handed out here in ${network.mode} mode: neither by a token that ${key} takes, ` +
      `nor with ${nativeToken(network.chain)}${isTraced ? "" : " of its own, and no provider shows what its contracts moved"}. ` +
      "Check the hash, the chain and the mode"
  })
}

/** The transaction, its receipt and header, in a scanned block; undefined where the provider does not know it. */
const findOnChain = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  hash: string,
  scanned: number
) {
  const [transaction, included] = yield* sendBatch(provider.client, [
    optional(getTransaction(hash)),
    optional(getIncluded(hash))
  ])
  const key = `chains.${networkKey(watch.network)}`
  if (transaction === undefined) return undefined
  if (included === undefined) {
    return yield* new RepairRefused({ message: `${hash} is known and in no block yet: claim it once it is` })
  }
  if (included.transactionHash !== hash) {
    return yield* inconsistent(provider.client, "eth_getTransactionReceipt", `it is of ${included.transactionHash}`)
  }
  if (!hasSucceeded(included)) {
    const message = `${hash} is in block ${included.blockNumber}, where it failed: it moved nothing`
    return yield* new RepairRefused({ message })
  }
  if (included.blockNumber > scanned) {
    return yield* new RepairRefused({
      message: `${hash} is in block ${included.blockNumber}, and ${key} has been read up to ${scanned}: it is read soon`
    })
  }
  const [header] = yield* sendBatch(provider.client, [getHeader(included.blockNumber)])
  if (header.hash !== included.blockHash) {
    const detail = `${hash} is in block ${included.blockHash}, which is not the chain's`
    return yield* inconsistent(provider.client, "eth_getTransactionReceipt", detail)
  }
  return { raw: transaction.raw, to: transaction.to, included, header }
})

/**
 * `claim` for a caller that already runs between two ticks of the watcher, as the only writer of the network's rows.
 */
export const claimOnce = Effect.fnUntraced(function* (watch: WatchContext, first: Provider, hash: string) {
  const scan = yield* scanOf(watch)
  let provider = first
  let found = yield* findOnChain(watch, provider, hash, scan.head.number)
  if (found === undefined) {
    // A node without an index of old transactions responds as if the transaction did not exist: another one may have it.
    provider = (yield* watch.providers.other(first)) ?? first
    found = provider === first ? undefined : yield* findOnChain(watch, provider, hash, scan.head.number)
  }
  if (found === undefined) {
    const message =
      `No provider of chains.${networkKey(watch.network)} knows ${hash}: check the hash, the chain and the mode. ` +
      "For an old transaction the provider must keep an index of all of them"
    return yield* new RepairRefused({ message })
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
  const logged = transfersAmong(logs, watch.contracts, ours)
  const direct = nativeTransfers({ header, transactions: [raw] }, coin, ours)
  const own = [
    ...(yield* Effect.mapError(logged, bad("eth_getTransactionReceipt"))),
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
