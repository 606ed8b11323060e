/** The account of a broadcast, to the unit: what was there before = what was received + gas + what stayed. */
import { Effect, Either, Schema } from "effect"
import { toEventSelector } from "viem"
import {
  Address,
  type Call,
  decoder,
  getLogs,
  Hash,
  sendBatch,
  sendInBatches,
  transferTopic
} from "../Chains/rpc/methods.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import { getPricedHead } from "../Chains/rpc/sendingMethods.ts"
import { receiptReader } from "../Chains/rpc/transactionMethods.ts"
import { type ChainAccess, reading } from "./access.ts"
import { authorizationNonce } from "./authorization.ts"
import { type Plan, type PlannedMove, receiverOf } from "./Plan.ts"
import { type MinedAt, readHoldings, readUsed } from "./standing.ts"
import type { Ready } from "./verifySigned.ts"

/** What went from an address to its receiver. */
export interface SweptTransfer {
  readonly hash: string
  /** Of the move in the plan. */
  readonly place: number
  readonly address: string
  readonly to: string
  readonly currency: string
  /** Base units that were received. */
  readonly amount: string
  /** The exception that it sends back. */
  readonly refund?: string
}

/** A currency's account; all in base units. */
export interface SweepTotal {
  readonly currency: string
  readonly decimals: number
  readonly before: string
  readonly received: string
  readonly gas: string
  readonly stayed: string
  /** What came to the addresses meanwhile; it stays too, and is in no other sum. */
  readonly cameMeanwhile: string
}

/** What is not as it should be at an address. */
export interface SweepDifference {
  readonly address: string
  readonly currency: string
  /** Base units. */
  readonly amount: string
  readonly why: string
}

export interface SweepResult {
  readonly digest: string
  readonly transfers: ReadonlyArray<SweptTransfer>
  readonly totals: ReadonlyArray<SweepTotal>
  readonly differences: ReadonlyArray<SweepDifference>
}

const getPaid = receiptReader(
  "transactionHash",
  "blockNumber",
  "status",
  "gasUsed",
  "effectiveGasPrice",
  "l1Fee",
  "logs"
)
type Paid = ReturnType<typeof getPaid> extends Call<infer A> ? A : never

const usedEvent = toEventSelector("AuthorizationUsed(address,bytes32)")
const decodeLog = decoder(
  Schema.Struct({ address: Address, topics: Schema.Array(Hash), data: Schema.String, transactionHash: Hash })
)

interface TokenTransfer {
  readonly contract: string
  readonly from: string
  readonly to: string
  readonly amount: bigint
}

const transfersOf = ({ logs }: Pick<Paid, "logs">): ReadonlyArray<TokenTransfer> =>
  logs.flatMap((log) => {
    const decoded = decodeLog(log)
    if (Either.isLeft(decoded)) return []
    const { address, data, topics } = decoded.right
    const [kind, from, to] = topics
    return kind === transferTopic && from !== undefined && to !== undefined && /^0x[0-9a-fA-F]{64}$/.test(data)
      ? [{ contract: address, from: `0x${from.slice(26)}`, to: `0x${to.slice(26)}`, amount: BigInt(data) }]
      : []
  })

/** Blocks in one search for an authorization that somebody else has carried out. */
const searched = 1_000

/** The transaction that carried out an authorization, where it was none of ours. */
const whoUsed = Effect.fnUntraced(function* (
  client: RpcClient,
  plan: Plan,
  place: number,
  { address, contract }: { readonly address: string; readonly contract: string },
  head: number
) {
  const topics = [
    usedEvent,
    `0x${address.slice(2).toLowerCase().padStart(64, "0")}`,
    authorizationNonce(plan.digest, place)
  ]
  for (let from = plan.block.number; from <= head; from += searched) {
    const to = Math.min(head, from + searched - 1)
    const [[log]] = yield* sendBatch(client, [getLogs(from, to, { address: [contract], topics })])
    const decoded = log === undefined ? undefined : decodeLog(log)
    if (decoded !== undefined && Either.isRight(decoded)) return decoded.right.transactionHash
  }
  return undefined
})

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
const feeOf = ({ effectiveGasPrice, gasUsed, l1Fee }: Paid): bigint => gasUsed * effectiveGasPrice + (l1Fee ?? 0n)

