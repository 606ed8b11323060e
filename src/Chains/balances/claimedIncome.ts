/**
 * For `tilld claim`: the internal transfers of a transaction, which no log shows, and upper bounds of an address's
 * native income: the ledger may already have the money under another transaction, or unattributed.
 */
import { Array as Arr, Effect, Either } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import type { Provider } from "../providers/Providers.ts"
import { balanceAt, type Move, nonceAt, traceTransaction } from "../rpc/balanceMethods.ts"
import { isCapabilityRefused, mayBeCapable } from "../rpc/capabilities.ts"
import { type BlockHeader, getFullBlock, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { decodeTransaction, getTransactionOutcome } from "../rpc/transactionMethods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { plainTransfer, receivedBy, spent, traced } from "./attribution.ts"
import * as Income from "./IncomeRepo.ts"

/** All moves of coins by a transaction, its own value included; undefined where neither of two providers traces it. */
const movesOf = Effect.fn("Balances.movesOf")(function* (
  { providers }: WatchContext,
  provider: Provider,
  hash: string
) {
  for (const asked of [provider, yield* providers.other(provider)]) {
    if (asked === undefined || !(yield* mayBeCapable(asked.client, "trace"))) continue
    const moves = yield* Effect.either(sendBatch(asked.client, [traceTransaction(hash)]))
    if (Either.isRight(moves)) return moves.right[0]
  }
  return undefined
})

/**
 * The internal transfers of a successful transaction, without its own value; undefined where neither of two providers
 * traces it.
 *
 * @param raw the transaction as the node returns it
 */
export const internalMoves = Effect.fnUntraced(function* (watch: WatchContext, provider: Provider, raw: unknown) {
  const decoded = decodeTransaction(raw)
  if (Either.isLeft(decoded)) return undefined
  const { from, gas, hash, to, value } = decoded.right
  if (gas <= plainTransfer) return []
  const moves = yield* movesOf(watch, provider, hash)
  const own = moves?.findIndex((move) => move.from === from && move.to === to && move.amount === value)
  return moves?.filter((_, i) => i !== own)
})

/** The receipts of internal transfers to the addresses `ours`: one per address. Transfers to itself do not count. */
export const internalReceipts = (
  { network: { chain } }: WatchContext,
  hash: string,
  block: BlockHeader,
  moves: ReadonlyArray<Move>,
  ours: Iterable<string>
) => [...ours].flatMap((address) => traced({ address, currency: nativeToken(chain) }, [[{ hash, block }, moves]]))

/** The income of an address in one block, wei: the change of its balance plus what it spent there. */
const incomeIn = Effect.fnUntraced(function* (client: RpcClient, address: string, block: BlockHeader) {
  const [before, nonceBefore, after, nonceAfter] = yield* sendBatch(client, [
    balanceAt(address, block.number - 1),
    nonceAt(address, block.number - 1),
    balanceAt(address, block),
    nonceAt(address, block)
  ])
  if (nonceBefore === nonceAfter) return after - before
  const [{ transactions }] = yield* sendBatch(client, [getFullBlock(block.number)])
  const sent = Arr.getRights(transactions.map(decodeTransaction)).filter(({ from }) => from === address)
  const calls = sent.map(({ hash }) => getTransactionOutcome(hash))
  const outcomes = yield* sendBatch(client, calls)
  return after - before + spent(address, sent, new Map(outcomes.map((outcome) => [outcome.transactionHash, outcome])))
})

/** The income of an address in one block; undefined where no provider that was asked has its states any more. */
const ofBlock = Effect.fnUntraced(function* (
  { providers }: WatchContext,
  provider: Provider,
  address: string,
  header: BlockHeader
) {
  for (const asked of [provider, yield* providers.other(provider)]) {
    if (asked === undefined) continue
    const read = incomeIn(asked.client, address, header)
    const amount = yield* Effect.catchIf(read, isCapabilityRefused, () => Effect.succeed(undefined))
    if (amount !== undefined) return { address, after: header.number - 1, upTo: header.number, amount }
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
  const { network, reader } = watch
  const incomes = [
    yield* ofBlock(watch, provider, address, header),
    yield* Income.incomeAround(reader, network, address, header.number)
  ]
  for (const income of incomes.filter((one) => one !== undefined)) {
    const transferred: Array<Income.IncomePart> = []
    for (const part of yield* Income.partsOf(reader, network, income)) {
      if (part.txHash === hash || !part.position.startsWith("call:")) continue
      const moves = yield* movesOf(watch, provider, part.txHash)
      if (moves !== undefined) transferred.push({ ...part, amount: receivedBy(address, moves) })
    }
    bounds.push({ ...income, transferred })
  }
  return bounds
})
