import { Array as Arr, Effect } from "effect"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"

/** Receipts that one tick reads from the ledger: this many of the newest, and this many of the older ones in turn. */
const pageSize = 500
/** Transactions that one tick asks about: this many of the newest, and this many of the older ones. */
const transactionsPerHalf = 100

const byTransaction = (receipts: ReadonlyArray<Uncorroborated>) =>
  Object.values(Arr.groupBy(receipts, (receipt) => receipt.txHash))

/**
 * Selects the receipts that `corroborate.ts` asks about in one tick, in blocks up to `upTo` and where `isOpen`. One
 * half are the newest, which are mostly real. The other half are older ones in turn: however many newer receipts a
 * provider invents, every real receipt gets its turn. `any`: the ledger has uncorroborated receipts at all.
 */
export const makeDueReceipts = ({ network, reader }: Pick<WatchContext, "network" | "reader">) => {
  /** The last older receipt that had its turn. */
  let cursor: Uncorroborated | undefined

  /** A page of the newest receipts, and a page of older ones from the cursor on. */
  const candidates = Effect.fnUntraced(function* (upTo: number) {
    const newest = yield* CorroborationRepo.uncorroborated(reader, network, upTo, pageSize)
    const last = newest.at(-1)
    if (last === undefined || newest.length < pageSize) return { newest, older: [] }
    const from = cursor === undefined || CorroborationRepo.isNewer(cursor, last) ? last : cursor
    return { newest, older: yield* CorroborationRepo.uncorroborated(reader, network, upTo, pageSize, from) }
  })

  return Effect.fnUntraced(function* (upTo: number, isOpen: (receipt: Uncorroborated) => boolean) {
    const { newest, older } = yield* candidates(upTo)
    const due = byTransaction(newest.filter(isOpen))
    const dueOlder = byTransaction(older.filter(isOpen)).slice(0, transactionsPerHalf)
    const isCut = dueOlder.length === transactionsPerHalf
    cursor = isCut ? dueOlder.at(-1)?.[0] : older.length < pageSize ? undefined : older.at(-1)
    if (due.length + dueOlder.length <= 2 * transactionsPerHalf)
      return { any: newest.length > 0, asked: [...due, ...dueOlder].flat() }
    // Where all receipts are on the first page, its oldest are the older half.
    const rest = dueOlder.length > 0 ? dueOlder : due.slice(transactionsPerHalf).slice(-transactionsPerHalf)
    return { any: true, asked: [...due.slice(0, transactionsPerHalf), ...rest].flat() }
  })
}