/** A transaction that is in a block, or was given up. */
interface Settled {
  readonly ready: Ready
  readonly mined: MinedAt | undefined
}

/** Reads what is needed of a chain to account for a broadcast. */
const readFacts = (access: ChainAccess, plan: Plan, all: ReadonlyArray<Settled>) =>
  reading(access, (client) =>
    Effect.gen(function* () {
      const own = yield* sendInBatches(
        client,
        all.flatMap(({ mined }) => (mined === undefined ? [] : [getPaid(mined.hash)])),
        20
      )
      const [head] = yield* sendBatch(client, [getPricedHead])
      const holdings = yield* readHoldings(client, plan, head)
      const used = yield* readUsed(client, plan)
      const receipts = new Map<string, Paid>(own.map((receipt) => [receipt.transactionHash, receipt]))
      /** By the place of a move: the transaction that made it. */
      const madeBy = new Map<number, string>()
      for (const { mined, ready } of all) {
        if (mined !== undefined) for (const place of ready.moves) madeBy.set(place, mined.hash)
      }
      for (const [place, isUsed] of used) {
        const move = plan.moves[place]
        const contract = plan.tokens[move?.token ?? -1]?.contract
        if (!isUsed || move === undefined || contract === undefined) continue
        const of = receipts.get(madeBy.get(place) ?? "")
        if (of !== undefined && carries(of, move, contract, receiverOf(plan, move))) continue
        const hash = yield* whoUsed(client, plan, place, { address: move.address, contract }, head.number)
        if (hash === undefined) continue
        const [other] = yield* sendBatch(client, [getPaid(hash)])
        receipts.set(hash, other)
        madeBy.set(place, hash)
      }
      return { receipts, madeBy, holdings, own: new Set(own.map(({ transactionHash }) => transactionHash)) }
    })
  )

const carries = (receipt: Paid, { address }: PlannedMove, contract: string, to: string): boolean =>
  transfersOf(receipt).some((one) => same(one.contract, contract) && same(one.from, address) && same(one.to, to))

type Facts = Effect.Effect.Success<ReturnType<typeof readFacts>>

/** What a move brought to its receiver, and by which transaction; nothing where it was not made. */
const receivedBy = (plan: Plan, place: number, all: ReadonlyArray<Settled>, { madeBy, receipts }: Facts) => {
  const move = plan.moves[place]
  const hash = madeBy.get(place)
  const receipt = receipts.get(hash ?? "")
  if (move === undefined || hash === undefined || receipt?.status !== "0x1") return undefined
  const contract = move.token === undefined ? undefined : plan.tokens[move.token]?.contract
  if (contract === undefined) {
    const sent = all.find(({ mined }) => mined?.hash === hash)
    return { hash, amount: sent?.ready.variants[sent.mined?.step ?? 0]?.value ?? 0n, block: receipt.blockNumber }
  }
  const own = transfersOf(receipt).filter(
    (one) => same(one.contract, contract) && same(one.from, move.address) && same(one.to, receiverOf(plan, move))
  )
  // One batch may carry several refunds of an address.
  const exact = own.find((one) => `${one.amount}` === move.amount)
  const amount = exact?.amount ?? own.reduce((sum, one) => sum + one.amount, 0n)
  return amount === 0n ? undefined : { hash, amount, block: receipt.blockNumber }
}

const currencyOf = (plan: Plan, { token }: PlannedMove): string =>
  token === undefined ? plan.coin : (plan.tokens[token]?.symbol ?? "?")

/** What was there when the broadcast began: base units by address, by currency. */
interface Beginning {
  readonly block: number
  readonly before: Readonly<Record<string, Readonly<Record<string, string>>>>
}

const keyOf = (currency: string, address: string): string => `${currency} ${address.toLowerCase()}`

