/**
 * Internal transfers of one transaction, from its trace: coins that contracts moved, which no log shows. `tilld claim`,
 * the bounds of claims and the corroboration of internal receipts call it.
 */
import { Effect, Either } from "effect"
import { sum } from "../../Domain/Amount.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { type Move, traceTransaction } from "../rpc/balanceMethods.ts"
import { mayBeCapable } from "../rpc/capabilities.ts"
import { type BlockHeader, sendBatch } from "../rpc/methods.ts"
import { decodeTransaction } from "../rpc/transactionMethods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"

/** Gas of a transaction that runs no code. */
const plainTransfer = 21_000n

/** All moves of coins by a transaction, its own value included; undefined where neither of two providers traces it. */
export const movesOf = Effect.fn("Balances.movesOf")(function* (
  { providers }: WatchContext,
  provider: Provider,
  hash: string
) {
  for (const asked of [provider, yield* providers.other(provider)]) {
    if (asked === undefined || !(yield* mayBeCapable(asked.client, "trace"))) continue
    const traced = yield* Effect.either(sendBatch(asked.client, [traceTransaction(hash)]))
    if (Either.isRight(traced)) return traced.right[0]
  }
  return undefined
})

/** Wei that an address received by moves. Transfers to itself do not count. */
export const receivedBy = (address: string, moves: ReadonlyArray<Move>): bigint =>
  sum(moves.filter(({ from, to }) => to === address && from !== address).map((move) => move.amount))

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
  { network }: WatchContext,
  txHash: string,
  { hash, number, time }: BlockHeader,
  moves: ReadonlyArray<Move>,
  ours: Iterable<string>
): ReadonlyArray<DatedTransfer> =>
  [...ours].flatMap((address) => {
    const amount = receivedBy(address, moves)
    if (amount === 0n) return []
    const position = `call:${txHash}`
    const currency = nativeToken(network.chain)
    return [{ blockNumber: number, blockHash: hash, blockTime: time, txHash, position, address, currency, amount }]
  })
