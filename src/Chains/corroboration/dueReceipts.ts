import { Array as Arr, Effect } from "effect"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"

/** Receipts that one tick reads from the ledger: this many of the newest, of the older ones in turn, and of dust in turn. */
const pageSize = 500
/** Transactions that one tick asks about: this many of the newest, of the older ones, and of dust. */
const transactionsPerPart = 100

const byTransaction = (receipts: ReadonlyArray<Uncorroborated>) =>
  Object.values(Arr.groupBy(receipts, (receipt) => receipt.txHash))

/** Some transactions of a page, and the receipt after which the next turn goes on; undefined where it begins again. */
const turnOf = (page: ReadonlyArray<Uncorroborated>, isOpen: (receipt: Uncorroborated) => boolean) => {
  const due = byTransaction(page.filter(isOpen)).slice(0, transactionsPerPart)
  const isCut = due.length === transactionsPerPart
  return { due, next: isCut ? due.at(-1)?.[0] : page.length < pageSize ? undefined : page.at(-1) }
}

/**
 * Selects the receipts that `corroborate.ts` asks about in one tick, in blocks up to `upTo` and where `isOpen`: the
 * newest, which are mostly real; older ones in turn, so that however many newer receipts a provider invents, every real
 * receipt gets its turn; and dust in turn, so that a flood of it delays no others. `any`: the ledger has uncorroborated
 * receipts at all.
 */
export const makeDueReceipts = ({ network, reader }: Pick<WatchContext, "network" | "reader">) => {
  /** The last older receipt, and the last dust, that had its turn. */
  let older: Uncorroborated | undefined
  let dust: Uncorroborated | undefined

  return Effect.fnUntraced(function* (upTo: number, isOpen: (receipt: Uncorroborated) => boolean) {
    const pageOf = (part: "listed" | "dust", after?: Uncorroborated) =>
      CorroborationRepo.uncorroborated(reader, network, part, upTo, pageSize, after)
    const newest = yield* pageOf("listed")
    const last = newest.length < pageSize ? undefined : newest.at(-1)
    const from = older !== undefined && last !== undefined && !CorroborationRepo.isNewer(older, last) ? older : last
    const olderTurn = turnOf(last === undefined ? [] : yield* pageOf("listed", from), isOpen)
    const dustPage = yield* pageOf("dust", dust)
    const dustTurn = turnOf(dustPage, isOpen)
    older = olderTurn.next
    dust = dustTurn.next
    const due = byTransaction(newest.filter(isOpen))
    const isWhole = due.length + olderTurn.due.length <= 2 * transactionsPerPart
    // Where all receipts are on the first page, its oldest are the older part.
    const rest = olderTurn.due.length > 0 ? olderTurn.due : due.slice(transactionsPerPart).slice(-transactionsPerPart)
    const listed = isWhole ? [...due, ...olderTurn.due] : [...due.slice(0, transactionsPerPart), ...rest]
    return { any: newest.length + dustPage.length > 0, asked: [...listed, ...dustTurn.due].flat() }
  })
}
