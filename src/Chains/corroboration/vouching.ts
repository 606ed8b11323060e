import { Array as Arr, Effect } from "effect"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { sendBatch, findHeader } from "../rpc/calls.ts"
import type { Watch } from "../scan/watch.ts"
import type { Unagreed } from "./AgreementRepo.ts"
import * as AgreementRepo from "./AgreementRepo.ts"
import { verdictOf } from "./corroborateBalances.ts"
import type { Due } from "./SearchesRepo.ts"
import { testimonyOf } from "./testimony.ts"
import type { Undated, Vouched } from "./VouchingRepo.ts"
import * as VouchingRepo from "./VouchingRepo.ts"
import { quorum } from "./votes.ts"

// The agreement asks about each transfer that one provider tells of, but for dust and for money without a transaction.
// They say how a payment ends all the same: before it does, the search asks about them.

/** Dust receipts that are asked about one by one, shared among the payments; of more of it the logs may tell. */
const dustAtOnce = 1_000
/** Of these in one batch, with up to three calls each. */
const receiptsPerBatch = 32
/** Headers in one batch; providers allow from 100 calls up. */
const headersPerBatch = 100

/** What one provider alone has told of payments that are to end. */
export interface OneSided {
  readonly dust: ReadonlyArray<Unagreed>
  readonly undated: ReadonlyArray<Undated>
}

export const oneSidedOf = Effect.fnUntraced(function* (
  { network, reader }: Watch,
  due: ReadonlyArray<Due>,
  { number }: BlockRef
) {
  const each = Math.max(1, Math.floor(dustAtOnce / due.length))
  return {
    dust: yield* AgreementRepo.unagreedDust(reader, network, number, due, each),
    undated: yield* VouchingRepo.undated(reader, network, number, due)
  } satisfies OneSided
})

/** What a provider says of what one alone has told. */
export interface SecondWord {
  /** What it has as well. */
  readonly vouched: ReadonlyArray<Vouched>
  /** Money without a transaction that its balances show. Of the rest of it that it vouches for it has the block, and no states. */
  readonly shown: ReadonlyArray<Undated>
  /** Dust that it does not have, in a block as deep as the confirmations. */
  readonly lacks: ReadonlyArray<Unagreed>
}

const ofDust = Effect.fnUntraced(function* (watch: Watch, provider: Provider, dust: ReadonlyArray<Unagreed>) {
  const found: Array<Vouched> = []
  const lacking: Array<Unagreed> = []
  for (const part of Arr.chunksOf(dust, receiptsPerBatch)) {
    const { has, lacks, times } = yield* testimonyOf(provider, watch, part)
    lacking.push(...lacks)
    for (const { address, blockHash, position } of has) {
      const blockTime = times.get(blockHash)
      if (blockTime !== undefined) found.push({ address, blockHash, position, blockTime })
    }
  }
  return { vouched: found, lacks: lacking }
})

/** Money without a transaction with the times of its blocks, where the provider has them and does not deny the money. */
const date = Effect.fnUntraced(function* (
  watch: Watch,
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
  const dated: Array<Vouched> = []
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
export const secondWord = (watch: Watch, provider: Provider, { dust, undated }: OneSided, settled: BlockRef) =>
  Effect.zipWith(
    ofDust(watch, provider, dust),
    date(watch, provider, undated, settled),
    ({ lacks, vouched }, { dated, shown }): SecondWord => ({
      vouched: [...vouched, ...dated],
      shown,
      lacks
    })
  )

const nameOf = (one: Vouched) => `${Ledger.keyOf(one)} ${one.blockTime} ${one.sinceTime ?? ""}`

/** What two of the providers vouch for alike, the times included. */
export const byTwo = (told: ReadonlyArray<ReadonlyArray<Vouched>>): ReadonlyArray<Vouched> => {
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
export const lackedByTwo = (told: ReadonlyArray<SecondWord>): ReadonlyArray<Unagreed> => {
  const counts = new Map<Unagreed, number>()
  for (const { lacks } of told) for (const one of lacks) counts.set(one, (counts.get(one) ?? 0) + 1)
  return [...counts].flatMap(([one, count]) => (count >= quorum ? [one] : []))
}

/** Whether two of the providers say the same of all dust that one alone has told of. */
export const isDustDecided = ({ dust }: OneSided, vouched: ReadonlyArray<Vouched>, lacks: ReadonlyArray<Unagreed>) => {
  const decided = new Set([...vouched, ...lacks].map(Ledger.keyOf))
  return dust.every((one) => decided.has(Ledger.keyOf(one)))
}

/** The payments that have money of which it is not agreed when it came. */
export const undatedAmong = ({ undated }: OneSided, vouched: ReadonlyArray<Vouched>): ReadonlySet<PaymentId> => {
  const dated = new Set(vouched.map(Ledger.keyOf))
  return new Set(undated.filter((one) => !dated.has(Ledger.keyOf(one))).map(({ payment }) => payment))
}

/**
 * Keys of the money without a transaction that fewer than two providers show by their own states: who told of it may have
 * had a state from another one. Where only one is left to tell, its word stands.
 */
export const unshownAmong = ({ undated }: OneSided, told: ReadonlyArray<SecondWord>): ReadonlySet<string> => {
  const needed = Math.min(told.length, quorum)
  const isShown = (money: Undated) => told.filter(({ shown }) => shown.includes(money)).length >= needed
  return new Set(undated.filter((money) => !isShown(money)).map(Ledger.keyOf))
}
