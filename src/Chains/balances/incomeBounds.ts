import { Effect, Either } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { Db } from "../../Sql.ts"
import type { Provider } from "../providers/Providers.ts"
import {
  balanceAt,
  decodeTransaction,
  getTransactionOutcome,
  nonceAt,
  type Transaction
} from "../rpc/balanceMethods.ts"
import { isCapabilityRefused } from "../rpc/capabilities.ts"
import { type BlockHeader, getFullBlock, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
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

/** What came to an address with one block: what it holds more, and what it has spent there. */
const withBlock = Effect.fnUntraced(function* (
  client: RpcClient,
  address: string,
  { hash, number, time }: BlockHeader
) {
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

/** What came to an address in the blocks between two known balances; undefined where it has spent there, or none is known. */
const betweenPoints = (reader: Db, network: Network, address: string, { number }: BlockHeader) =>
  Effect.map(Income.pointsAround(reader, network, address, number), (points): Income.AddressIncome | undefined => {
    if (points === undefined || points.before.nonce !== points.after.nonce) return undefined
    const { after, before } = points
    return { address, after: before.number, upTo: after.number, amount: after.balance - before.balance }
  })

/** All of the chain's coin that came to an address with a block; undefined where nobody has its states any more. */
const ofBlock = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  address: string,
  header: BlockHeader
) {
  for (const asked of [provider, yield* watch.providers.other(provider)]) {
    if (asked === undefined) continue
    const amount = yield* Effect.catchIf(withBlock(asked.client, address, header), isCapabilityRefused, () =>
      Effect.succeed(undefined)
    )
    if (amount === undefined) continue
    return { address, after: header.number - 1, upTo: header.number, amount } satisfies Income.AddressIncome
  }
  return undefined
})

/**
 * What the ledger may have of an address's coins with a block and with the blocks around it, once the transaction `hash`
 * is in it; nothing where neither can be told. Where nobody could trace, one transaction may have been taken to have
 * brought the money of several, and where nobody had the states, of several blocks: what each of the others really
 * brought is told as far as it can be found out.
 */
export const incomeBoundsOf = Effect.fn("Chains.boundsOf")(function* (
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
    const brought: Array<Income.IncomePart> = []
    for (const part of yield* Income.partsOf(watch.reader, watch.network, income)) {
      if (part.txHash === hash || !part.position.startsWith("call:")) continue
      const moves = yield* movesOf(watch, provider, part.txHash)
      if (moves !== undefined) brought.push({ ...part, amount: receivedBy(address, moves) })
    }
    bounds.push({ ...income, brought })
  }
  return bounds
})
