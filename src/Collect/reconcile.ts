/**
 * The account of a broadcast, to the unit: what was there before = what was received + gas + what stayed. By what providers say:
 * which transaction made each move, and what is where now.
 */
import { Array as Arr, Effect, Either, Option, Schema } from "effect"
import { getAddress, toEventSelector, zeroAddress } from "viem"
import { holdingKey } from "../Chains/balances/holdings.ts"
import { type ChainAccess, readingBy } from "../Chains/providers/chainAccess.ts"
import { type Call, decoder, getHeader, getLogs, Hash, sendBatch, sendInBatches } from "../Chains/rpc/methods.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import { getPricedHead, type PricedHead } from "../Chains/rpc/sendingMethods.ts"
import { ContractLog, type TokenTransfer, transferIn } from "../Chains/rpc/tokenTransfer.ts"
import { hasSucceeded, receiptReader } from "../Chains/rpc/transactionMethods.ts"
import { isSameAddress } from "../Domain/Address.ts"
import { chainTraits } from "../Domain/Chain.ts"
import { RefundId } from "../Domain/Ids.ts"
import { iso } from "../lib/moment.ts"
import { mostApart, type Plan, receiverOf, tokenOf } from "./Plan.ts"
import type { Ready } from "./Signed.ts"
import { type MinedAt, readPlanned, readUsed } from "./standing.ts"
import { authorizationsOf } from "./transactions.ts"

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
const decodeLog = decoder(Schema.extend(ContractLog, Schema.Struct({ transactionHash: Hash })))

const logsOf = ({ logs }: Pick<Paid, "logs">) => logs.flatMap((log) => Option.toArray(Either.getRight(decodeLog(log))))

/** The transfers of tokens in a receipt. */
const transfersOf = (receipt: Pick<Paid, "logs">): ReadonlyArray<TokenTransfer> => logsOf(receipt).flatMap(transferIn)

type Authorized = ReturnType<typeof authorizationsOf>[number]

/** Whether it is the event by which the token says that it carried out this very authorization: others may have its nonce. */
const isUse = (
  { address, topics: [kind, by, of] }: typeof ContractLog.Type,
  { message: { from, nonce }, token: { contract } }: Authorized
): boolean =>
  isSameAddress(address, contract) && kind === usedEvent && of === nonce && isSameAddress(`0x${by?.slice(26)}`, from)

/** Whether a receipt has that event. */
const carries = (receipt: Paid, one: Authorized): boolean =>
  hasSucceeded(receipt) && logsOf(receipt).some((log) => isUse(log, one))

/** Blocks in one search for authorizations that somebody else has carried out, nonces in one, and searches at most. */
const searched = 1_000
const noncesAtOnce = 50
const mostSearches = 2_000

/** The transactions that carried out authorizations, by the places of their moves: between the plan and their end. */
const whoUsed = Effect.fnUntraced(function* (
  client: RpcClient,
  plan: Plan,
  wanted: ReadonlyArray<Authorized>,
  head: PricedHead
) {
  const found = new Map<number, string>()
  // Blocks may come twice as fast as they usually do.
  const blocksOf = (seconds: number) => Math.ceil((seconds * 2) / chainTraits[plan.chain].blockSeconds)
  const first = Math.max(0, plan.block.number - blocksOf(mostApart))
  const until = Math.min(head.number, plan.block.number + blocksOf(plan.validBefore - plan.block.time))
  let searches = 0
  for (const part of Arr.chunksOf(wanted, noncesAtOnce)) {
    const address = [...new Set(part.map(({ token }) => token.contract))]
    const topics = [usedEvent, null, part.map(({ message }) => message.nonce)]
    for (let from = first; from <= until && searches < mostSearches; from += searched) {
      searches += 1
      const [logs] = yield* sendBatch(client, [
        getLogs(from, Math.min(until, from + searched - 1), { address, topics })
      ])
      for (const log of logsOf({ logs })) {
        const one = part.find((each) => isUse(log, each))
        if (one !== undefined) found.set(one.place, log.transactionHash)
      }
    }
  }
  return found
})

/** Wei that a transaction has paid. */
const feeOf = ({ effectiveGasPrice, gasUsed, l1Fee }: Paid): bigint => gasUsed * effectiveGasPrice + (l1Fee ?? 0n)

