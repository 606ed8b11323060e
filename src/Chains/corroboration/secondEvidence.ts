import { Array as Arr, Effect } from "effect"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { Ballot, quorum, type Vote, yes } from "../evidence/Ballot.ts"
import type { ReceiptKey } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"
import { answerOf } from "./corroborateBalances.ts"
import { receiptEvidenceOf } from "./receiptEvidence.ts"
import type { DuePayment } from "./SearchesRepo.ts"
import type { CorroboratedReceipt, Undated } from "./SecondEvidenceRepo.ts"
import * as SecondEvidenceRepo from "./SecondEvidenceRepo.ts"

/**
 * A second provider's evidence about receipts that only one provider has reported, where `corroborate.ts` does not ask:
 * dust, and money without a transaction (unattributed). Both can decide how a payment ends, so the search before the
 * end asks about them: `singleSourcedOf` lists them, `secondEvidenceOf` asks one provider, `SearchBallot` counts what
 * several have answered. Called by `endingSearch.ts` and `searchProvider.ts`.
 */

/** Dust receipts that one search asks about, divided among its payments; the logs may cover the others. */
const dustAtOnce = 1_000
/** Dust receipts in one batch, with up to three calls each. */
const receiptsPerBatch = 32
/** Headers in one batch; providers allow batches of 100 calls or more. */
const headersPerBatch = 100

/** Receipts of payments that are about to end that a single provider has reported. */
export interface SingleSourced {
  /** Payments with further dust, which the next search asks about. */
  readonly more: ReadonlySet<PaymentId>
  readonly dust: ReadonlyArray<CorroborationRepo.UncorroboratedDust>
  readonly undated: ReadonlyArray<Undated>
}

/** Reads from the ledger what a single provider has reported of these payments, in blocks up to the given one. */
export const singleSourcedOf = Effect.fnUntraced(function* (
  { network, reader }: WatchContext,
  due: ReadonlyArray<DuePayment>,
  { number }: BlockRef
) {
  const each = Math.max(1, Math.floor(dustAtOnce / due.length))
  const dust = yield* CorroborationRepo.uncorroboratedDust(reader, network, number, due, each)
  const counts = Object.entries(Arr.groupBy(dust, ({ payment }) => payment))
  return {
    dust,
    more: new Set(counts.flatMap(([payment, all]) => (all.length < each ? [] : [payment as PaymentId]))),
    undated: yield* SecondEvidenceRepo.undated(reader, network, number, due)
  } satisfies SingleSourced
})

/** A provider's answers about single-sourced receipts. */
export interface SecondEvidence {
  /** Of the receipts that it has, its block times; of dust, that it lacks it although its head is high enough. */
  readonly answers: ReadonlyArray<readonly [ReceiptKey, Vote<CorroboratedReceipt>]>
  /**
   * Money without a transaction that its own balances show. Of other such money in `answers` it has the block and no
   * states.
   */
  readonly shown: ReadonlyArray<Undated>
}

const dustEvidence = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  dust: ReadonlyArray<Uncorroborated>
) {
  const found: Array<readonly [ReceiptKey, Vote<CorroboratedReceipt>]> = []
  for (const part of Arr.chunksOf(dust, receiptsPerBatch)) {
    const { answers } = yield* receiptEvidenceOf(provider, watch, part)
    for (const [receipt, answer] of answers) {
      const { address, blockHash, position } = receipt
      const dated = answer.is === "yes" ? yes({ address, blockHash, position, blockTime: answer.value.time }) : answer
      found.push([receipt, dated])
    }
  }
  return found
})

