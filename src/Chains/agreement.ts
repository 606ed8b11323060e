import { Array as Arr, Clock, Duration, Effect, Either, Schema } from "effect"
import { nativeToken } from "../Domain/Currency.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../Sql.ts"
import { AddressSet } from "./AddressSet.ts"
import type { Unagreed } from "./AgreementRepo.ts"
import * as AgreementRepo from "./AgreementRepo.ts"
import { ask, badAnswer, type Call, decoder, Hash } from "./calls.ts"
import * as Ledger from "./LedgerRepo.ts"
import type { Provider } from "./Providers.ts"
import { providerTrouble } from "./Rpc.ts"
import { makeStandsStill, type StandsStill } from "./standsStill.ts"
import type { Watch } from "./tick.ts"
import { nativeTransfers, type Transfer, transfersAmong } from "./transfers.ts"

/** Receipts of the ledger that one tick goes through: so many of the newest, and so many of the others in turn. */
const page = 500
/** Transactions that one tick asks about; the next ones wait for the next tick. */
const askedPerTick = 200
/** Calls in one batch; providers allow from 100 up. */
const callsPerBatch = 50
/** The longest that a receipt waits until it is asked about again: the wait doubles, from one poll. */
const longestWait = Duration.toMillis("10 minutes")
/** Receipts whose waits are known; of any other it is not known that it was asked about. */
const remembered = 10_000
/** A receipt with all its confirmations that has been seen for this long should have been agreed to. */
const patience = Duration.toMillis("10 minutes")
/** Transactions that one warning names. */
const named = 10

const decodeVouched = decoder(
  Schema.Struct({
    transactionHash: Hash,
    blockHash: Hash,
    status: Schema.Literal("0x0", "0x1"),
    logs: Schema.Array(Schema.Unknown)
  })
)

type Vouched = Either.Either.Right<ReturnType<typeof decodeVouched>>

/** A transaction's receipt with its logs; undefined where the node has none. */
const findVouched = (hash: string): Call<Vouched | undefined> => ({
  method: "eth_getTransactionReceipt",
  params: [hash],
  decode: (result) => (result === null ? Either.right(undefined) : decodeVouched(result))
})

/** A transaction, which is checked where it is looked at; null where the node has none. */
const findTransaction = (hash: string): Call<unknown> => ({
  method: "eth_getTransactionByHash",
  params: [hash],
  decode: Either.right
})

/**
 * Any transaction in the right block could be named for a transfer that never was: it must be told the same. What moved
 * inside contracts no node tells without tracing.
 */
const isTold = (receipt: Unagreed, transfers: ReadonlyArray<Transfer>): boolean =>
  receipt.position.startsWith("call:") ||
  transfers.some(
    ({ address, amount, currency, position, txHash }) =>
      txHash === receipt.txHash &&
      position === receipt.position &&
      address === receipt.address &&
      currency === receipt.currency &&
      amount === receipt.amount
  )

/** What a transaction sends by its own value, if it is in the block of the receipt. */
const sentBy = (transaction: unknown, { blockHash, blockNumber }: Unagreed, coin: string, addresses: AddressSet) => {
  const header = { number: blockNumber, hash: blockHash, time: 0, parentHash: "", logsBloom: undefined }
  return Either.getOrElse(nativeTransfers({ header, transactions: [transaction] }, coin, addresses), () => [])
}

/** Those of the receipts whose transaction a provider has in the same block, where it succeeded and brought the same. */
const confirmedBy = ({ client }: Provider, { contracts, network }: Watch, receipts: ReadonlyArray<Unagreed>) =>
  Effect.gen(function* () {
    const byHash = Arr.groupBy(receipts, (receipt) => receipt.txHash)
    const addresses = new AddressSet()
    for (const { address } of receipts) addresses.add(address)
    const agreed: Array<Unagreed> = []
    const hashes = Object.keys(byHash)
    const paying = hashes.filter((hash) => byHash[hash]?.some(({ position }) => position.startsWith("tx:")))
    const answers = yield* ask(client, [...hashes.map(findVouched), ...paying.map(findTransaction)])
    const transactions = new Map(Arr.zip(paying, answers.slice(hashes.length)))
    for (const [hash, vouched] of Arr.zip(hashes, answers as ReadonlyArray<Vouched | undefined>)) {
      if (vouched === undefined || vouched.transactionHash !== hash || vouched.status === "0x0") continue
      const transfers = yield* Either.match(transfersAmong(vouched.logs, contracts, addresses), {
        onLeft: (detail) => badAnswer(client, findVouched(hash), detail),
        onRight: Effect.succeed
      })
      const here = (byHash[hash] ?? []).filter((one) => one.blockHash === vouched.blockHash)
      const sent = (one: Unagreed) => sentBy(transactions.get(hash), one, nativeToken(network.chain), addresses)
      agreed.push(...here.filter((one) => isTold(one, [...transfers, ...sent(one)])))
    }
    return agreed
  })