/** A transaction that is in a block, or was given up. */
export interface Pursued {
  readonly ready: Ready
  readonly mined: MinedAt | undefined
  /** The step that was sent last; undefined where none was. */
  readonly step: number | undefined
  /** It was not to be sent, or not again. */
  readonly isWithheld: boolean
}

const readFacts = Effect.fnUntraced(function* (client: RpcClient, plan: Plan, all: ReadonlyArray<Pursued>) {
  const calls = all.flatMap(({ mined }) => (mined === undefined ? [] : [getPaid(mined.hash)]))
  const own = yield* sendInBatches(client, calls, 20)
  const [head] = yield* sendBatch(client, [getPricedHead])
  const holdings = yield* readPlanned(client, plan, head)
  const used = yield* readUsed(client, plan)
  const receipts = new Map<string, Paid>(own.map((receipt) => [receipt.transactionHash, receipt]))
  /** By the place of a move: the transaction that made it. */
  const madeBy = new Map(all.flatMap(({ mined, ready }) => ready.moves.map((place) => [place, mined?.hash ?? ""])))
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
  const blocks = [...new Set(Array.from(receipts.values(), ({ blockNumber }) => blockNumber))]
  const headers = yield* sendInBatches(client, blocks.map(getHeader), 20)
  const times = new Map(headers.map(({ number, time }) => [number, time]))
  const timeOf = (block: number): number => times.get(block) ?? head.time
  return {
    ...{ receipts, madeBy, holdings, used, timeOf, headTime: head.time },
    own: new Set(own.map(({ transactionHash }) => transactionHash))
  }
})

type BroadcastFacts = Effect.Effect.Success<ReturnType<typeof readFacts>>

const Units = Schema.String.pipe(Schema.pattern(/^\d{1,78}$/))

/** What the account of a broadcast says; all amounts are in base units. */
export const SweepResult = Schema.Struct({
  digest: Schema.String,
  /** What went from an address to its receiver; `amount` is what was received, `refund` what it pays. */
  transfers: Schema.Array(
    Schema.Struct({
      ...{ hash: Schema.String, place: Schema.NonNegativeInt, address: Schema.String, to: Schema.String },
      ...{ currency: Schema.String, amount: Units, refund: Schema.optional(RefundId) },
      /** The time of its block, Unix seconds. */
      at: Schema.NonNegativeInt,
      /** Of the address's own transaction. */
      nonce: Schema.optional(Schema.NonNegativeInt)
    })
  ),
  /** The refunds that were begun and are not sent any more. */
  unsent: Schema.Array(RefundId),
  /** What each transaction of the broadcast has paid, also those that failed or brought gas to an address: wei. */
  gas: Schema.Array(
    Schema.Struct({
      ...{ hash: Schema.String, payer: Schema.String, to: Schema.String, wei: Units },
      /** The time of its block, Unix seconds. */
      at: Schema.NonNegativeInt
    })
  ),
  /** `cameMeanwhile`: what came to the addresses; it stays too, and is in no other sum. */
  totals: Schema.Array(
    Schema.Struct({
      ...{ currency: Schema.String, decimals: Schema.NonNegativeInt, before: Units, received: Units, gas: Units },
      ...{ stayed: Units, cameMeanwhile: Units }
    })
  ),
  /** What is not as it should be at an address. */
  differences: Schema.Array(
    Schema.Struct({ address: Schema.String, currency: Schema.String, amount: Units, why: Schema.String })
  )
})
export type SweepResult = typeof SweepResult.Type
export type SweepTotal = SweepResult["totals"][number]
type SweptTransfer = SweepResult["transfers"][number]
type PaidGas = SweepResult["gas"][number]
type SweepDifference = SweepResult["differences"][number]

