/** What one provider says of a broadcast: which transaction made each move, and what is where now. */
import { Array as Arr, Effect, Either, Option, Schema } from "effect"
import { toEventSelector } from "viem"
import { type Call, decoder, getHeader, getLogs, Hash, sendBatch, sendInBatches } from "../Chains/rpc/methods.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import { getPricedHead, type PricedHead } from "../Chains/rpc/sendingMethods.ts"
import { ContractLog, type TokenTransfer, transferIn } from "../Chains/rpc/tokenTransfer.ts"
import { hasSucceeded, receiptReader } from "../Chains/rpc/transactionMethods.ts"
import { isSameAddress } from "../Domain/Address.ts"
import { chainTraits } from "../Domain/Chain.ts"
import { mostApart, type Plan } from "./Plan.ts"
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
export const transfersOf = (receipt: Pick<Paid, "logs">): ReadonlyArray<TokenTransfer> =>
  logsOf(receipt).flatMap(transferIn)

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
export const feeOf = ({ effectiveGasPrice, gasUsed, l1Fee }: Paid): bigint =>
  gasUsed * effectiveGasPrice + (l1Fee ?? 0n)

/** A transaction that is in a block, or was given up. */
export interface Pursued {
  readonly ready: Ready
  readonly mined: MinedAt | undefined
  /** The step that was sent last; undefined where none was. */
  readonly step: number | undefined
  /** It was not to be sent, or not again. */
  readonly isWithheld: boolean
}

export const readFacts = Effect.fnUntraced(function* (client: RpcClient, plan: Plan, all: ReadonlyArray<Pursued>) {
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

export type BroadcastFacts = Effect.Effect.Success<ReturnType<typeof readFacts>>
