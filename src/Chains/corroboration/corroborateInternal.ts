/**
 * The evidence of one provider about money that moved inside contracts (receipts with a position `call:`). No
 * transaction value and no log shows its amount, so the provider's balances or its trace of the transaction have to.
 * Called by `receiptEvidence.ts`.
 */
import { Array as Arr, Effect, Either, Predicate } from "effect"
import { sum } from "../../Domain/Amount.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import { attribute, type BalanceChange, candidates, concerns, receivedBy } from "../balances/attribution.ts"
import {
  isNamedBy,
  outcomesOf,
  TraceBudget,
  traceBlock,
  transactionsOf,
  tryCapability
} from "../balances/blockIncome.ts"
import { stateOf } from "../balances/historicalStates.ts"
import { no, unable, type Vote, yes } from "../evidence/Ballot.ts"
import type { Provider } from "../providers/Providers.ts"
import { traceTransaction } from "../rpc/balanceMethods.ts"
import { type FullBlock, getFullBlock, optional, sendBatch } from "../rpc/methods.ts"
import { providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import { decodeTransaction, getTransactionOutcome } from "../rpc/transactionMethods.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"

/** Calls in one batch; providers allow batches of 100 calls or more. */
const callsPerBatch = 50

/** Whether the money of a receipt moved inside contracts. */
export const isInternal = ({ position }: Pick<Uncorroborated, "position">): boolean => position.startsWith("call:")

/** Undefined in place of errors that concern this question only; fails with those of the provider as a whole. */
const unlessTrouble = <A>(effect: Effect.Effect<A, RpcError>): Effect.Effect<A | undefined, RpcError> =>
  Effect.catchIf(
    effect,
    ({ reason }) => !providerTrouble.has(reason),
    () => Effect.succeed(undefined)
  )

/** What an address received inside contracts in one block, by its balances after the block and after the one before. */
interface InternalIncome {
  /** Wei, without what transactions sent it directly, and with what it spent added back. */
  readonly amount: bigint
  /** All transactions that the address sent in the block are known. Otherwise it may have received more. */
  readonly exact: boolean
}

const changeOf = (watch: WatchContext, address: string, difference: bigint): BalanceChange => ({
  address,
  currency: nativeToken(watch.network.chain),
  difference,
  credits: []
})

const internalIncome = Effect.fnUntraced(function* (
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
  } satisfies InternalIncome
})

/** The data of one provider about the receipts of one address in one block. */
interface Question {
  readonly watch: WatchContext
  readonly provider: Provider
  readonly block: FullBlock
  readonly address: string
  /** Undefined where the provider does not have the states. */
  readonly income: InternalIncome | undefined
  /** Receipts of this kind that the ledger has for the address in the block: wei by position. */
  readonly amounts: ReadonlyMap<string, bigint>
  /** Those of them that alone add up to the income; undefined where none do, or others too. */
  readonly selection: ReadonlySet<string> | undefined
}

/** Maximum number of receipts of an address in a block for which a selection is searched. */
const mostSelected = 10

type Amounts = ReadonlyArray<readonly [string, bigint]>

/** Each selection of the amounts that adds up to the total, by position. */
const selectionsOf = ([first, ...rest]: Amounts, total: bigint): ReadonlyArray<ReadonlyArray<string>> => {
  if (first === undefined) return total === 0n ? [[]] : []
  const [position, amount] = first
  const withFirst = selectionsOf(rest, total - amount).map((others) => [position, ...others])
  return [...withFirst, ...selectionsOf(rest, total)]
}

/**
 * The only selection of the amounts that adds up to the total; undefined where there is none, or several. An invented
 * receipt beside a real one makes the sum of both too high: the balances still show which one is there.
 */
export const onlySelection = (amounts: Amounts, total: bigint): ReadonlySet<string> | undefined => {
  const [only, another] = amounts.length > mostSelected ? [] : selectionsOf(amounts, total)
  return only === undefined || another !== undefined ? undefined : new Set(only)
}

/**
 * Whether the provider's balances show the receipt: they show all of the block together, or it is among the only selection
 * that they show. `none`: its amount is more than they show, or it is not among that selection.
 */
const shownBy = (
  { amounts, income, selection }: Question,
  { amount, position }: Uncorroborated
): "shown" | "none" | "unclear" => {
  if (income === undefined) return "unclear"
  if (income.amount >= sum([...amounts.values()])) return "shown"
  if (!income.exact) return "unclear"
  if (selection?.has(position)) return "shown"
  return selection !== undefined || amount > income.amount ? "none" : "unclear"
}

