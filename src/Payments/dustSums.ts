/**
 * Brings the dust sums of an address up to date with its receipts, before they are settled, inside the transaction that
 * changed them. Code that stores, orphans or corroborates a receipt need not know of sums: the row itself shows
 * (`unsettled`) that it differs from what was summed up. Settlement calls this for payments, `syncUnknown` for
 * addresses whose payment is lost.
 */
import { type BigDecimal, Effect } from "effect"
import type { Mode } from "../Domain/Chain.ts"
import { isEnded, type Payment } from "../Domain/Payment.ts"
import type { DustKind, Receipt } from "../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../Sql.ts"
import { sponsorOf } from "./addresses/WalletsRepo.ts"
import * as Dust from "./DustRepo.ts"
import { type DustSum, dustKind, floorOf, isPaying, isSummable, listedPaying, listedStray } from "./dust.ts"
import { withoutSponsored } from "./gas.ts"
import * as Receipts from "./ReceiptsRepo.ts"

/** Receipts held in memory at once. */
const page = 1_000

/** The rules by which new receipts are summed up or listed, that is settled one by one. */
interface Sorting {
  readonly owner: Receipts.ReceiptOwner
  /** Too small to be listed, however few there are. */
  readonly isSmall: (receipt: Receipt) => boolean
  /** How many receipts of this one's currency are listed at most. */
  readonly listedLimit: (receipt: Receipt) => number
  readonly kindOf: (receipt: Receipt) => DustKind | "none"
  /** The payment has ended: a sum that begins now had nothing at that time. */
  readonly ended: boolean
}

type SumKey = Pick<DustSum, "chain" | "currency" | "kind" | "corroborated">
const nameOf = ({ corroborated, chain, currency, kind }: SumKey): string =>
  `${chain} ${kind} ${corroborated} ${currency}`

/** Subtracts a receipt's former share from the sums, and adds the receipt as it is now. */
const book = (sums: Map<string, DustSum>, receipt: Receipts.Unsettled, ended: boolean): void => {
  const {
    address,
    amount,
    blockNumber,
    blockTime,
    canonical,
    chain,
    kind,
    mode,
    payment,
    summed,
    txHash = ""
  } = receipt
  if (summed !== undefined) {
    const name = nameOf({ ...summed, chain })
    const sum = sums.get(name)
    if (sum !== undefined) {
      const orphaned = canonical ? sum.orphaned : Math.max(sum.orphaned ?? 0, blockNumber)
      sums.set(name, { ...sum, transfers: sum.transfers - 1, amount: sum.amount - summed.amount, orphaned })
    }
  }
  if (kind === undefined || kind === "none" || !canonical) return
  const { corroborated, currency } = receipt
  const name = nameOf({ chain, kind, corroborated, currency })
  const sum: DustSum = sums.get(name) ?? {
    ...{ address, mode, chain, currency, kind, corroborated, payment },
    transfers: 0,
    amount: 0n,
    newest: { number: blockNumber, time: blockTime },
    orphaned: undefined,
    txHash,
    decided: ended ? 0n : undefined
  }
  sums.set(name, {
    ...sum,
    transfers: sum.transfers + 1,
    amount: sum.amount + amount,
    newest:
      sum.transfers === 0 || blockNumber > sum.newest.number ? { number: blockNumber, time: blockTime } : sum.newest,
    txHash: sum.transfers === 0 ? txHash : sum.txHash
  })
}

const sumUpWith = Effect.fnUntraced(function* (
  { ended, isSmall, kindOf, listedLimit, owner }: Sorting,
  stored: Effect.Effect<ReadonlyArray<DustSum>, StoreUnavailable>
) {
  const tx = yield* Tx
  const before = new Map<string, DustSum>()
  const sums = new Map<string, DustSum>()
  const listed = new Map<string, number>()
  let sponsor: string | undefined

  /** The kind of a new receipt; undefined where it is listed. */
  const sort = Effect.fnUntraced(function* (receipt: Receipts.Unsettled) {
    if (receipt.replaces !== undefined) {
      const { kind } = receipt.replaces
      // Money that was on time stays so when a reorg mines it later; money that was late may be on time now.
      return kind === "late" ? kindOf(receipt) : kind
    }
    // A sum has no sender: the sponsor's coin, which pays for nothing, would be a customer's.
    if (!isSummable(receipt) || withoutSponsored([receipt], sponsor).length === 0) return undefined
    if (isSmall(receipt)) return kindOf(receipt)
    const { currency } = receipt
    const limit = listedLimit(receipt)
    const name = `${limit} ${currency}`
    const count = listed.get(name) ?? (yield* Receipts.countListed(tx, owner, currency, limit))
    listed.set(name, count + 1)
    return count < limit ? undefined : kindOf(receipt)
  })

  /** Dust is on time or late by what one provider says, until a second one has it: then by what both say. */
  const sortAgain = (receipt: Receipts.Unsettled) => {
    const { corroborated, kind, replaces, summed } = receipt
    const isFirst = corroborated && summed?.corroborated === false && kind !== "stray"
    return isFirst && (replaces?.kind ?? "late") === "late" ? kindOf(receipt) : kind
  }

  while (true) {
    const receipts = yield* Receipts.unsettledOfOwner(tx, owner, page)
    if (receipts.length > 0 && before.size === 0) {
      sponsor = yield* sponsorOf(tx, owner.payment === undefined ? owner.address : owner.payment)
      for (const sum of yield* stored) {
        before.set(nameOf(sum), sum)
        sums.set(nameOf(sum), sum)
      }
    }
    const settled = yield* Effect.forEach(
      receipts,
      (receipt) =>
        Effect.map(receipt.isNew ? sort(receipt) : Effect.succeed(sortAgain(receipt)), (kind) => ({
          ...receipt,
          kind
        })),
      { concurrency: 1 }
    )
    for (const receipt of settled) book(sums, receipt, ended)
    if (settled.length > 0) yield* Receipts.setSettled(settled)
    if (receipts.length < page) break
  }
  for (const [name, sum] of sums) if (before.get(name) !== sum) yield* Dust.keep(sum)
})

/** Brings the dust sums of a payment up to date with its receipts; see `floorOf`. */
export const sumUp = (payment: Payment, floorUsd: BigDecimal.BigDecimal) =>
  Effect.flatMap(Tx, (tx) => {
    const floor = floorOf(payment, floorUsd)
    return sumUpWith(
      {
        owner: { payment: payment.id },
        isSmall: (receipt) => isPaying(payment, receipt) && receipt.amount < floor,
        listedLimit: (receipt) => (isPaying(payment, receipt) ? listedPaying : listedStray),
        kindOf: (receipt) => dustKind(payment, receipt),
        ended: isEnded(payment.status)
      },
      Dust.ofPayment(tx, payment.id)
    )
  })

/** The same for an address (lower case) whose payment is lost. */
export const sumUpLost = (address: string, mode: Mode) =>
  Effect.flatMap(Tx, (tx) =>
    sumUpWith(
      {
        owner: { payment: undefined, address },
        isSmall: () => false,
        listedLimit: () => listedStray,
        kindOf: () => "stray",
        ended: false
      },
      Dust.ofLost(tx, address, mode)
    )
  )
