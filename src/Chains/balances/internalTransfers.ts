import { Effect, Either } from "effect"
import { sum } from "../../Domain/Amount.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { decodeTransaction, type Move, traceTransaction } from "../rpc/balanceMethods.ts"
import { mayBeCapable } from "../rpc/capabilities.ts"
import { type BlockHeader, sendBatch } from "../rpc/methods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"

/** Gas that a transaction takes which runs no code. */
const plainTransfer = 21_000n

/** All moves of coins by a transaction; undefined where no provider that can be asked tells. */
export const movesOf = Effect.fn("Chains.movesOf")(function* (
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

/** What an address got by moves. What it sends itself is nothing. */
export const receivedBy = (address: string, moves: ReadonlyArray<Move>): bigint =>
  sum(moves.filter(({ from, to }) => to === address && from !== address).map((move) => move.amount))

/**
 * The coins that the contracts of a successful transaction moved, its own value apart; undefined where no provider that
 * can be asked tells.
 *
 * @param raw the transaction as the node gives it
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

/** What moves brought to those of the addresses that are `ours`: one receipt each. What an address sends itself is none. */
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
