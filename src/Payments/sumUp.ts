import { Effect } from "effect"
import type { Mode } from "../Domain/Chain.ts"
import { isEnded, type Payment } from "../Domain/Payment.ts"
import type { DustKind, Receipt } from "../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../Sql.ts"
import * as Dust from "./DustRepo.ts"
import {
  type DustRules,
  type DustSum,
  dustKind,
  floorOf,
  isPaying,
  isSummable,
  listedPaying,
  listedStray
} from "./dust.ts"
import * as Receipts from "./ReceiptsRepo.ts"

// Brings the sums of an address's dust up to its receipts, before they are settled: inside the transaction that changed
// them. Whoever stores, orphans or corroborates a receipt need not know of sums; its row says by itself that it is not what
// was summed up.

/** Receipts that are held in memory at once. */
const page = 1_000

/** What decides about an owner's new receipts. */
interface Sorting {
  readonly owner: Receipts.ReceiptOwner
  /** It is too small to be settled by itself, however few there are. */
  readonly isSmall: (receipt: Receipt) => boolean
  /** How many of the receipt's currency are settled one by one. */
  readonly listed: (receipt: Receipt) => number
  readonly kindOf: (receipt: Receipt) => DustKind | "none"
  /** The payment has ended: none of a sum that begins now was there. */
  readonly ended: boolean
}

type SumKey = Pick<DustSum, "chain" | "currency" | "kind" | "corroborated">
const nameOf = ({ corroborated, chain, currency, kind }: SumKey): string =>
  `${chain} ${kind} ${corroborated} ${currency}`

/** Adds to the sums, or takes out of them, what has become of one receipt. */
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
  if (kind === undefined || kind === "none") return
  if (summed !== undefined) {
    const name = nameOf({ chain, kind, corroborated: summed.corroborated, currency: summed.currency })
    const sum = sums.get(name)
    if (sum !== undefined) {
      const orphaned = canonical ? sum.orphaned : Math.max(sum.orphaned ?? 0, blockNumber)
      sums.set(name, { ...sum, transfers: sum.transfers - 1, amount: sum.amount - summed.amount, orphaned })
    }
  }
  if (!canonical) return
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
  { ended, isSmall, kindOf, listed: mayBeListed, owner }: Sorting,
  stored: Effect.Effect<ReadonlyArray<DustSum>, StoreUnavailable>
) {
  const tx = yield* Tx
  const before = new Map<string, DustSum>()
  const sums = new Map<string, DustSum>()
  const listed = new Map<string, number>()

  /** What a receipt that nobody has looked at is settled as. */
  const sort = Effect.fnUntraced(function* (receipt: Receipts.Unsettled) {
    if (receipt.replaces !== undefined) {
      const { kind } = receipt.replaces
      // What was on time stays so when a reorg mines it later; what was late may be on time now.
      return kind === "late" ? kindOf(receipt) : kind
    }
    if (!isSummable(receipt)) return undefined
    if (isSmall(receipt)) return kindOf(receipt)
    const { currency } = receipt
    const limit = mayBeListed(receipt)
    const name = `${limit} ${currency}`
    const count = listed.get(name) ?? (yield* Receipts.countListed(tx, owner, currency, limit))
    listed.set(name, count + 1)
    return count < limit ? undefined : kindOf(receipt)
  })

  while (true) {
    const receipts = yield* Receipts.unsettledOfOwner(tx, owner, page)
    if (receipts.length > 0 && before.size === 0) {
      for (const sum of yield* stored) {
        before.set(nameOf(sum), sum)
        sums.set(nameOf(sum), sum)
      }
    }
    const settled = yield* Effect.forEach(
      receipts,
      (receipt) =>
        receipt.isNew ? Effect.map(sort(receipt), (kind) => ({ ...receipt, kind })) : Effect.succeed(receipt),
      { concurrency: 1 }
    )
    for (const receipt of settled) book(sums, receipt, ended)
    if (settled.length > 0) yield* Receipts.setSettled(settled)
    if (receipts.length < page) break
  }
  for (const [name, sum] of sums) if (before.get(name) !== sum) yield* Dust.keep(sum)
})

/** Brings the sums of a payment's dust up to its receipts. */
export const sumUp = (payment: Payment, rules: DustRules) =>
  Effect.flatMap(Tx, (tx) => {
    const floor = floorOf(payment, rules)
    return sumUpWith(
      {
        owner: { payment: payment.id },
        isSmall: (receipt) => isPaying(payment, receipt) && receipt.amount < floor,
        listed: (receipt) => (isPaying(payment, receipt) ? listedPaying : listedStray),
        kindOf: (receipt) => dustKind(payment, receipt, rules),
        ended: isEnded(payment.status)
      },
      Dust.ofPayment(tx, payment.id)
    )
  })

/** The same for an address, in lower case, whose payment is lost. */
export const sumUpLost = (address: string, mode: Mode) =>
  Effect.flatMap(Tx, (tx) =>
    sumUpWith(
      {
        owner: { payment: undefined, address },
        isSmall: () => false,
        listed: () => listedStray,
        kindOf: () => "stray",
        ended: false
      },
      Dust.ofLost(tx, address, mode)
    )
  )
