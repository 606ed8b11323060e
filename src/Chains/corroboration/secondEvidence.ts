import { Array as Arr, Effect } from "effect"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { quorum } from "../evidence/Ballot.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"
import { verdictOf } from "./corroborateBalances.ts"
import { receiptEvidenceOf } from "./receiptEvidence.ts"
import type { DuePayment } from "./SearchesRepo.ts"
import type { CorroboratedReceipt, Undated } from "./SecondEvidenceRepo.ts"
import * as SecondEvidenceRepo from "./SecondEvidenceRepo.ts"

/**
 * A second provider's evidence about receipts that only one provider has reported, where `corroborate.ts` does not ask:
 * dust, and money without a transaction (unattributed). Both can decide how a payment ends, so the search before the
 * end asks about them: `singleSourcedOf` lists them, `secondEvidenceOf` asks one provider, the functions below combine
 * the evidence of several. Called by `endingSearch.ts` and `searchProvider.ts`.
 */

/** Dust receipts that one search asks about, divided among its payments; the logs may cover the others. */
const dustAtOnce = 1_000
/** Dust receipts in one batch, with up to three calls each. */
const receiptsPerBatch = 32
/** Headers in one batch; providers allow batches of 100 calls or more. */
const headersPerBatch = 100

/** Receipts of payments that are about to end that a single provider has reported. */
export interface SingleSourced {
  readonly dust: ReadonlyArray<Uncorroborated>
  readonly undated: ReadonlyArray<Undated>
}

/** Reads from the ledger what a single provider has reported of these payments, in blocks up to the given one. */
export const singleSourcedOf = Effect.fnUntraced(function* (
  { network, reader }: WatchContext,
  due: ReadonlyArray<DuePayment>,
  { number }: BlockRef
) {
  const each = Math.max(1, Math.floor(dustAtOnce / due.length))
  return {
    dust: yield* CorroborationRepo.uncorroboratedDust(reader, network, number, due, each),
    undated: yield* SecondEvidenceRepo.undated(reader, network, number, due)
  } satisfies SingleSourced
})

/** A provider's evidence about single-sourced receipts. */
export interface SecondEvidence {
  /** What it has as well, with its block times. */
  readonly corroborated: ReadonlyArray<CorroboratedReceipt>
  /**
   * Money without a transaction that its own balances show. Of other such money in `corroborated` it has the block and
   * no states.
   */
  readonly shown: ReadonlyArray<Undated>
  /** Dust that it does not have, although its head is high enough for the confirmations. */
  readonly lacks: ReadonlyArray<Uncorroborated>
}

const dustEvidence = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  dust: ReadonlyArray<Uncorroborated>
) {
  const found: Array<CorroboratedReceipt> = []
  const lacking: Array<Uncorroborated> = []
  for (const part of Arr.chunksOf(dust, receiptsPerBatch)) {
    const { answers } = yield* receiptEvidenceOf(provider, watch, part)
    for (const [receipt, answer] of answers) {
      const { address, blockHash, position } = receipt
      if (answer.is === "yes") found.push({ address, blockHash, position, blockTime: answer.value.time })
      else if (answer.is === "no") lacking.push(receipt)
    }
  }
  return { corroborated: found, lacks: lacking }
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
  const dated: Array<CorroboratedReceipt> = []
  const shown: Array<Undated> = []
  for (const money of undated) {
    const { address, blockHash, blockNumber, position, since = blockNumber } = money
    const block = byNumber.get(blockNumber)
    const first = byNumber.get(since)
    if (block?.hash !== blockHash || first === undefined) continue
    const verdict = yield* verdictOf(watch, provider, { ...money, since }, settled)
    if (verdict === "denied") continue
    if (verdict === "corroborated") shown.push(money)
    dated.push({ address, blockHash, position, blockTime: block.time, sinceTime: first.time })
  }
  return { dated, shown }
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
    ({ lacks, corroborated }, { dated, shown }): SecondEvidence => ({
      corroborated: [...corroborated, ...dated],
      shown,
      lacks
    })
  )

/** The receipt and its block times: providers corroborate each other only where both are equal. */
const datedKeyOf = (receipt: CorroboratedReceipt) =>
  `${Ledger.keyOf(receipt)} ${receipt.blockTime} ${receipt.sinceTime ?? ""}`

/** The receipts that two of the providers corroborate, with the same block times. Takes one list per provider. */
export const corroboratedByTwo = (
  reported: ReadonlyArray<ReadonlyArray<CorroboratedReceipt>>
): ReadonlyArray<CorroboratedReceipt> => {
  const counts = new Map<string, number>()
  return reported
    .flatMap((receipts) => [...new Map(receipts.map((receipt) => [datedKeyOf(receipt), receipt])).values()])
    .filter((receipt) => {
      const count = (counts.get(datedKeyOf(receipt)) ?? 0) + 1
      counts.set(datedKeyOf(receipt), count)
      return count === quorum
    })
}

/** The dust that two of the providers deny. */
export const deniedByTwo = (evidence: ReadonlyArray<SecondEvidence>): ReadonlyArray<Uncorroborated> => {
  const counts = new Map<Uncorroborated, number>()
  for (const { lacks } of evidence) for (const receipt of lacks) counts.set(receipt, (counts.get(receipt) ?? 0) + 1)
  return [...counts].flatMap(([receipt, count]) => (count >= quorum ? [receipt] : []))
}

/** Whether two providers have corroborated or denied each single-sourced dust receipt. */
export const isDustDecided = (
  { dust }: SingleSourced,
  corroborated: ReadonlyArray<CorroboratedReceipt>,
  lacks: ReadonlyArray<Uncorroborated>
) => {
  const decided = new Set([...corroborated, ...lacks].map(Ledger.keyOf))
  return dust.every((one) => decided.has(Ledger.keyOf(one)))
}

/** The payments with money whose block times are not corroborated. */
export const undatedAmong = (
  { undated }: SingleSourced,
  corroborated: ReadonlyArray<CorroboratedReceipt>
): ReadonlySet<PaymentId> => {
  const dated = new Set(corroborated.map(Ledger.keyOf))
  return new Set(undated.filter((one) => !dated.has(Ledger.keyOf(one))).map(({ payment }) => payment))
}

/**
 * Keys of the money without a transaction that fewer than two providers show by their own states: the provider that
 * reported it may have taken a state from another one. Where a single provider responded, that one is enough.
 */
export const unshownAmong = (
  { undated }: SingleSourced,
  evidence: ReadonlyArray<SecondEvidence>
): ReadonlySet<string> => {
  const needed = Math.min(evidence.length, quorum)
  const isShown = (money: Undated) => evidence.filter(({ shown }) => shown.includes(money)).length >= needed
  return new Set(undated.filter((money) => !isShown(money)).map(Ledger.keyOf))
}
