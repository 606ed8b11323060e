import { Array as Arr, Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import { dueAgain } from "../balances/discrepancy.ts"
import { pointAt, type StateProvider } from "../balances/historicalStates.ts"
import type { Reconciliation } from "../balances/reconcile.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { headOf } from "../providers/headOf.ts"
import type { Provider } from "../providers/Providers.ts"
import { readPackedBalances } from "../rpc/capabilities.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import { providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { InternalVerdict } from "./corroborateInternal.ts"
import { quorum } from "./QuorumCount.ts"
import * as UnshownReceipts from "./UnshownReceiptsRepo.ts"

/** Unattributed receipts that one round asks other providers about, the newest first. */
const askedPerRound = 50

/** The balance of an address by two providers, in wei. `other` higher: the first withholds money, or it invents some. */
export interface DifferingBalance {
  readonly address: string
  readonly first: bigint
  readonly other: bigint
}

/**
 * Those of the addresses, lower case, whose balances after a block two providers do not agree on, by one call a provider
 * and thousand addresses. The block is asked for by its hash: a provider that does not have it fails.
 */
export const differingBalances = Effect.fn("Chains.differingBalances")(function* (
  first: StateProvider,
  other: StateProvider,
  addresses: ReadonlyArray<string>,
  at: BlockRef
) {
  const balancesBy = ({ client }: StateProvider) => readPackedBalances(client, addresses, at)
  const [ours, theirs] = yield* Effect.all([balancesBy(first), balancesBy(other)], { concurrency: 2 })
  return Arr.zipWith(
    Arr.zip(addresses, ours),
    theirs,
    ([address, one], next): DifferingBalance => ({
      address,
      first: one,
      other: next
    })
  ).filter((balance) => balance.first !== balance.other)
})

/** Money that came with the blocks from `since` to `blockNumber`, by one provider's balances. */
type Unattributed = Pick<DatedTransfer, "address" | "amount" | "blockHash" | "blockNumber" | "blockTime" | "since">

/**
 * What another provider's balances say of it. They must show it with all else that is told of these blocks, and may deny it
 * beside what is certain only: an invented receipt would have real money denied.
 */
const verdictBy = Effect.fnUntraced(function* (
  provider: Provider,
  { address, amount, blockHash, blockNumber, blockTime, since = blockNumber }: Unattributed,
  beside: UnshownReceipts.ReceivedWith
): Effect.fn.Return<InternalVerdict, RpcError> {
  const at = { number: blockNumber, hash: blockHash, time: blockTime }
  const sources = { provider, others: [], at, hashes: new Map<number, string>() }
  const after = yield* pointAt(sources, address, blockNumber)
  if (after === undefined) return "unable"
  // Whatever came before: it has sent nothing, and does not hold as much.
  if (after.nonce === 0 && after.balance < amount) return "denied"
  const before = yield* pointAt(sources, address, since - 1)
  if (before === undefined) return "unable"
  const came = after.balance - before.balance
  if (came - beside.all >= amount) return "corroborated"
  // What it has spent in between is not known.
  return after.nonce === before.nonce && came - beside.corroborated < amount ? "denied" : "unable"
})

/** What the serving provider says by its own states, and what each of the others. */
const verdictsOn = Effect.fnUntraced(function* (
  { providers }: WatchContext,
  serving: Provider,
  others: ReadonlyArray<Provider>,
  money: Unattributed,
  beside: UnshownReceipts.ReceivedWith
) {
  const [own = "unable", ...theirs] = yield* Effect.forEach(
    [serving, ...others],
    (provider) =>
      verdictBy(provider, money, beside).pipe(
        Effect.tapError((error) =>
          providerTrouble.has(error.reason) ? providers.failed(provider, error) : Effect.void
        ),
        Effect.orElseSucceed((): InternalVerdict => "unable")
      ),
    { concurrency: 1 }
  )
  return { own, theirs }
})

/**
 * Whether it is denied by the serving provider, or by one of the others while none of them shows it. The serving one has told
 * of it, maybe, beside a state that another one had made up.
 */
const isDenied = ({
  own,
  theirs
}: {
  readonly own: InternalVerdict
  readonly theirs: ReadonlyArray<InternalVerdict>
}) => own === "denied" || (theirs.includes("denied") && !theirs.includes("corroborated"))

const warnOf = (addresses: ReadonlyArray<string>) =>
  addresses.length === 0
    ? Effect.void
    : Effect.logWarning(
        "a balance that one provider told is denied by another: what it had more does not count, check rpc_urls"
      ).pipe(Effect.annotateLogs({ addresses: [...new Set(addresses)].join(", ") }))

/** What came with the same blocks as some money, by the ledger and by what was read together with it. */
const besideOf = ({ network, reader }: WatchContext, money: DatedTransfer, read: ReadonlyArray<DatedTransfer>) => {
  const { address, blockNumber, since = blockNumber } = money
  const isOther = (one: DatedTransfer) =>
    one !== money && one.address === address && one.blockNumber >= since && one.blockNumber <= blockNumber
  const found = sum(read.filter(isOther).map(({ amount }) => amount))
  return Effect.map(UnshownReceipts.receivedWith(reader, network, money), ({ corroborated, all }) => ({
    corroborated,
    all: all + found
  }))
}

/**
 * A reading without the unattributed money that another provider's balances deny, or the serving one's own where a balance
 * between was another one's or an old one; and without what was to be remembered of
 * these addresses: they are compared again. Nothing of it is stored, so that a lying balance holds up no payment and
 * invites no refund.
 *
 * @param disputed addresses that have been warned about; brought up to this reading
 */
export const withoutDenied = Effect.fn("Chains.withoutDenied")(function* (
  watch: WatchContext,
  provider: Provider,
  reading: Reconciliation,
  disputed: Set<string>
) {
  const isOld = (transfer: DatedTransfer) =>
    reading.replaced.some(({ address, blockHash }) => address === transfer.address && blockHash === transfer.blockHash)
  const unattributed = reading.transfers.filter((transfer) => transfer.txHash === undefined && !isOld(transfer))
  const others = unattributed.length === 0 ? [] : yield* watch.providers.others(provider)
  const denied = yield* Effect.filter(unattributed, (money) =>
    Effect.gen(function* () {
      const beside = yield* besideOf(watch, money, reading.transfers)
      return isDenied(yield* verdictsOn(watch, provider, others, money, beside))
    })
  )
  const addresses = new Set(denied.map(({ address }) => address))
  yield* warnOf([...addresses].filter((address) => !disputed.has(address)))
  for (const { address } of reading.rows) disputed.delete(address)
  for (const address of addresses) disputed.add(address)
  return {
    ...reading,
    transfers: reading.transfers.filter((transfer) => !denied.includes(transfer)),
    rows: reading.rows.filter(({ address }) => !addresses.has(address))
  } satisfies Reconciliation
})

/** Denied also by who has another block in the place of its. */
const verdictInBlock = Effect.fnUntraced(function* (
  provider: Provider,
  money: Unattributed,
  beside: UnshownReceipts.ReceivedWith
) {
  const [block] = yield* sendBatch(provider.client, [findHeader(money.blockNumber)])
  if (block !== undefined && block.hash !== money.blockHash) return "denied" as const
  return yield* verdictBy(provider, money, beside)
})

/**
 * Whether an address that has sent nothing holds what the ledger has of it up to a block, and no more: then all of it came.
 * Where the provider has no states of `settled` either, its newest block decides.
 */
const holdsAll = Effect.fnUntraced(function* (
  { network, providers, reader }: WatchContext,
  provider: Provider,
  address: string,
  settled: BlockRef
) {
  const pointOf = (at: BlockRef) =>
    pointAt({ provider, others: [], at, hashes: new Map<number, string>() }, address, at.number)
  let point = yield* pointOf(settled)
  if (point === undefined) {
    const head = yield* headOf(providers, provider)
    point = head && (yield* pointOf(head))
  }
  if (point === undefined || point.nonce > 0) return false
  return point.balance === (yield* UnshownReceipts.receivedUpTo(reader, network, address, point.number))
})

/**
 * What a provider's balances say of unattributed money of the ledger.
 *
 * @param settled a block that is as deep as the confirmations; where the provider has no states of the money's blocks any
 *   more, it has those of that one or of its newest
 */
export const verdictOf = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  money: Unattributed & Ledger.ReceiptKey,
  settled: BlockRef
) {
  const verdict = yield* verdictBy(
    provider,
    money,
    yield* UnshownReceipts.receivedWith(watch.reader, watch.network, money)
  )
  if (verdict !== "unable") return verdict
  return (yield* holdsAll(watch, provider, money.address, settled)) ? "corroborated" : verdict
})

