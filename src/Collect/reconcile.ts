/** The account of a broadcast, to the unit: what was there before = what was received + gas + what stayed. */
import { Array as Arr, Effect, Either, Option, Schema } from "effect"
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
import { getPricedHead, type PricedHead } from "../Chains/rpc/sendingMethods.ts"
import { hasSucceeded, receiptReader } from "../Chains/rpc/transactionMethods.ts"
import { chainTraits } from "../Domain/Chain.ts"
import type { CollectedTransfer } from "../Payments/addresses/CollectedRepo.ts"
import { type ChainAccess, readingBy } from "./access.ts"
import { currencyOf, type Plan, receiverOf } from "./Plan.ts"
import { type MinedAt, readHoldings, readUsed } from "./standing.ts"
import { authorizationsOf } from "./transactions.ts"
import type { Ready } from "./verifySigned.ts"

/** What went from an address to its receiver; `amount` is what was received. */
export interface SweptTransfer extends CollectedTransfer {
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

const logsOf = ({ logs }: Pick<Paid, "logs">) => logs.flatMap((log) => Option.toArray(Either.getRight(decodeLog(log))))

const transfersOf = (receipt: Pick<Paid, "logs">): ReadonlyArray<TokenTransfer> =>
  logsOf(receipt).flatMap(({ address, data, topics: [kind, from, to] }) =>
    kind === transferTopic && from !== undefined && to !== undefined && /^0x[0-9a-fA-F]{64}$/.test(data)
      ? [{ contract: address, from: `0x${from.slice(26)}`, to: `0x${to.slice(26)}`, amount: BigInt(data) }]
      : []
  )

type Authorized = ReturnType<typeof authorizationsOf>[number]

/** Whether a receipt has the event by which the token says that it carried out this very authorization. */
const carries = (receipt: Paid, { message: { from, nonce }, token: { contract } }: Authorized): boolean =>
  hasSucceeded(receipt) &&
  logsOf(receipt).some(
    ({ address, topics: [kind, by, of] }) =>
      same(address, contract) && kind === usedEvent && of === nonce && same(`0x${by?.slice(26)}`, from)
  )

/** Blocks in one search for authorizations that somebody else has carried out, nonces in one, and searches at most. */
const searched = 1_000
const noncesAtOnce = 50
const mostSearches = 1_000

/** The transactions that carried out authorizations, by the places of their moves: between the plan and their end. */
const whoUsed = Effect.fnUntraced(function* (
  client: RpcClient,
  plan: Plan,
  wanted: ReadonlyArray<Authorized>,
  head: PricedHead
) {
  const found = new Map<number, string>()
  // Blocks may come twice as fast as they usually do.
  const last = Math.ceil(((plan.validBefore - plan.block.time) * 2) / chainTraits[plan.chain].blockSeconds)
  const until = Math.min(head.number, plan.block.number + last)
  let searches = 0
  for (const part of Arr.chunksOf(wanted, noncesAtOnce)) {
    const address = [...new Set(part.map(({ token }) => token.contract))]
    const topics = [usedEvent, null, part.map(({ message }) => message.nonce)]
    for (let from = plan.block.number; from <= until && searches < mostSearches; from += searched) {
      searches += 1
      const [logs] = yield* sendBatch(client, [
        getLogs(from, Math.min(until, from + searched - 1), { address, topics })
      ])
      for (const { topics, transactionHash } of logsOf({ logs })) {
        const one = part.find(({ message }) => message.nonce === topics[2])
        if (one !== undefined) found.set(one.place, transactionHash)
      }
    }
  }
  return found
})

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()
const feeOf = ({ effectiveGasPrice, gasUsed, l1Fee }: Paid): bigint => gasUsed * effectiveGasPrice + (l1Fee ?? 0n)

/** A transaction that is in a block, or was given up. */
interface Settled {
  readonly ready: Ready
  readonly mined: MinedAt | undefined
}

/** What one provider says of a broadcast: which transaction made each move, and what is where now. */
const readFacts = Effect.fnUntraced(function* (client: RpcClient, plan: Plan, all: ReadonlyArray<Settled>) {
  const calls = all.flatMap(({ mined }) => (mined === undefined ? [] : [getPaid(mined.hash)]))
  const own = yield* sendInBatches(client, calls, 20)
  const [head] = yield* sendBatch(client, [getPricedHead])
  const holdings = yield* readHoldings(client, plan, head)
  const used = yield* readUsed(client, plan)
  const receipts = new Map<string, Paid>(own.map((receipt) => [receipt.transactionHash, receipt]))
  /** By the place of a move: the transaction that made it. */
  const madeBy = new Map<number, string>()
  for (const { mined, ready } of all) {
    if (mined !== undefined) for (const place of ready.moves) madeBy.set(place, mined.hash)
  }
  const elsewhere: Array<Authorized> = []
  for (const one of authorizationsOf(plan)) {
    const receipt = receipts.get(madeBy.get(one.place) ?? "")
    if (receipt !== undefined && carries(receipt, one)) continue
    madeBy.delete(one.place)
    if (used.get(one.place) === true) elsewhere.push(one)
  }
  const others = yield* whoUsed(client, plan, elsewhere, head)
  for (const one of elsewhere) {
    const hash = others.get(one.place)
    if (hash === undefined) continue
    const receipt = receipts.get(hash) ?? (yield* sendBatch(client, [getPaid(hash)]))[0]
    if (!carries(receipt, one)) continue
    receipts.set(hash, receipt)
    madeBy.set(one.place, hash)
  }
  return { receipts, madeBy, holdings, used, own: new Set(own.map(({ transactionHash }) => transactionHash)) }
})

type Facts = Effect.Effect.Success<ReturnType<typeof readFacts>>

/** What each move brought to its receiver, and by which transaction; those that were not made are missing. */
const receivedBy = (plan: Plan, all: ReadonlyArray<Settled>, { madeBy, receipts }: Facts) => {
  const found = new Map<number, { readonly hash: string; readonly amount: bigint; readonly block: number }>()
  /** What no move has taken yet: each transfer serves one. */
  const left = new Map(Array.from(receipts, ([hash, receipt]) => [hash, [...transfersOf(receipt)]]))
  const take = (place: number, fits: (amount: bigint, planned: bigint) => boolean) => {
    const move = plan.moves[place]
    const hash = madeBy.get(place) ?? ""
    const receipt = receipts.get(hash)
    if (found.has(place) || move === undefined || receipt === undefined || !hasSucceeded(receipt)) return
    const block = receipt.blockNumber
    const contract = move.token === undefined ? undefined : plan.tokens[move.token]?.contract
    if (contract === undefined) {
      const sent = all.find(({ mined }) => mined?.hash === hash)
      found.set(place, { hash, amount: sent?.ready.variants[sent.mined?.step ?? 0]?.value ?? 0n, block })
      return
    }
    const transfers = left.get(hash) ?? []
    const at = transfers.findIndex(
      ({ amount, from, to, ...one }) =>
        same(one.contract, contract) &&
        same(from, move.address) &&
        same(to, receiverOf(plan, move)) &&
        fits(amount, BigInt(move.amount))
    )
    const [transfer] = at === -1 ? [] : transfers.splice(at, 1)
    if (transfer !== undefined) found.set(place, { hash, amount: transfer.amount, block })
  }
  for (const place of plan.moves.keys()) take(place, (amount, planned) => amount === planned)
  // Those of which a token kept a fee.
  for (const place of plan.moves.keys()) take(place, (amount, planned) => amount > 0n && amount < planned)
  return found
}

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

/** Adds a broadcast up, by what one provider says. */
const accountBy = (plan: Plan, all: ReadonlyArray<Settled>, beginning: Beginning, facts: Facts): SweepResult => {
  const made = receivedBy(plan, all, facts)
  const differences: Array<SweepDifference> = []
  const transfers: Array<SweptTransfer> = []
  const received = new Map<string, bigint>()
  for (const [place, move] of plan.moves.entries()) {
    const currency = currencyOf(plan, move)
    const done = made.get(place)
    if (done === undefined) {
      const { address, amount } = move
      const why = facts.used.get(place)
        ? `its authorization was carried out otherwise: look in a block explorer for ${facts.madeBy.get(place) ?? "who did"}`
        : "it was not moved: its transaction failed, or was given up"
      differences.push({ address, currency, amount, why })
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
  return { digest: plan.digest, transfers, totals, differences }
}

const textOf = (value: unknown): string => JSON.stringify(value)
const withoutLater = (totals: ReadonlyArray<SweepTotal>) => totals.map(({ cameMeanwhile: _, ...total }) => total)

/** Adds a broadcast up, by what two providers say now, where there are two. What one alone says is a difference. */
export const accountFor = Effect.fn("Collect.accountFor")(function* (
  access: ChainAccess,
  plan: Plan,
  all: ReadonlyArray<Settled>,
  beginning: Beginning
) {
  const facts = yield* readingBy(access, { mustBeTwo: true }, (client) => readFacts(client, plan, all))
  const [first, second = first] = facts.map((each) => accountBy(plan, all, beginning, each))
  if (first === undefined || second === undefined) return yield* Effect.dieMessage("no provider gave an account")
  const isOfBoth = (one: SweptTransfer) => second.transfers.some((other) => textOf(other) === textOf(one))
  const known = new Set(first.differences.map(textOf))
  const differences = [...first.differences, ...second.differences.filter((one) => !known.has(textOf(one)))]
  const why = "providers differ on it: run this again, and look in a block explorer if that lasts"
  for (const one of first.transfers.filter((one) => !isOfBoth(one))) {
    differences.push({ address: one.address, currency: one.currency, amount: one.amount, why })
  }
  if (differences.length === 0 && textOf(withoutLater(first.totals)) !== textOf(withoutLater(second.totals))) {
    differences.push({ address: plan.sponsor.address, currency: plan.coin, amount: "0", why })
  }
  const result: SweepResult = { ...first, transfers: first.transfers.filter(isOfBoth), differences }
  return result
})
