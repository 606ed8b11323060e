import { Array as Arr, Effect } from "effect"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { Ballot, quorum, type Vote, yes } from "../evidence/Ballot.ts"
import type { ReceiptKey } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { answerOf } from "./corroborateBalances.ts"
import type { CorroboratedReceipt, Undated } from "./SecondEvidenceRepo.ts"

/**
 * A second provider's evidence about receipts that only one provider has reported, where `corroborate.ts` does not ask:
 * money without a transaction (unattributed). It can decide how a payment ends, so the search before the end asks about
 * it: `secondEvidenceOf` asks one provider, `SearchBallot` counts what several have answered. Called by `endingSearch.ts`
 * and `searchProvider.ts`.
 */

/** Headers in one batch; providers allow batches of 100 calls or more. */
const headersPerBatch = 100

/** A provider's answers about money without a transaction. */
export interface SecondEvidence {
  /** Of the receipts whose blocks it has, its block times. */
  readonly answers: ReadonlyArray<readonly [ReceiptKey, Vote<CorroboratedReceipt>]>
  /**
   * Money without a transaction that its own balances show. Of other such money in `answers` it has the block and no
   * states.
   */
  readonly shown: ReadonlyArray<Undated>
}

/**
 * Asks one provider about money without a transaction in blocks up to `settled`, a block with all its confirmations: dates
 * it by its blocks, where it has them and does not deny the money. Fails with an `RpcError` where the provider gives no
 * usable response.
 */
export const secondEvidenceOf = Effect.fnUntraced(function* (
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
  return { answers, shown } satisfies SecondEvidence
})

/** The responses of one search's providers about receipts of payments that are about to end. */
export class SearchBallot {
  /** Providers corroborate each other only with the same block times. */
  readonly #receipts = new Ballot<string, CorroboratedReceipt, Provider>(
    (one, other) => one.blockTime === other.blockTime && one.sinceTime === other.sinceTime
  )
  /** Whether money without a transaction came, by their own states. */
  readonly #amounts = new Ballot<string, true, Provider>()
  readonly #voters = new Set<Provider>()
  readonly #asked: ReadonlyArray<Undated>

  constructor(asked: ReadonlyArray<Undated>) {
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

  /** The payments with money whose block times no quorum reports. */
  get undated(): ReadonlySet<PaymentId> {
    const undated = this.#asked.filter((money) => this.#receipts.tally(Ledger.keyOf(money)).outcome !== "shown")
    return new Set(undated.map(({ payment }) => payment))
  }

  /**
   * Keys of the money without a transaction that no quorum shows by its own states: the provider that reported it may
   * have taken a state from another one. The only provider that has responded is enough.
   */
  get unshown(): ReadonlySet<string> {
    const needed = Math.min(this.#voters.size, quorum)
    const keys = this.#asked.map(Ledger.keyOf)
    return new Set(keys.filter((key) => this.#amounts.tally(key).claims.length < needed))
  }

  /** No further provider is needed. */
  get isDecided(): boolean {
    return this.hasQuorum && this.undated.size === 0 && this.unshown.size === 0
  }

  /** Two providers have been searched. */
  get hasQuorum(): boolean {
    return this.#voters.size >= quorum
  }
}
