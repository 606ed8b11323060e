import { Array as Arr, Effect } from "effect"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as AgreementRepo from "./CorroborationRepo.ts"
import { verdictOf } from "./corroborateBalances.ts"
import { quorum } from "./QuorumCount.ts"
import { receiptEvidenceOf } from "./receiptEvidence.ts"
import type { Due } from "./SearchesRepo.ts"
import type { CorroboratedReceipt, Undated } from "./SecondEvidenceRepo.ts"
import * as VouchingRepo from "./SecondEvidenceRepo.ts"

// The agreement asks about each transfer that one provider tells of, but for dust and for money without a transaction.
// They say how a payment ends all the same: before it does, the search asks about them.

/** Dust receipts that are asked about one by one, shared among the payments; of more of it the logs may tell. */
const dustAtOnce = 1_000
/** Of these in one batch, with up to three calls each. */
const receiptsPerBatch = 32
/** Headers in one batch; providers allow from 100 calls up. */
const headersPerBatch = 100

/** What one provider alone has told of payments that are to end. */
export interface SingleSourced {
  readonly dust: ReadonlyArray<Uncorroborated>
  readonly undated: ReadonlyArray<Undated>
}

export const singleSourcedOf = Effect.fnUntraced(function* (
  { network, reader }: WatchContext,
  due: ReadonlyArray<Due>,
  { number }: BlockRef
) {
  const each = Math.max(1, Math.floor(dustAtOnce / due.length))
  return {
    dust: yield* AgreementRepo.uncorroboratedDust(reader, network, number, due, each),
    undated: yield* VouchingRepo.undated(reader, network, number, due)
  } satisfies SingleSourced
})

/** What a provider says of what one alone has told. */
export interface SecondEvidence {
  /** What it has as well. */
  readonly corroborated: ReadonlyArray<CorroboratedReceipt>
  /** Money without a transaction that its balances show. Of the rest of it that it vouches for it has the block, and no states. */
  readonly shown: ReadonlyArray<Undated>
  /** Dust that it does not have, in a block as deep as the confirmations. */
  readonly lacks: ReadonlyArray<Uncorroborated>
}

const ofDust = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  dust: ReadonlyArray<Uncorroborated>
) {
  const found: Array<CorroboratedReceipt> = []
  const lacking: Array<Uncorroborated> = []
  for (const part of Arr.chunksOf(dust, receiptsPerBatch)) {
    const { has, lacks, times } = yield* receiptEvidenceOf(provider, watch, part)
    lacking.push(...lacks)
    for (const { address, blockHash, position } of has) {
      const blockTime = times.get(blockHash)
      if (blockTime !== undefined) found.push({ address, blockHash, position, blockTime })
    }
  }
  return { corroborated: found, lacks: lacking }
})

/** Money without a transaction with the times of its blocks, where the provider has them and does not deny the money. */
const date = Effect.fnUntraced(function* (
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

/** What a provider says of these receipts, in blocks up to `settled`. */
export const secondEvidenceOf = (
  watch: WatchContext,
  provider: Provider,
  { dust, undated }: SingleSourced,
  settled: BlockRef
) =>
  Effect.zipWith(
    ofDust(watch, provider, dust),
    date(watch, provider, undated, settled),
    ({ lacks, corroborated }, { dated, shown }): SecondEvidence => ({
      corroborated: [...corroborated, ...dated],
      shown,
      lacks
    })
  )

const nameOf = (one: CorroboratedReceipt) => `${Ledger.keyOf(one)} ${one.blockTime} ${one.sinceTime ?? ""}`

/** What two of the providers vouch for alike, the times included. */
export const corroboratedByTwo = (
  told: ReadonlyArray<ReadonlyArray<CorroboratedReceipt>>
): ReadonlyArray<CorroboratedReceipt> => {
  const counts = new Map<string, number>()
  return told
    .flatMap((one) => [...new Map(one.map((receipt) => [nameOf(receipt), receipt])).values()])
    .filter((receipt) => {
      const count = (counts.get(nameOf(receipt)) ?? 0) + 1
      counts.set(nameOf(receipt), count)
      return count === quorum
    })
}

/** The dust that two of the providers do not have. */
export const deniedByTwo = (told: ReadonlyArray<SecondEvidence>): ReadonlyArray<Uncorroborated> => {
  const counts = new Map<Uncorroborated, number>()
  for (const { lacks } of told) for (const one of lacks) counts.set(one, (counts.get(one) ?? 0) + 1)
  return [...counts].flatMap(([one, count]) => (count >= quorum ? [one] : []))
}

/** Whether two of the providers say the same of all dust that one alone has told of. */
export const isDustDecided = (
  { dust }: SingleSourced,
  corroborated: ReadonlyArray<CorroboratedReceipt>,
  lacks: ReadonlyArray<Uncorroborated>
) => {
  const decided = new Set([...corroborated, ...lacks].map(Ledger.keyOf))
  return dust.every((one) => decided.has(Ledger.keyOf(one)))
}

/** The payments that have money of which it is not corroborated when it came. */
export const undatedAmong = (
  { undated }: SingleSourced,
  corroborated: ReadonlyArray<CorroboratedReceipt>
): ReadonlySet<PaymentId> => {
  const dated = new Set(corroborated.map(Ledger.keyOf))
  return new Set(undated.filter((one) => !dated.has(Ledger.keyOf(one))).map(({ payment }) => payment))
}

/**
 * Keys of the money without a transaction that fewer than two providers show by their own states: who told of it may have
 * had a state from another one. Where only one is left to tell, its word stands.
 */
export const unshownAmong = ({ undated }: SingleSourced, told: ReadonlyArray<SecondEvidence>): ReadonlySet<string> => {
  const needed = Math.min(told.length, quorum)
  const isShown = (money: Undated) => told.filter(({ shown }) => shown.includes(money)).length >= needed
  return new Set(undated.filter((money) => !isShown(money)).map(Ledger.keyOf))
}
