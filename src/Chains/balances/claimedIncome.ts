/**
 * For `tilld claim`: the internal transfers of a transaction, which no log shows, and upper bounds of an address's
 * native income: the ledger may already have the money under another transaction, or unattributed.
 */
import { Array as Arr, Effect, Either } from "effect"
import type { Provider } from "../providers/Providers.ts"
import { traceTransaction } from "../rpc/balanceMethods.ts"
import { isCapabilityRefused, mayBeCapable } from "../rpc/capabilities.ts"
import { type BlockHeader, getFullBlock, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import type { RpcError } from "../rpc/RpcError.ts"
import { decodeTransaction } from "../rpc/transactionMethods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { plainTransfer, receivedBy, spent } from "./attribution.ts"
import { outcomesOf } from "./blockIncome.ts"
import { stateOf } from "./historicalStates.ts"
import * as Income from "./IncomeRepo.ts"

/** What the provider or, where that gives nothing, another one gives. */
const fromTwo = Effect.fnUntraced(function* <A>(
  { providers }: WatchContext,
  provider: Provider,
  read: (client: RpcClient) => Effect.Effect<A | undefined, RpcError>
) {
  for (const asked of [provider, yield* providers.other(provider)]) {
    const found = asked && (yield* read(asked.client))
    if (found !== undefined) return found
  }
  return undefined
})

/** All moves of coins by a transaction, its own value included; undefined where neither of two providers traces it. */
const movesOf = (watch: WatchContext, provider: Provider, hash: string) =>
  fromTwo(watch, provider, (client) =>
    Effect.gen(function* () {
      if (!(yield* mayBeCapable(client, "trace"))) return undefined
      const traced = yield* Effect.either(sendBatch(client, [traceTransaction(hash)]))
      return Either.isRight(traced) ? traced.right[0] : undefined
    })
  )

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

/** The income of an address in one block, wei: the change of its balance plus what it spent there. */
const incomeIn = Effect.fnUntraced(function* (client: RpcClient, address: string, block: BlockHeader) {
  const before = yield* stateOf(client, address, { number: block.number - 1, hash: block.parentHash })
  const after = yield* stateOf(client, address, block)
  const change = after.balance - before.balance
  if (before.nonce === after.nonce) return change
  const [{ transactions }] = yield* sendBatch(client, [getFullBlock(block.number)])
  const sent = Arr.getRights(transactions.map(decodeTransaction)).filter(({ from }) => from === address)
  return change + spent(address, sent, yield* outcomesOf(client, sent))
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
  // Undefined where neither of two providers has the states of the block any more.
  const amount = yield* fromTwo(watch, provider, (client) =>
    Effect.catchIf(incomeIn(client, address, header), isCapabilityRefused, () => Effect.succeed(undefined))
  )
  const incomes = [
    amount === undefined ? undefined : { address, after: header.number - 1, upTo: header.number, amount },
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
