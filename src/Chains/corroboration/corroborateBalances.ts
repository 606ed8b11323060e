import { Array as Arr, Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import { dueAgain } from "../balances/discrepancy.ts"
import { pointAt, type StateProvider } from "../balances/historicalStates.ts"
import type { Reconciliation } from "../balances/reconcile.ts"
import { Ballot, no, onOtherBlock, quorum, type Tally, unable, type Vote, yes } from "../evidence/Ballot.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { readPackedBalances } from "../rpc/capabilities.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import { providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import * as UnshownReceipts from "./UnshownReceiptsRepo.ts"

/**
 * Corroborates unattributed money: coins that raised a balance and that no transaction explains. Other providers are
 * asked for their own states of the address before and after the blocks in question.
 *
 * - `withoutDenied`: drops denied money from a balance reconciliation before it is stored.
 * - `takeBackDenied`: asks again about money that is stored, marks it as shown or removes it.
 * - `withoutRefuted`, `answerOf`: the same checks for the search before a payment ends.
 *
 * A lying balance therefore neither holds up a payment nor invites a refund.
 */

/** Unattributed receipts that one round asks other providers about, the newest first. */
const receiptsPerRound = 50

/**
 * An address's balance by two providers, wei. Where `other` is higher, it invents money or the first one hides some.
 */
export interface DifferingBalance {
  readonly address: string
  readonly first: bigint
  readonly other: bigint
}

/**
 * The addresses, lower case, whose balances after a block differ between two providers. Takes one call per provider and
 * thousand addresses. The block is asked for by its hash: fails with an `RpcError` where a provider does not have it.
 */
export const differingBalances = Effect.fn("Chains.differingBalances")(function* (
  first: StateProvider,
  other: StateProvider,
  addresses: ReadonlyArray<string>,
  at: BlockRef
) {
  const balancesBy = ({ client }: StateProvider) => readPackedBalances(client, addresses, at)
  const [firstBalances, otherBalances] = yield* Effect.all([balancesBy(first), balancesBy(other)], { concurrency: 2 })
  return Arr.zipWith(
    Arr.zip(addresses, firstBalances),
    otherBalances,
    ([address, firstBalance], otherBalance): DifferingBalance => ({
      address,
      first: firstBalance,
      other: otherBalance
    })
  ).filter((balance) => balance.first !== balance.other)
})

/** Money that arrived in the blocks from `since` to `blockNumber`, by one provider's balances. */
type Unattributed = Pick<DatedTransfer, "address" | "amount" | "blockHash" | "blockNumber" | "blockTime" | "since">

/**
 * The evidence of another provider's balances. They show it in addition to all other receipts of these blocks. To deny
 * it they are held against corroborated receipts only: otherwise an invented receipt could have real money denied.
 */
const answerBy = Effect.fnUntraced(function* (
  provider: Provider,
  { address, amount, blockHash, blockNumber, blockTime, since = blockNumber }: Unattributed,
  receivedWith: UnshownReceipts.ReceivedWith
): Effect.fn.Return<Vote<true>, RpcError> {
  const at = { number: blockNumber, hash: blockHash, time: blockTime }
  const sources = { provider, others: [], at, hashes: new Map<number, string>() }
  const after = yield* pointAt(sources, address, blockNumber)
  if (after === undefined) return unable
  // The address has never sent anything and holds less than the amount: it cannot ever have received it.
  if (after.nonce === 0 && after.balance < amount) return no
  const before = yield* pointAt(sources, address, since - 1)
  if (before === undefined) return unable
  const gained = after.balance - before.balance
  if (gained - receivedWith.all >= amount) return yes(true)
  // With another nonce the address has sent transactions in between, and what it spent is not known.
  return after.nonce === before.nonce && gained - receivedWith.corroborated < amount ? no : unable
})

/** A provider with another block at that height denies the money too. */
const answerInBlock = Effect.fnUntraced(function* (
  provider: Provider,
  money: Unattributed,
  receivedWith: UnshownReceipts.ReceivedWith
): Effect.fn.Return<Vote<true>, RpcError> {
  const [block] = yield* sendBatch(provider.client, [findHeader(money.blockNumber)])
  if (block !== undefined && block.hash !== money.blockHash) return onOtherBlock
  return yield* answerBy(provider, money, receivedWith)
})

/** Asks each of the providers. One that fails is not able to say. */
const tallyOf = Effect.fnUntraced(function* (
  { providers }: WatchContext,
  asked: ReadonlyArray<Provider>,
  ask: (provider: Provider) => Effect.Effect<Vote<true>, RpcError>
) {
  const ballot = new Ballot<"money", true, Provider>()
  for (const provider of asked) {
    const answer = ask(provider).pipe(
      Effect.tapError((error) => (providerTrouble.has(error.reason) ? providers.failed(provider, error) : Effect.void)),
      Effect.orElseSucceed(() => unable)
    )
    ballot.vote("money", provider, yield* answer)
  }
  return ballot.tally("money")
})

/**
 * Whether the money is denied before a quorum has spoken: by the serving provider, or by another one while no other shows
 * it. The serving provider can deny its own report, which may rest on a state that another provider had invented.
 */
const isDisputed = (serving: Provider, { claims, denials }: Tally<true, Provider>): boolean =>
  denials.includes(serving) || (denials.length > 0 && claims.every(({ by }) => by === serving))

const warnOf = (addresses: ReadonlyArray<string>) =>
  addresses.length === 0
    ? Effect.void
    : Effect.logWarning(
        "another provider denies a balance that one provider reported: the excess does not count, check rpc_urls"
      ).pipe(Effect.annotateLogs({ addresses: [...new Set(addresses)].join(", ") }))

/** Other money that the address received in the same blocks, by the ledger and by the same reading. */
const receivedWithOf = (
  { network, reader }: WatchContext,
  money: DatedTransfer,
  read: ReadonlyArray<DatedTransfer>
) => {
  const { address, blockNumber, since = blockNumber } = money
  const isOther = (transfer: DatedTransfer) =>
    transfer !== money &&
    transfer.address === address &&
    transfer.blockNumber >= since &&
    transfer.blockNumber <= blockNumber
  const found = sum(read.filter(isOther).map(({ amount }) => amount))
  return Effect.map(UnshownReceipts.receivedWith(reader, network, money), ({ corroborated, all }) => ({
    corroborated,
    all: all + found
  }))
}

/**
 * A reconciliation without the unattributed money that balances deny: those of another provider, or the serving one's
 * own where the reading used a state of another provider or an old one. The balance rows of these addresses are left
 * out too, so that the addresses are compared again. Called before the reconciliation is stored.
 *
 * @param disputed addresses with denied money, which have been logged; updated by this reading
 */
export const withoutDenied = Effect.fn("Chains.withoutDenied")(function* (
  watch: WatchContext,
  provider: Provider,
  reading: Reconciliation,
  disputed: Set<string>
) {
  const isReplacement = (transfer: DatedTransfer) =>
    reading.replaced.some(({ address, blockHash }) => address === transfer.address && blockHash === transfer.blockHash)
  const unattributed = reading.transfers.filter((transfer) => transfer.txHash === undefined && !isReplacement(transfer))
  const others = unattributed.length === 0 ? [] : yield* watch.providers.others(provider)
  const denied = yield* Effect.filter(unattributed, (money) =>
    Effect.gen(function* () {
      const receivedWith = yield* receivedWithOf(watch, money, reading.transfers)
      const tally = yield* tallyOf(watch, [provider, ...others], (one) => answerBy(one, money, receivedWith))
      // Other money that it hides is found once another one serves.
      if (tally.outcome === "denied" && tally.claims.some(({ by }) => by === provider)) {
        const detail = `its balance of ${money.address} in block ${money.blockNumber} is denied by two others`
        yield* watch.providers.contradicted(provider, detail)
      }
      return isDisputed(provider, tally)
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

/**
 * Whether an address that has never sent anything holds exactly what the ledger has for it up to a block: then all of
 * it arrived. The block is `settled`, or the provider's head where it has no states of `settled`.
 */
const holdsAll = Effect.fnUntraced(function* (
  { heads, network, reader }: WatchContext,
  provider: Provider,
  address: string,
  settled: BlockRef
) {
  const pointOf = (at: BlockRef) =>
    pointAt({ provider, others: [], at, hashes: new Map<number, string>() }, address, at.number)
  let point = yield* pointOf(settled)
  if (point === undefined) {
    const head = yield* heads.of(provider)
    point = head && (yield* pointOf(head))
  }
  if (point === undefined || point.nonce > 0) return false
  return point.balance === (yield* UnshownReceipts.receivedUpTo(reader, network, address, point.number))
})

/**
 * The evidence of a provider's balances about unattributed money of the ledger. Fails with an `RpcError`.
 *
 * @param settled a block with all its confirmations, looked at where the provider no longer has states of the money's
 *   blocks
 */
export const answerOf = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  money: Unattributed & Ledger.ReceiptKey,
  settled: BlockRef
) {
  const receivedWith = yield* UnshownReceipts.receivedWith(watch.reader, watch.network, money)
  const answer = yield* answerBy(provider, money, receivedWith)
  if (answer.is !== "unable") return answer
  return (yield* holdsAll(watch, provider, money.address, settled)) ? yes(true) : answer
})

/**
 * The transfers found by a provider's balances, without unattributed money that two other providers deny. Money that
 * one provider denies stays: between two providers it is unknown which one lies, and the payment waits.
 */
export const withoutRefuted = Effect.fn("Chains.withoutRefuted")(function* (
  watch: WatchContext,
  provider: Provider,
  transfers: ReadonlyArray<DatedTransfer>
) {
  const isUnattributed = ({ txHash }: DatedTransfer) => txHash === undefined
  const asked = transfers.some(isUnattributed) ? yield* watch.providers.others(provider) : []
  if (asked.length < quorum) return transfers
  return yield* Effect.filter(transfers, (money) =>
    Effect.gen(function* () {
      if (!isUnattributed(money)) return true
      const receivedWith = yield* receivedWithOf(watch, money, transfers)
      const { outcome } = yield* tallyOf(watch, asked, (other) => answerInBlock(other, money, receivedWith))
      if (outcome === "denied") yield* warnOf([money.address])
      return outcome !== "denied"
    })
  )
})

/** Whether the provider has the same block times for the money. Where not, the search before the end asks for them. */
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
 * The verdict on a stored receipt. It is shown once two providers show it by their own states, regardless of which one
 * reported it. Once the search before the payment's end has run, it is denied only if two providers deny it or none
 * shows it: while one shows it and one denies it, it is unknown which one lies, and the payment waits.
 */
const judge = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  others: ReadonlyArray<Provider>,
  money: UnshownReceipts.UnshownReceipt
): Effect.fn.Return<Tally<true, Provider>["outcome"], StoreUnavailable> {
  const receivedWith = yield* UnshownReceipts.receivedWith(watch.reader, watch.network, money)
  const tally = yield* tallyOf(watch, [provider, ...others], (one) => answerBy(one, money, receivedWith))
  if (tally.outcome === "shown") {
    const alike = yield* Effect.filter(tally.agreed, ({ by }) => isDatedAlike(watch, by, money))
    return alike.length >= quorum ? "shown" : "open"
  }
  if (tally.outcome === "denied") return "denied"
  if (!isDisputed(provider, tally)) return "open"
  const isAwaited = tally.claims.length > 0 && (yield* UnshownReceipts.isSearched(watch.reader, watch.network, money))
  return isAwaited ? "open" : "denied"
})

/**
 * Asks other providers about stored unattributed receipts that are not corroborated, each time its age has doubled.
 * Money that two show is marked as corroborated; money that they deny is removed from the ledger, and the address
 * compared again.
 *
 * @param checked the block of the last balance round
 */
export const takeBackDenied = Effect.fn("Chains.takeBackDenied")(function* (
  watch: WatchContext,
  provider: Provider,
  head: BlockRef,
  checked: Scan["checked"]
) {
  const { network, providers, reader, settlement, writer } = watch
  const unshown = yield* UnshownReceipts.unshown(reader, network, receiptsPerRound)
  const due = unshown.filter(({ blockTime }) => dueAgain(blockTime, checked?.time ?? blockTime, head.time))
  const others = due.length === 0 ? [] : yield* providers.others(provider)
  if (others.length === 0) return
  const outcomes = yield* Effect.forEach(due, (money) => judge(watch, provider, others, money), { concurrency: 1 })
  const corroborated = due.filter((_, i) => outcomes[i] === "shown")
  const denied = due.filter((_, i) => outcomes[i] === "denied")
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
