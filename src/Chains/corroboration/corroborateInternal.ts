import { Array as Arr, Effect, Either, Predicate } from "effect"
import { sum } from "../../Domain/Amount.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import { attribute, type BalanceChange, candidates, concerns } from "../balances/attribution.ts"
import { isNamedBy, outcomesOf } from "../balances/blockIncome.ts"
import { stateOf } from "../balances/historicalStates.ts"
import { receivedBy } from "../balances/internalTransfers.ts"
import { makeTraceBudget, traceBlock, transactionsOf, tryCapability } from "../balances/traceBlock.ts"
import type { Provider } from "../providers/Providers.ts"
import {
  decodeTransaction,
  getTransactionOutcome,
  type TransactionOutcome,
  traceTransaction
} from "../rpc/balanceMethods.ts"
import { type Call, type FullBlock, getFullBlock, sendBatch } from "../rpc/methods.ts"
import { providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"

/** Calls in one batch; providers allow from 100 up. */
const callsPerBatch = 50

/** `unable`: the provider has neither the states nor a trace that would tell. It is no denial. */
export type InternalVerdict = "corroborated" | "denied" | "unable"
export type InternalEvidence = Readonly<Record<InternalVerdict, ReadonlyArray<Uncorroborated>>>

/** Whether a receipt is of money that moved inside contracts: no transaction and no log says how much it was. */
export const isInternal = ({ position }: Pick<Uncorroborated, "position">): boolean => position.startsWith("call:")

const findOutcome = (hash: string): Call<TransactionOutcome | undefined> => {
  const call = getTransactionOutcome(hash)
  return { ...call, decode: (result) => (result == null ? Either.right(undefined) : call.decode(result)) }
}

/** An answer that tells nothing about these receipts, unless the provider as a whole is in trouble. */
const unlessTrouble = <A>(effect: Effect.Effect<A, RpcError>): Effect.Effect<A | undefined, RpcError> =>
  Effect.catchIf(
    effect,
    ({ reason }) => !providerTrouble.has(reason),
    () => Effect.succeed(undefined)
  )

/** What an address got inside contracts with one block, by a provider's balances of that block and the one before. */
interface CameInside {
  /** Wei, beyond what transactions sent it themselves and what it spent. */
  readonly amount: bigint
  /** All that the address sent there is known: else it may have got more. */
  readonly exact: boolean
}

const changeOf = (watch: WatchContext, address: string, difference: bigint): BalanceChange => ({
  address,
  currency: nativeToken(watch.network.chain),
  difference,
  credits: []
})

const cameInside = Effect.fnUntraced(function* (
  watch: WatchContext,
  { client }: Provider,
  block: FullBlock,
  address: string
) {
  const { hash, number, parentHash } = block.header
  const before = yield* stateOf(client, address, { number: number - 1, hash: parentHash })
  const after = yield* stateOf(client, address, { number, hash })
  const transactions = yield* transactionsOf(client, block, (one) => isNamedBy(address, one))
  const change = changeOf(watch, address, after.balance - before.balance)
  const { rest, transfers } = attribute(change, transactions, yield* outcomesOf(client, transactions))
  const sent = transactions.filter(({ from }) => from === address).length
  return {
    amount: rest + sum(transfers.filter(isInternal).map(({ amount }) => amount)),
    exact: after.nonce - before.nonce === sent
  } satisfies CameInside
})

/** What is asked of one provider about the receipts of one address in one block. */
interface Question {
  readonly watch: WatchContext
  readonly provider: Provider
  readonly block: FullBlock
  readonly address: string
  readonly came: CameInside | undefined
  /** Wei of all its receipts of that kind in the ledger's block. */
  readonly wanted: bigint
}

/** By its trace, or the whole block run again; undefined where the provider offers neither. */
const concernsByTrace = Effect.fnUntraced(function* (question: Question, { amount, txHash }: Uncorroborated) {
  const { address, block, came, provider, wanted, watch } = question
  const isEnough = came !== undefined && came.amount >= wanted
  const traced = yield* tryCapability(provider.client, "trace", sendBatch(provider.client, [traceTransaction(txHash)]))
  if (traced !== undefined) {
    const got = receivedBy(address, traced[0])
    return isEnough ? got > 0n : got >= amount
  }
  if (!isEnough) return undefined
  const deps = { provider, others: [], chain: watch.chain }
  const change = changeOf(watch, address, came.amount)
  const { transfers } = yield* traceBlock(deps, makeTraceBudget(), change, block, came.amount)
  return transfers.length === 0 ? undefined : transfers.some((transfer) => transfer.txHash === txHash)
})

/** The transaction in its block; undefined where it is not, or ran no code that could have brought an address anything. */
const candidateOf = ({ address, block: { header, transactions }, watch }: Question, { txHash }: Uncorroborated) => {
  const isIt = (raw: unknown) => Predicate.isRecord(raw) && String(raw.hash).toLowerCase() === txHash
  const found = transactions.filter(isIt).flatMap((raw) => Arr.fromOption(Either.getRight(decodeTransaction(raw))))
  const block = { number: header.number, hash: header.hash, time: header.time }
  const [transaction] = candidates(
    changeOf(watch, address, 0n),
    found.map((one) => ({ ...one, block }))
  )
  return transaction
}

/**
 * The block's balances must show at least the sum of the ledger's receipts, and the transaction must concern the address,
 * by a trace where the provider offers one. Where they show less, or nothing, what the transaction itself moved by its
 * trace may do.
 */
const verdictOn = Effect.fnUntraced(function* (
  question: Question,
  receipt: Uncorroborated
): Effect.fn.Return<InternalVerdict, RpcError> {
  const { address, came, wanted } = question
  const transaction = candidateOf(question, receipt)
  if (transaction === undefined) return "denied"
  if (came !== undefined && came.amount >= wanted && concerns(address, transaction)) return "corroborated"
  const traced = yield* concernsByTrace(question, receipt)
  if (traced !== undefined) return traced ? "corroborated" : "denied"
  if (came === undefined) return "unable"
  return came.amount >= wanted ? "corroborated" : came.exact ? "denied" : "unable"
})

/** The receipts of one address in one block. */
const ofAddress = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  block: FullBlock,
  receipts: Arr.NonEmptyReadonlyArray<Uncorroborated>
) {
  const { address } = receipts[0]
  const came = yield* unlessTrouble(cameInside(watch, provider, block, address))
  const wanted = yield* CorroborationRepo.sumInternal(watch.reader, watch.network, receipts[0])
  const question: Question = { watch, provider, block, address, came, wanted }
  return yield* Effect.forEach(
    receipts,
    (receipt) => Effect.map(verdictOn(question, receipt), (verdict) => [verdict, receipt] as const),
    { concurrency: 1 }
  )
})