/** Whether a trace of the transaction or of its block shows the money; undefined where the provider offers neither. */
const isShownByTrace = Effect.fnUntraced(function* (question: Question, receipt: Uncorroborated) {
  const { amount, txHash } = receipt
  const { address, block, income, provider, watch } = question
  const traced = yield* tryCapability(provider.client, "trace", sendBatch(provider.client, [traceTransaction(txHash)]))
  if (traced !== undefined) {
    const received = receivedBy(address, traced[0])
    return shownBy(question, receipt) === "shown" ? received > 0n : received >= amount
  }
  if (income === undefined || shownBy(question, receipt) !== "shown") return undefined
  const sources = { provider, others: [], traceBudget: new TraceBudget() }
  const change = changeOf(watch, address, income.amount)
  const { transfers } = yield* traceBlock(sources, change, block)
  return transfers.length === 0 ? undefined : transfers.some((transfer) => transfer.txHash === txHash)
})

/** The transaction in its block; undefined where it is not there, or ran no code that could have paid the address. */
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
 * Balances corroborate a receipt that they show, unless the transaction does not name the address and a trace shows that
 * it paid the address nothing. Where they do not show it, or are missing, a trace that shows the receipt's own amount is
 * enough.
 */
const answerOn = Effect.fnUntraced(function* (
  question: Question,
  receipt: Uncorroborated
): Effect.fn.Return<Vote<true>, RpcError> {
  const transaction = candidateOf(question, receipt)
  if (transaction === undefined) return no
  const shown = shownBy(question, receipt)
  if (shown === "shown" && concerns(question.address, transaction)) return yes(true)
  const traced = yield* isShownByTrace(question, receipt)
  if (traced !== undefined) return traced ? yes(true) : no
  return shown === "shown" ? yes(true) : shown === "none" ? no : unable
})

/** The receipts of one address in one block. */
const ofAddress = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  block: FullBlock,
  receipts: Arr.NonEmptyReadonlyArray<Uncorroborated>
) {
  const { address } = receipts[0]
  const income = yield* unlessTrouble(internalIncome(watch, provider, block, address))
  const amounts = yield* CorroborationRepo.internalAmounts(watch.reader, watch.network, receipts[0])
  const selection = income && onlySelection([...amounts], income.amount)
  const question: Question = { watch, provider, block, address, income, amounts, selection }
  return yield* Effect.forEach(
    receipts,
    (receipt) => Effect.map(answerOn(question, receipt), (answer) => [receipt, answer] as const),
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
  if (block?.header.hash !== blockHash) return receipts.map((receipt) => [receipt, unable] as const)
  const answers = yield* Effect.forEach(
    Object.values(Arr.groupBy(receipts, ({ address }) => address)),
    (group) => ofAddress(watch, provider, block, group),
    { concurrency: 1 }
  )
  return answers.flat()
})

/**
 * Asks a provider about receipts of money that moved inside contracts. It corroborates a receipt where
 * - the transaction is in the same block, succeeded, and concerns the address, and
 * - its own balances after that block and after the one before, asked for by block hash, show at least the sum of the
 *   address's receipts of this kind in the block, or just some of them with this one among them, beyond what transactions
 *   sent it directly, with what it spent added back.
 *
 * Where the provider does not have these states, a trace of the transaction must show the amount. A provider with
 * neither is `unable`. Fails only with errors of the provider as a whole (`providerTrouble`).
 */
export const corroborateInternal = Effect.fn("Chains.corroborateInternal")(function* (
  provider: Provider,
  watch: WatchContext,
  receipts: ReadonlyArray<Uncorroborated>
) {
  const answers = new Map<Uncorroborated, Vote<true>>()
  const inBlock: Array<Uncorroborated> = []
  for (const part of Arr.chunksOf(receipts, callsPerBatch)) {
    const outcomes = yield* unlessTrouble(
      sendBatch(
        provider.client,
        part.map(({ txHash }) => optional(getTransactionOutcome(txHash)))
      )
    )
    for (const [i, receipt] of part.entries()) {
      const outcome = outcomes?.[i]
      const isInBlock =
        outcome?.transactionHash === receipt.txHash &&
        outcome.blockHash === receipt.blockHash &&
        outcome.succeeded === true
      if (isInBlock) inBlock.push(receipt)
      else answers.set(receipt, outcomes === undefined ? unable : no)
    }
  }
  for (const group of Object.values(Arr.groupBy(inBlock, ({ blockHash }) => blockHash))) {
    for (const [receipt, answer] of yield* ofBlock(watch, provider, group)) answers.set(receipt, answer)
  }
  const found: ReadonlyMap<Uncorroborated, Vote<true>> = answers
  return found
})
