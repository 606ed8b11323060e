import { expect } from "@effect/vitest"
import { Effect, Either, Layer, Redacted } from "effect"
import { numberToHex } from "viem"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { WatchedAddresses } from "../../src/Chains/ledger/WatchedAddresses.ts"
import { Networks } from "../../src/Chains/providers/Networks.ts"
import { RpcError } from "../../src/Chains/rpc/RpcError.ts"
import type { Owner } from "../../src/Domain/Account.ts"
import { networkKey } from "../../src/Domain/Chain.ts"
import type { PaymentException } from "../../src/Domain/Exception.ts"
import { AccountId, type PaymentId } from "../../src/Domain/Ids.ts"
import { noteRefund, type RefundRequest } from "../../src/Payments/decisions/refund.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import type { Settings } from "../../src/Settings.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { soleProvider } from "../lib/soleProvider.ts"
import { nodeClient } from "../sim/nodeClient.ts"
import {
  confirmations,
  lastOnTime,
  scanTo,
  layer as settling,
  start as startPayment,
  tick,
  transfer,
  twoChains,
  withChains
} from "./settling.ts"

export const hash = (digit: string) => `0x${digit.repeat(64)}`

/** The node's transactions, by hash; its head is block 200. */
export const mined = new Map<string, MinedHere>()
interface MinedHere {
  readonly blockNumber: number
  readonly status: "0x0" | "0x1"
  /** The coin that it moves; 1 from `sender` to nobody's address unless given. */
  readonly coin?: { readonly to?: string; readonly value?: bigint; readonly input?: string }
}
/** Who sends each of them, and who gets what they move. */
export const [sender, receiver] = [`0x${"5".repeat(40)}`, `0x${"6".repeat(40)}`] as const
const quantity = (value: number) => `0x${value.toString(16)}`
const client = nodeClient("node", (calls) =>
  Effect.succeed(
    calls.map(({ method, params }) => {
      if (method === "eth_getBlockByNumber") {
        const isHead = params[0] === "latest"
        const number = isHead ? quantity(200) : params[0]
        return Either.right({ number, hash: hash(isHead ? "e" : "b"), parentHash: hash("d"), timestamp: number })
      }
      const known = mined.get(String(params[0]))
      if (known === undefined) return Either.right(null)
      if (known.blockNumber === 0) {
        return Either.left(new RpcError({ host: "node", method, reason: "refused", detail: "no" }))
      }
      const { input = "0x", to = receiver, value = 1n } = known.coin ?? {}
      if (method === "eth_getTransactionByHash") {
        const place = { hash: params[0], blockHash: hash("b"), transactionIndex: "0x0" }
        return Either.right({ ...place, from: sender, to, value: numberToHex(value), gas: "0x5208", input })
      }
      return Either.right({
        transactionHash: params[0],
        blockHash: hash("b"),
        blockNumber: quantity(known.blockNumber),
        status: known.status,
        logs: []
      })
    })
  )
)
/** The networks whose nodes have been requested. */
export const asked: Array<string> = []
/** That node, whatever the network. */
export const nodes = Layer.succeed(Networks, {
  providersOf: (network) => {
    asked.push(networkKey(network))
    return soleProvider(client).providers
  }
})

/** A settlement beside that node, and the addresses that are watched. */
export const besideNode = <A, E, R>(settlement: Layer.Layer<A | Reader | Settings, E, R>) =>
  Layer.provideMerge(WatchedAddresses.layer, Layer.merge(settlement, nodes))
export const layer = besideNode(settling)
export const test = scopedTest(layer)
/** The same of two chains. */
export const testOfTwo = scopedTest(besideNode(twoChains))
/** The same of a chain with two providers. */
export const testOfPair = scopedTest(
  besideNode(withChains({ rpcUrls: ["http://127.0.0.1:1", "http://127.0.0.1:2"].map((url) => Redacted.make(url)) }))
)

/** Records a refund, by an operator. */
export const refunded = (id: string, request: RefundRequest = {}) => noteRefund(id, undefined, request)

/** One payment, and a node without transactions. */
export const start = Effect.zipRight(
  Effect.sync(() => {
    mined.clear()
    asked.splice(0)
  }),
  startPayment
)

/** The owner of that payment. */
export const owner: Owner = { account: AccountId.make("default"), mode: "test" }

/** The fields of a transfer whose transaction was not found. */
export const unattributed = { position: "unattributed", txHash: undefined } as const

export const look = (id: PaymentId) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const events = yield* reader.all<{ kind: string }>(
      "SELECT kind FROM events WHERE payment_id = ? AND kind <> 'payment.exception' ORDER BY sequence",
      [id]
    )
    const exceptions = yield* Exceptions.ofPayment(reader, id)
    return {
      payment: yield* Repo.byId(reader, id),
      events: events.map(({ kind }) => kind),
      exceptions: exceptions.map(({ amount, kind, status }) => `${status} ${kind} ${amount}`)
    }
  })

/** Checks a payment's status, what it has received and by which transaction, and its exceptions, in any order. */
export const stands = (id: PaymentId, state: string, ...exceptions: ReadonlyArray<string>) =>
  Effect.map(look(id), (found) => {
    const { amountReceived, failureReason, status, txHash } = found.payment ?? expect.unreachable()
    const is = [failureReason === undefined ? status : `${status}: ${failureReason}`, amountReceived, txHash]
    expect([is.filter((one) => one !== undefined).join(" "), ...found.exceptions.toSorted()]).toEqual([
      state,
      ...exceptions.toSorted()
    ])
  })

/** The first exception of a payment with these fields. */
export const exceptionOf = (id: PaymentId, fields: Partial<PaymentException> = {}) =>
  Effect.gen(function* () {
    const wanted = Object.entries(fields)
    const all = yield* Exceptions.ofPayment(yield* Reader, id)
    const found = all.find((one) => wanted.every(([field, value]) => one[field as keyof PaymentException] === value))
    return found ?? expect.unreachable(`no exception with ${wanted.join(", ")}`)
  })

/** Why a decision is refused. */
export const refusal = <A, E extends { readonly message: string }, R>(decision: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(decision), ({ message }) => message)

/** The head at which an unpaid payment ends. */
export const end = lastOnTime + confirmations

/** One payment, and its chain read up to that head, with these transfers. */
export const paidBy = (head: number, ...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.tap(start, scanTo(head, ...transfers))

/** A payment that has expired without money, and what has come since. */
export const expiredWith = (...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.tap(paidBy(end), scanTo(end + 9, ...transfers))

/** A payment that a reorg has undone. */
export const undone = Effect.tap(
  paidBy(130, transfer(120, 1000n)),
  Effect.zipRight(tick({ head: 131, ancestor: 119, finalized: 118 }), tick({ head: 132, finalized: 120 }))
)

/** The unattributed money is attributed to these transfers. */
export const attributedBy = (head: number, ...transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts WHERE position = 'unattributed'")))
    yield* scanTo(head, ...transfers)
  })
