import { Array as Arr, Effect } from "effect"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"

/** Receipts of the ledger that one tick goes through: so many of the newest, and so many of the others in turn. */
const page = 500
/** Transactions of the newest, and of the others, that one tick asks about; the next ones wait for the next tick. */
const askedOfEach = 100

const byTransaction = (receipts: ReadonlyArray<Uncorroborated>) =>
  Object.values(Arr.groupBy(receipts, (receipt) => receipt.txHash))

/**
 * Which receipts one tick asks about, of those up to a block that may be asked about now: one half are the newest, since
 * they are mostly real, and the other half the older ones in turn: however many newer ones a provider invents, nobody's
 * money is left out.
 */
export const makeDueReceipts = ({ network, reader }: Pick<WatchContext, "network" | "reader">) => {
  /** The last of the older ones that had its turn. */
  let turn: Uncorroborated | undefined

  /** The newest ones, and the others, from the one on whose turn it is. */
  const candidates = Effect.fnUntraced(function* (upTo: number) {
    const newest = yield* CorroborationRepo.uncorroborated(reader, network, upTo, page)
    const last = newest.at(-1)
    if (last === undefined || newest.length < page) return { newest, others: [] }
    const from = turn === undefined || CorroborationRepo.isNewer(turn, last) ? last : turn
    return { newest, others: yield* CorroborationRepo.uncorroborated(reader, network, upTo, page, from) }
  })

  return Effect.fnUntraced(function* (upTo: number, isOpen: (receipt: Uncorroborated) => boolean) {
    const { newest, others } = yield* candidates(upTo)
    const due = byTransaction(newest.filter(isOpen))
    const older = byTransaction(others.filter(isOpen)).slice(0, askedOfEach)
    const isCut = older.length === askedOfEach
    turn = isCut ? older.at(-1)?.[0] : others.length < page ? undefined : others.at(-1)
    if (due.length + older.length <= 2 * askedOfEach)
      return { any: newest.length > 0, asked: [...due, ...older].flat() }
    // Where all are on one page, the oldest of them are the others.
    const rest = older.length > 0 ? older : due.slice(askedOfEach).slice(-askedOfEach)
    return { any: true, asked: [...due.slice(0, askedOfEach), ...rest].flat() }
  })
}
