/**
 * Upper bounds of an address's native income, from balances: `tilld claim` must not credit a transaction whose money
 * the ledger already has under another transaction, or unattributed.
 */
import { Effect, Either } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { Db } from "../../Sql.ts"
import type { Provider } from "../providers/Providers.ts"
import { balanceAt, nonceAt } from "../rpc/balanceMethods.ts"
import { isCapabilityRefused } from "../rpc/capabilities.ts"
import { type BlockHeader, getFullBlock, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { decodeTransaction, getTransactionOutcome, type Transaction } from "../rpc/transactionMethods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { spent } from "./attribution.ts"
import * as Income from "./IncomeRepo.ts"
import { movesOf, receivedBy } from "./internalTransfers.ts"

/** The transactions that an address sent in a block. */
const sentBy = (address: string, transactions: ReadonlyArray<unknown>): ReadonlyArray<Transaction> =>
  transactions.flatMap((raw) => {
    const decoded = decodeTransaction(raw)
    return Either.isRight(decoded) && decoded.right.from === address ? [decoded.right] : []
  })

/** The income of an address in one block, wei: the change of its balance plus what it spent there. */
const incomeIn = Effect.fnUntraced(function* (client: RpcClient, address: string, { hash, number, time }: BlockHeader) {
  const block = { hash, number, time }
  const [before, nonceBefore, after, nonceAfter] = yield* sendBatch(client, [
    balanceAt(address, number - 1),
    nonceAt(address, number - 1),
    balanceAt(address, block),
    nonceAt(address, block)
  ])
  if (nonceBefore === nonceAfter) return after - before
  const [{ transactions }] = yield* sendBatch(client, [getFullBlock(number)])
  const sent = sentBy(address, transactions)
  const outcomes = yield* sendBatch(
    client,
    sent.map((one) => getTransactionOutcome(one.hash))
  )
  return after - before + spent(address, sent, new Map(outcomes.map((outcome) => [outcome.hash, outcome])))
})

/**
 * The income between the stored balance points around a block; undefined without them, or where the address has spent.
 */
const betweenPoints = (reader: Db, network: Network, address: string, { number }: BlockHeader) =>
  Effect.map(Income.pointsAround(reader, network, address, number), (points): Income.AddressIncome | undefined => {
    if (points === undefined || points.before.nonce !== points.after.nonce) return undefined
    const { after, before } = points
    return { address, after: before.number, upTo: after.number, amount: after.balance - before.balance }
  })

/** The income of an address in one block; undefined where no provider that was asked has its states any more. */
const ofBlock = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  address: string,
  header: BlockHeader
) {
  for (const asked of [provider, yield* watch.providers.other(provider)]) {
    if (asked === undefined) continue
    const amount = yield* Effect.catchIf(incomeIn(asked.client, address, header), isCapabilityRefused, () =>
      Effect.succeed(undefined)
    )
    if (amount === undefined) continue
    return { address, after: header.number - 1, upTo: header.number, amount } satisfies Income.AddressIncome
  }
  return undefined
})

/**
 * The bounds of an address's income in a block, and between the balance points around it, for a claim of the
 * transaction `hash`; empty where neither is known. Without traces, reconciliation may have attributed the income of
 * several transactions to one, and without states that of several blocks: each bound says what the other transactions
 * really transferred, as far as traces show it.
 */
export const incomeBoundsOf = Effect.fn("Balances.incomeBoundsOf")(function* (
  watch: WatchContext,
  provider: Provider,
  address: string,
  header: BlockHeader,
  hash: string
) {
  const bounds: Array<Income.IncomeBound> = []
  const incomes = [
    yield* ofBlock(watch, provider, address, header),
    yield* betweenPoints(watch.reader, watch.network, address, header)
  ]
  for (const income of incomes) {
    if (income === undefined) continue
    const transferred: Array<Income.IncomePart> = []
    for (const part of yield* Income.partsOf(watch.reader, watch.network, income)) {
      if (part.txHash === hash || !part.position.startsWith("call:")) continue
      const moves = yield* movesOf(watch, provider, part.txHash)
      if (moves !== undefined) transferred.push({ ...part, amount: receivedBy(address, moves) })
    }
    bounds.push({ ...income, transferred })
  }
  return bounds
})