/** Dates money without a transaction by the provider's blocks, where it has them and does not deny the money. */
const undatedEvidence = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  undated: ReadonlyArray<Undated>,
  settled: BlockRef
) {
  const { client } = provider
  const numbers = [...new Set(undated.flatMap(({ blockNumber, since }) => [blockNumber, since ?? blockNumber]))]
  const headers = yield* Effect.forEach(
    Arr.chunksOf(numbers, headersPerBatch),
    (part) => sendBatch(client, part.map(findHeader)),
    { concurrency: 1 }
  )
  const byNumber = new Map(Arr.zip(numbers, headers.flat()))
  const answers: Array<readonly [ReceiptKey, Vote<CorroboratedReceipt>]> = []
  const shown: Array<Undated> = []
  for (const money of undated) {
    const { address, blockHash, blockNumber, position, since = blockNumber } = money
    const block = byNumber.get(blockNumber)
    const first = byNumber.get(since)
    if (block?.hash !== blockHash || first === undefined) continue
    const answer = yield* answerOf(watch, provider, { ...money, since }, settled)
    if (answer.is === "no") continue
    if (answer.is === "yes") shown.push(money)
    answers.push([money, yes({ address, blockHash, position, blockTime: block.time, sinceTime: first.time })])
  }
  return { answers, shown }
})

/**
 * Asks one provider about single-sourced receipts in blocks up to `settled`, a block with all its confirmations. Fails
 * with an `RpcError` where the provider gives no usable response.
 */
export const secondEvidenceOf = (
  watch: WatchContext,
  provider: Provider,
  { dust, undated }: SingleSourced,
  settled: BlockRef
) =>
  Effect.zipWith(
    dustEvidence(watch, provider, dust),
    undatedEvidence(watch, provider, undated, settled),
    (ofDust, { answers, shown }): SecondEvidence => ({ answers: [...ofDust, ...answers], shown })
  )

/** The responses of one search's providers about receipts of payments that are about to end. */
export class SearchBallot {
  /** Providers corroborate each other only with the same block times. */
  readonly #receipts = new Ballot<string, CorroboratedReceipt, Provider>(
    (one, other) => one.blockTime === other.blockTime && one.sinceTime === other.sinceTime
  )
  /** Whether money without a transaction came, by their own states. */
  readonly #amounts = new Ballot<string, true, Provider>()
  readonly #voters = new Set<Provider>()
  readonly #asked: SingleSourced

  constructor(asked: SingleSourced) {
    this.#asked = asked
  }

  add(by: Provider, { answers, shown }: SecondEvidence): void {
    this.#voters.add(by)
    for (const [receipt, answer] of answers) this.#receipts.vote(Ledger.keyOf(receipt), by, answer)
    for (const money of shown) this.#amounts.vote(Ledger.keyOf(money), by, yes(true))
  }

  /** The receipts that a quorum has, with its block times; those of the only provider where no other has responded. */
  get corroborated(): ReadonlyArray<CorroboratedReceipt> {
    const found = this.hasQuorum ? this.#receipts.shown : this.#receipts.claimed
    return found.flatMap(([, [receipt]]) => receipt ?? [])
  }

  /** The dust that a quorum denies. */
  get denied(): ReadonlyArray<Uncorroborated> {
    return this.#asked.dust.filter((one) => this.#tallyOf(one).outcome === "denied")
  }

  /** The payments with money whose block times no quorum reports, or dust about whose time two providers differ. */
  get undated(): ReadonlySet<PaymentId> {
    const undated = this.#asked.undated.filter((money) => this.#tallyOf(money).outcome !== "shown")
    const disputed = this.#asked.dust.filter((one) => {
      const { claims, outcome } = this.#tallyOf(one)
      return outcome === "open" && claims.length >= quorum
    })
    return new Set([...undated, ...disputed].map(({ payment }) => payment))
  }

  /**
   * Keys of the money without a transaction that no quorum shows by its own states: the provider that reported it may
   * have taken a state from another one. The only provider that has responded is enough.
   */
  get unshown(): ReadonlySet<string> {
    const needed = Math.min(this.#voters.size, quorum)
    const keys = this.#asked.undated.map(Ledger.keyOf)
    return new Set(keys.filter((key) => this.#amounts.tally(key).claims.length < needed))
  }

  /** No further provider is needed. */
  get isDecided(): boolean {
    const isDustDecided = this.#asked.dust.every((one) => this.#tallyOf(one).outcome !== "open")
    return this.hasQuorum && isDustDecided && this.undated.size === 0 && this.unshown.size === 0
  }

  /** Two providers have been searched. */
  get hasQuorum(): boolean {
    return this.#voters.size >= quorum
  }

  #tallyOf(receipt: ReceiptKey) {
    return this.#receipts.tally(Ledger.keyOf(receipt))
  }
}