/** What is known of a receipt that was asked about in vain. Times are Unix milliseconds. */
interface Wait {
  readonly times: number
  readonly since: number
  readonly until: number
  /** It had all its confirmations already. */
  readonly deep: boolean
  readonly warned: boolean
}

/** The waits of receipts, the longest unchanged forgotten first. */
class Waits {
  readonly #waits = new Map<string, Wait>()

  constructor(readonly first: number) {}

  get(receipt: Unagreed): Wait | undefined {
    return this.#waits.get(Ledger.keyOf(receipt))
  }

  /** Whether it is to be asked about. One that has just got its confirmations is, since now its payment waits for it. */
  isDue(receipt: Unagreed, deep: boolean, now: number): boolean {
    const wait = this.get(receipt)
    return wait === undefined || now < wait.since || now >= wait.until || (deep && !wait.deep)
  }

  /** It was asked about in vain. */
  lengthen(receipt: Unagreed, deep: boolean, now: number, warned: boolean): void {
    const before = this.get(receipt)
    const times = before === undefined || before.deep !== deep ? 0 : before.times + 1
    const wait = Math.min(this.first * 2 ** times, Math.max(this.first, longestWait))
    this.forget(receipt)
    this.#waits.set(Ledger.keyOf(receipt), { times, since: now, until: now + wait, deep, warned })
    const [oldest] = this.#waits.keys()
    if (this.#waits.size > remembered && oldest !== undefined) this.#waits.delete(oldest)
  }

  forget(receipt: Unagreed): void {
    this.#waits.delete(Ledger.keyOf(receipt))
  }
}

export const decidesAlone = "one provider decides alone: no other one is healthy"
export const waitsForSecond = "waits for a second provider's word"

/** Stores that a provider has agreed, and settles what follows. */
const keep = ({ network, settlement, writer }: Watch, agreed: ReadonlyArray<Unagreed>) =>
  writer.write(
    Effect.gen(function* () {
      const touched: Array<Ledger.Touched> = []
      for (const receipt of agreed) touched.push(...(yield* AgreementRepo.setAgreed(network, receipt)))
      // What has been read since is the watcher's own doing: nobody else moves the head.
      const scan = yield* Ledger.scan(yield* Tx, network)
      // Only corroborated money confirms a payment, and opens its exceptions.
      if (scan !== undefined) yield* settlement.settle({ network, head: scan.head }, touched)
    })
  )

/** Asks about the receipts, a batch after the other. Gives those agreed to, and those of which that was denied. */
const askAbout = Effect.fnUntraced(function* (watch: Watch, asked: Provider, receipts: ReadonlyArray<Unagreed>) {
  const agreed: Array<Unagreed> = []
  const denied: Array<Unagreed> = []
  const byHash = Object.values(Arr.groupBy(receipts, (receipt) => receipt.txHash)).slice(0, askedPerTick)
  for (const part of Arr.chunksOf(byHash, callsPerBatch)) {
    const all = part.flat()
    const found = yield* Effect.either(confirmedBy(asked, watch, all))
    if (Either.isLeft(found)) {
      const error = found.left
      // A bad answer to one of them must not be what every tick begins with.
      if (!providerTrouble.has(error.reason)) denied.push(...all)
      yield* watch.providers.failed(asked, error)
      break
    }
    const told = new Set(found.right)
    agreed.push(...told)
    denied.push(...all.filter((receipt) => !told.has(receipt)))
  }
  return { agreed, denied }
})

/**
 * Asks the providers about the receipts, the one that serves last. Two of them must have each: nobody's word is enough
 * for what he may have told first, be it by now the other one that serves, or in the second pass.
 */
const vote = Effect.fnUntraced(function* (
  watch: Watch,
  asked: ReadonlyArray<Provider>,
  receipts: ReadonlyArray<Unagreed>,
  isDeep: (receipt: Unagreed) => boolean,
  standsStill: StandsStill
) {
  const needed = Math.min(2, asked.length)
  const votes = new Map<Unagreed, number>()
  const denied = new Set<Unagreed>()
  const lacking = (receipt: Unagreed) => needed - (votes.get(receipt) ?? 0)
  for (const [place, provider] of asked.entries()) {
    const left = asked.length - place
    const open = receipts.filter((receipt) => lacking(receipt) > 0 && lacking(receipt) <= left)
    const told = yield* askAbout(watch, provider, open)
    for (const receipt of told.agreed) votes.set(receipt, (votes.get(receipt) ?? 0) + 1)
    const serves = left === 1
    const deep = told.denied.filter(isDeep).map(({ blockNumber }) => blockNumber)
    if (!serves && deep.length > 0 && (yield* standsStill(provider, Math.max(...deep)))) continue
    for (const receipt of told.denied) denied.add(receipt)
  }
  const agreed = receipts.filter((receipt) => lacking(receipt) <= 0)
  return { agreed, denied: receipts.filter((receipt) => denied.has(receipt) && lacking(receipt) > 0) }
})

/** Asks other providers about the receipts that one has told of. */
export interface Agreement {
  /** Asks what is due, with the chain read up to `head`. Gives what is not as it should be. */
  readonly run: (provider: Provider, head: BlockRef) => Effect.Effect<string | undefined, StoreUnavailable>
}

/**
 * Asks two providers about the receipts that have not been vouched for yet: without their word they confirm nothing.
 * While no other provider is healthy, the sole one decides alone, once the receipt is deep enough: it must have it, since
 * another one may have told of it that is put aside by now.
 *
 * The newest are asked about first, and the others in turn, each after twice the time of before: what nobody will ever
 * agree to costs little and holds up nothing.
 */
export const makeAgreement = (watch: Watch): Agreement => {
  const { chain, network, providers, reader } = watch
  const waits = new Waits(Math.max(1, Duration.toMillis(chain.pollInterval)))
  const standsStill = makeStandsStill(providers)
  let turn: Unagreed | undefined

  /** The newest receipts, and of the older ones those whose turn it is. */
  const candidates = Effect.gen(function* () {
    const newest = yield* AgreementRepo.unagreed(reader, network, page)
    const last = newest.at(-1)
    if (last === undefined || newest.length < page) return newest
    const from = turn === undefined || AgreementRepo.isNewer(turn, last) ? last : turn
    const others = yield* AgreementRepo.unagreed(reader, network, page, from)
    turn = others.length < page ? undefined : others.at(-1)
    return [...newest, ...others]
  })

  const run = Effect.fn("Watcher.agree")(function* (provider: Provider, head: BlockRef) {
    const receipts = yield* candidates
    if (receipts.length === 0) return undefined
    const now = yield* Clock.currentTimeMillis
    const others = yield* providers.others(provider)
    const isDeep = (receipt: Unagreed) => head.number - receipt.blockNumber + 1 >= chain.confirmations
    const due = receipts.filter(
      (receipt) => (others.length > 0 || isDeep(receipt)) && waits.isDue(receipt, isDeep(receipt), now)
    )
    const { agreed, denied } = yield* vote(watch, [...others, provider], due, isDeep, standsStill)
    for (const receipt of agreed) waits.forget(receipt)
    if (agreed.length > 0) yield* keep(watch, agreed)

    const isOverdue = (receipt: Unagreed) => isDeep(receipt) && receipt.seenAt <= now - patience
    const late = denied.filter((receipt) => isOverdue(receipt) && waits.get(receipt)?.warned !== true)
    for (const receipt of denied) {
      waits.lengthen(receipt, isDeep(receipt), now, isOverdue(receipt) || waits.get(receipt)?.warned === true)
    }
    if (late.length > 0) {
      const transactions = late.slice(0, named).map(({ txHash }) => txHash)
      yield* Effect.logWarning(
        "receipts have had their confirmations for long, and no second provider gives them"
      ).pipe(
        Effect.annotateLogs({
          count: late.length,
          host: (others[0] ?? provider).client.host,
          transactions: transactions.join(", ")
        })
      )
    }
    const settledAt = head.number - chain.confirmations + 1
    const overdue = yield* AgreementRepo.anyUnagreed(reader, network, settledAt, now - patience)
    return [overdue ? waitsForSecond : undefined, others.length === 0 ? decidesAlone : undefined]
      .filter((reason) => reason !== undefined)
      .join("; ")
  })

  return { run: (provider, head) => Effect.map(run(provider, head), (reason) => reason || undefined) }
}