/** The receipts of one block, whose transactions the provider has there. */
const ofBlock = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  receipts: Arr.NonEmptyReadonlyArray<Uncorroborated>
) {
  const { blockHash, blockNumber } = receipts[0]
  const [block] = (yield* unlessTrouble(sendBatch(provider.client, [getFullBlock(blockNumber)]))) ?? []
  if (block?.header.hash !== blockHash) return receipts.map((receipt) => ["unable", receipt] as const)
  const verdicts = yield* Effect.forEach(
    Object.values(Arr.groupBy(receipts, ({ address }) => address)),
    (group) => ofAddress(watch, provider, block, group),
    { concurrency: 1 }
  )
  return verdicts.flat()
})

/**
 * Asks a provider about receipts of money that moved inside contracts (`call:`), which it may not have reported itself.
 * It corroborates one when it has the transaction in the same block, where it succeeded and concerns the address, and its
 * own balances of that block and of the one before, by their hashes, show at least the sum of the address's receipts of
 * this kind there, beyond what transactions sent it directly and what it spent. Where the provider has no such states, a
 * trace of the transaction must show the amount; one that has neither is `unable`.
 *
 * Fails only with what tells of the provider as a whole.
 */
export const corroborateInternal = Effect.fn("Chains.insideCorroborated")(function* (
  provider: Provider,
  watch: WatchContext,
  receipts: ReadonlyArray<Uncorroborated>
) {
  const verdicts: Array<readonly [InternalVerdict, Uncorroborated]> = []
  const here: Array<Uncorroborated> = []
  for (const part of Arr.chunksOf(receipts, callsPerBatch)) {
    const outcomes = yield* unlessTrouble(
      sendBatch(
        provider.client,
        part.map(({ txHash }) => findOutcome(txHash))
      )
    )
    for (const [i, receipt] of part.entries()) {
      const outcome = outcomes?.[i]
      const isHere =
        outcome?.hash === receipt.txHash && outcome.blockHash === receipt.blockHash && outcome.succeeded === true
      if (isHere) here.push(receipt)
      else verdicts.push([outcomes === undefined ? "unable" : "denied", receipt])
    }
  }
  for (const group of Object.values(Arr.groupBy(here, ({ blockHash }) => blockHash))) {
    verdicts.push(...(yield* ofBlock(watch, provider, group)))
  }
  const those = (wanted: InternalVerdict) =>
    verdicts.flatMap(([verdict, receipt]) => (verdict === wanted ? [receipt] : []))
  const answer: InternalEvidence = {
    corroborated: those("corroborated"),
    denied: those("denied"),
    unable: those("unable")
  }
  return answer
})