/** What each move brought to its receiver, and by which transaction; those that were not made are missing. */
const receivedBy = (plan: Plan, all: ReadonlyArray<Pursued>, { madeBy, receipts }: BroadcastFacts) => {
  const found = new Map<number, { readonly hash: string; readonly amount: bigint; readonly block: number }>()
  /** What no move has taken yet: each transfer serves one. */
  const left = new Map(Array.from(receipts, ([hash, receipt]) => [hash, [...transfersOf(receipt)]]))
  const take = (place: number, fits: (amount: bigint, planned: bigint) => boolean) => {
    const move = plan.moves[place]
    const hash = madeBy.get(place) ?? ""
    const receipt = receipts.get(hash)
    if (found.has(place) || move === undefined || receipt === undefined || !hasSucceeded(receipt)) return
    const block = receipt.blockNumber
    const contract = tokenOf(plan, move)?.contract
    if (contract === undefined) {
      const sent = all.find(({ mined }) => mined?.hash === hash)
      found.set(place, { hash, amount: sent?.ready.variants[sent.mined?.step ?? 0]?.value ?? 0n, block })
      return
    }
    const transfers = left.get(hash) ?? []
    const at = transfers.findIndex(
      ({ amount, from, to, ...one }) =>
        isSameAddress(one.contract, contract) &&
        isSameAddress(from, move.address) &&
        isSameAddress(to, receiverOf(plan, move)) &&
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

/** What was there when the broadcast began: base units by `holdingKey`. */
export interface Beginning {
  readonly block: number
  readonly left: ReadonlyArray<number>
  readonly before: Readonly<Record<string, string>>
}

/** What should be where now: base units by `holdingKey`. */
const expectedNow = (plan: Plan, all: ReadonlyArray<Pursued>, { block, before }: Beginning, facts: BroadcastFacts) => {
  const expected = new Map(Object.entries(before).map(([key, amount]) => [key, BigInt(amount)]))
  const take = (currency: string, address: string, amount: bigint) => {
    const key = holdingKey(currency, address)
    const has = expected.get(key)
    if (has !== undefined) expected.set(key, has - amount)
  }
  for (const receipt of facts.receipts.values()) {
    if (receipt.blockNumber <= block && !facts.own.has(receipt.transactionHash)) continue
    for (const { amount, contract, from } of transfersOf(receipt)) {
      const token = plan.tokens.find((one) => isSameAddress(one.contract, contract))
      if (token !== undefined) take(token.symbol, from, amount)
    }
  }
  for (const { mined, ready } of all) {
    const receipt = mined === undefined ? undefined : facts.receipts.get(mined.hash)
    if (mined === undefined || receipt === undefined) continue
    take(plan.coin, ready.from, feeOf(receipt))
    const { to = "", value = 0n } = ready.variants[mined.step] ?? {}
    if (!hasSucceeded(receipt)) continue
    take(plan.coin, ready.from, value)
    take(plan.coin, to ?? "", -value)
  }
  return expected
}

const sumOf = (amounts: Iterable<bigint>): bigint => [...amounts].reduce((sum, amount) => sum + amount, 0n)

/** Adds a broadcast up, by what one provider says. */
const accountBy = (
  plan: Plan,
  all: ReadonlyArray<Pursued>,
  beginning: Beginning,
  facts: BroadcastFacts
): SweepResult => {
  const made = receivedBy(plan, all, facts)
  const senders = new Map(all.flatMap((one) => one.ready.moves.map((place) => [place, one] as const)))
  const differences: Array<SweepDifference> = []
  const transfers: Array<SweptTransfer> = []
  const unsent: Array<RefundId> = []
  const received: Array<readonly [currency: string, amount: bigint]> = []
  for (const [place, move] of plan.moves.entries()) {
    const { nonce, refund, token: currency = plan.coin } = move
    // A plan may have them in lower case, by which no payment is found.
    const [address, to] = [getAddress(move.address), getAddress(receiverOf(plan, move))]
    const done = made.get(place)
    const lacks = BigInt(move.amount) - (done?.amount ?? 0n)
    if (lacks > 0n) {
      const one = senders.get(place)
      const isSigned = move.way === "authorization"
      const mayCome = one?.step !== undefined && (isSigned ? facts.headTime < plan.validBefore : one.isWithheld)
      const until = isSigned ? ` until ${iso(plan.validBefore * 1000)}` : ""
      const warning = mayCome ? `; it was sent, and may still be made${until}: do not pay it otherwise before` : ""
      const why = facts.used.get(place)
        ? `its authorization was carried out otherwise: look in a block explorer for ${facts.madeBy.get(place) ?? "who did"}`
        : beginning.left.includes(place)
          ? "it was left out"
          : `it was not moved: its transaction failed, or was given up${warning}`
      differences.push({ address, currency, amount: `${lacks}`, why: done ? "its token kept it as a fee" : why })
      const isUnsent = !(done || mayCome || facts.used.get(place) || beginning.left.includes(place))
      if (refund !== undefined && isUnsent) unsent.push(refund)
    }
    if (done === undefined) continue
    const { amount, block, hash } = done
    transfers.push({ hash, place, address, to, currency, amount: `${amount}`, refund, at: facts.timeOf(block), nonce })
    // What somebody else had carried out before was no longer there when this began.
    if (block > beginning.block || facts.own.has(hash)) received.push([currency, amount])
  }
  const rows = Array.from(expectedNow(plan, all, beginning, facts), ([key, expected]) => {
    const [currency = "", address = ""] = key.split(" ")
    const has = facts.holdings.get(key) ?? 0n
    // More went than was there: a reorg had brought it back.
    const back = expected < 0n ? -expected : 0n
    const due = expected + back
    const came = has > due ? has - due : 0n
    return { currency, address, before: BigInt(beginning.before[key] ?? 0) + back, due, came, stayed: has - came }
  })
  for (const { address, currency, due, stayed } of rows) {
    if (stayed === due) continue
    const why = "something else took it from there"
    differences.push({ address: getAddress(address), currency, amount: `${due - stayed}`, why })
  }
  const gas = all.flatMap(({ mined, ready }): PaidGas | [] => {
    const receipt = facts.receipts.get(mined?.hash ?? "")
    if (mined === undefined || receipt === undefined) return []
    const [payer, to] = [getAddress(ready.from), getAddress(ready.variants[mined.step]?.to ?? zeroAddress)]
    return { hash: mined.hash, payer, to, wei: `${feeOf(receipt)}`, at: facts.timeOf(receipt.blockNumber) }
  })
  const totals = [{ symbol: plan.coin, decimals: 18 }, ...plan.tokens].map(({ decimals, symbol }): SweepTotal => {
    const own = rows.filter(({ currency }) => currency === symbol)
    return {
      currency: symbol,
      decimals,
      before: `${sumOf(own.map(({ before }) => before))}`,
      received: `${sumOf(received.flatMap(([currency, amount]) => (currency === symbol ? [amount] : [])))}`,
      gas: `${symbol === plan.coin ? sumOf(gas.map(({ wei }) => BigInt(wei))) : 0n}`,
      stayed: `${sumOf(own.map(({ stayed }) => stayed))}`,
      cameMeanwhile: `${sumOf(own.map(({ came }) => came))}`
    }
  })
  return { digest: plan.digest, transfers, unsent, gas, totals, differences }
}

const textOf = (value: unknown): string => JSON.stringify(value)
const withoutLater = (totals: ReadonlyArray<SweepTotal>) => totals.map(({ cameMeanwhile: _, ...total }) => total)

/** Adds a broadcast up, by what two providers say now, where there are two. What one alone says is a difference. */
export const accountFor = Effect.fn("Collect.accountFor")(function* (
  access: ChainAccess,
  plan: Plan,
  all: ReadonlyArray<Pursued>,
  beginning: Beginning
) {
  const facts = yield* readingBy(access, { mustBeTwo: true }, (client) => readFacts(client, plan, all))
  const [first, second = first] = Arr.map(facts, (each) => accountBy(plan, all, beginning, each))
  const isSame = (one: unknown, other: unknown) => textOf(one) === textOf(other)
  const isOfBoth = (one: SweptTransfer) => second.transfers.some((other) => isSame(one, other))
  const gas = first.gas.filter((one) => second.gas.some((other) => isSame(one, other)))
  const unsent = first.unsent.filter((one) => second.unsent.includes(one))
  const differences: Array<SweepDifference> = Arr.unionWith(first.differences, second.differences, isSame)
  const why = "providers differ on it: run this again, and look in a block explorer if that lasts"
  for (const { address, amount, currency } of first.transfers.filter((one) => !isOfBoth(one))) {
    differences.push({ address, currency, amount, why })
  }
  if (differences.length === 0 && !isSame(withoutLater(first.totals), withoutLater(second.totals))) {
    differences.push({ address: plan.sponsor.address, currency: plan.coin, amount: "0", why })
  }
  const result: SweepResult = { ...first, transfers: first.transfers.filter(isOfBoth), unsent, gas, differences }
  return result
})