/**
 * What a provider's balances tell of, without unattributed money that two others deny. What one denies stays: of two, nobody
 * knows which lies, and the payment waits.
 */
export const withoutRefuted = Effect.fn("Chains.withoutRefuted")(function* (
  watch: WatchContext,
  provider: Provider,
  transfers: ReadonlyArray<DatedTransfer>
) {
  const isDoubtful = ({ txHash }: DatedTransfer) => txHash === undefined
  const asked = transfers.some(isDoubtful) ? yield* watch.providers.others(provider) : []
  if (asked.length < quorum) return transfers
  return yield* Effect.filter(transfers, (money) =>
    Effect.gen(function* () {
      if (!isDoubtful(money)) return true
      const beside = yield* besideOf(watch, money, transfers)
      const denials = yield* Effect.filter(asked, (one) =>
        Effect.orElseSucceed(
          Effect.map(verdictInBlock(one, money, beside), (verdict) => verdict === "denied"),
          () => false
        )
      )
      if (denials.length >= quorum) yield* warnOf([money.address])
      return denials.length < quorum
    })
  )
})

/** Whether another provider has the same times of the blocks that the money came with; else the search asks for them. */
const isDatedAlike = Effect.fnUntraced(function* (
  { network, reader }: WatchContext,
  { client }: Provider,
  { blockHash, blockNumber, blockTime, since }: UnshownReceipts.UnshownReceipt
) {
  const own = { number: blockNumber, hash: blockHash, time: blockTime }
  const blocks = [own, (yield* Ledger.newestBlockAt(reader, network, since)) ?? own]
  const calls = blocks.map(({ number }) => findHeader(number))
  const headers = yield* Effect.orElseSucceed(sendBatch(client, calls), () => [])
  return blocks.every(({ hash, time }, i) => headers[i]?.hash === hash && headers[i]?.time === time)
})