/** What should be at each address now: base units by `keyOf`. */
const expectedNow = (plan: Plan, all: ReadonlyArray<Settled>, { block, before }: Beginning, facts: Facts) => {
  const expected = new Map<string, bigint>()
  for (const [address, of] of Object.entries(before)) {
    for (const [currency, amount] of Object.entries(of)) expected.set(keyOf(currency, address), BigInt(amount))
  }
  const take = (currency: string, address: string, amount: bigint) => {
    const key = keyOf(currency, address)
    const has = expected.get(key)
    if (has !== undefined) expected.set(key, has - amount)
  }
  for (const receipt of facts.receipts.values()) {
    if (receipt.blockNumber <= block && !facts.own.has(receipt.transactionHash)) continue
    for (const { amount, contract, from } of transfersOf(receipt)) {
      const token = plan.tokens.find((one) => same(one.contract, contract))
      if (token !== undefined) take(token.symbol, from, amount)
    }
  }
  for (const { mined, ready } of all) {
    const receipt = mined === undefined ? undefined : facts.receipts.get(mined.hash)
    if (mined === undefined || receipt === undefined) continue
    take(plan.coin, ready.from, feeOf(receipt))
    const variant = ready.variants[mined.step]
    if (variant === undefined || variant.value === 0n || !mined.succeeded) continue
    take(plan.coin, ready.from, variant.value)
    take(plan.coin, variant.to ?? "", -variant.value)
  }
  return expected
}

/** Adds a broadcast up, by what the chain says now. */
export const accountFor = Effect.fn("Collect.accountFor")(function* (
  access: ChainAccess,
  plan: Plan,
  all: ReadonlyArray<Settled>,
  beginning: Beginning
) {
  const facts = yield* readFacts(access, plan, all)
  const differences: Array<SweepDifference> = []
  const transfers: Array<SweptTransfer> = []
  const received = new Map<string, bigint>()
  for (const [place, move] of plan.moves.entries()) {
    const currency = currencyOf(plan, move)
    const done = receivedBy(plan, place, all, facts)
    if (done === undefined) {
      const { address, amount } = move
      differences.push({ address, currency, amount, why: "it was not moved: its transaction failed, or was given up" })
      continue
    }
    const { amount, block, hash } = done
    const { address, refund } = move
    const to = receiverOf(plan, move)
    transfers.push({
      hash,
      place,
      address,
      to,
      currency,
      amount: `${amount}`,
      ...(refund === undefined ? {} : { refund })
    })
    const lacks = BigInt(move.amount) - amount
    if (lacks > 0n) differences.push({ address, currency, amount: `${lacks}`, why: "its token kept it as a fee" })
    // What somebody else had carried out before was no longer there when this began.
    if (block > beginning.block || facts.own.has(hash)) received.set(currency, (received.get(currency) ?? 0n) + amount)
  }
  const expected = expectedNow(plan, all, beginning, facts)
  const sums = new Map<string, { before: bigint; stayed: bigint; came: bigint }>()
  for (const [address, of] of Object.entries(beginning.before)) {
    for (const [currency, had] of Object.entries(of)) {
      const amount = expected.get(keyOf(currency, address)) ?? 0n
      const has = facts.holdings.get(currency)?.get(address) ?? 0n
      const sum = sums.get(currency) ?? { before: 0n, stayed: 0n, came: 0n }
      sum.before += BigInt(had)
      sum.stayed += has < amount ? has : amount
      sum.came += has > amount ? has - amount : 0n
      sums.set(currency, sum)
      if (has >= amount) continue
      differences.push({ address, currency, amount: `${amount - has}`, why: "something else took it from there" })
    }
  }
  const paid = all.flatMap(({ mined }) => facts.receipts.get(mined?.hash ?? "") ?? [])
  const gas = paid.reduce((sum, receipt) => sum + feeOf(receipt), 0n)
  const totals = Array.from(
    sums,
    ([currency, { before, came, stayed }]): SweepTotal => ({
      currency,
      decimals: currency === plan.coin ? 18 : (plan.tokens.find(({ symbol }) => symbol === currency)?.decimals ?? 0),
      before: `${before}`,
      received: `${received.get(currency) ?? 0n}`,
      gas: `${currency === plan.coin ? gas : 0n}`,
      stayed: `${stayed}`,
      cameMeanwhile: `${came}`
    })
  )
  const result: SweepResult = { digest: plan.digest, transfers, totals, differences }
  return result
})