/**
 * The verdict on a receipt: two providers have to show it by their own states, whoever told of it. Before its payment ends
 * two have to deny it, or none may show it: as long as one has it and one has not, nobody knows which of the two lies, and
 * the payment waits.
 */
const judge = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  others: ReadonlyArray<Provider>,
  money: UnshownReceipts.UnshownReceipt
): Effect.fn.Return<InternalVerdict, StoreUnavailable> {
  const beside = yield* UnshownReceipts.receivedWith(watch.reader, watch.network, money)
  const verdicts = yield* verdictsOn(watch, provider, others, money, beside)
  const all = Arr.zip([provider, ...others], [verdicts.own, ...verdicts.theirs])
  const those = (wanted: InternalVerdict) => all.flatMap(([one, verdict]) => (verdict === wanted ? [one] : []))
  const showing = those("corroborated")
  if (showing.length >= quorum) {
    const alike = yield* Effect.filter(showing, (one) => isDatedAlike(watch, one, money))
    return alike.length >= quorum ? "corroborated" : "unable"
  }
  if (those("denied").length >= quorum) return "denied"
  if (!isDenied(verdicts)) return "unable"
  const isAwaited = showing.length > 0 && (yield* UnshownReceipts.isSearched(watch.reader, watch.network, money))
  return isAwaited ? "unable" : "denied"
})

/**
 * Asks other providers about unattributed receipts that nobody could be asked about when they were stored, each as its age
 * doubles. What their balances deny is taken out of the ledger, and the address is compared again.
 *
 * @param checked the last round
 */
export const takeBackDenied = Effect.fn("Chains.takeBackDenied")(function* (
  watch: WatchContext,
  provider: Provider,
  head: BlockRef,
  checked: Scan["checked"]
) {
  const { network, providers, reader, settlement, writer } = watch
  const doubtful = yield* UnshownReceipts.unshown(reader, network, askedPerRound)
  const due = doubtful.filter(({ blockTime }) => dueAgain(blockTime, checked?.time ?? blockTime, head.time))
  const asked = due.length === 0 ? [] : yield* providers.others(provider)
  if (asked.length === 0) return
  const judged = yield* Effect.forEach(due, (money) => judge(watch, provider, asked, money), { concurrency: 1 })
  const those = (wanted: InternalVerdict) => due.filter((_, i) => judged[i] === wanted)
  const [corroborated, denied] = [those("corroborated"), those("denied")]
  if (corroborated.length + denied.length === 0) return
  yield* warnOf(denied.map(({ address }) => address))
  yield* writer.write(
    Effect.gen(function* () {
      for (const receipt of corroborated) yield* UnshownReceipts.setShown(network, receipt)
      const touched = yield* Effect.forEach(denied, (money) => UnshownReceipts.takeBack(network, money), {
        concurrency: 1
      })
      const scan = yield* Ledger.scan(yield* Tx, network)
      if (scan !== undefined) yield* settlement.settle({ network, head: scan.head }, touched.flat())
    })
  )
})
