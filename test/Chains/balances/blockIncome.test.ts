import { describe, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { getAddress } from "viem"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import { errorOf } from "../providing.ts"
import { distorted as distortedBy } from "../twisted.ts"
import { BalanceModel, direct, fee, inside, nothing, spends } from "./BalanceModel.ts"
import { alice, bob, depsOf, firstAsked } from "./reconcileWorld.ts"
import { failing, modelStory, ofFullBlock, ofTrace } from "./story.ts"

type Answer = Readonly<Record<string, unknown>>

/** The same node, which responds differently to one method. */
const distorted = (client: RpcClient, method: string, distort: (answer: Answer) => unknown): RpcClient =>
  distortedBy(client, (call, answer) => (call.method === method ? distort(answer as Answer) : answer))

/** The same node, whose transactions in full blocks are altered. */
const withTransactions = ({ client }: BalanceModel, over: Answer) =>
  distortedBy(client, (call, answer) => {
    const transactions = ofFullBlock(call) ? (answer as { transactions: ReadonlyArray<Answer> }).transactions : []
    return ofFullBlock(call)
      ? { ...(answer as Answer), transactions: transactions.map((one) => ({ ...one, ...over })) }
      : answer
  })

/** What a round with this node finds of alice. */
const look = (model: BalanceModel, client: RpcClient = model.client) =>
  Effect.map(reconcileBalances(depsOf(client), model.head, [firstAsked(alice)]), ({ failed, transfers }) => ({
    failed: failed.map(({ error }) => error),
    income: transfers
      .map(({ amount, blockNumber, position }) => `${blockNumber} ${position.replace(/0x\w+/, "?")} ${amount}`)
      .sort()
  }))

const other = `0x${"1".repeat(64)}`
const fullBlocksOf = (model: BalanceModel) => model.calls.filter(ofFullBlock).length

describe("a transaction read from a node", () => {
  const paid = () => {
    const model = new BalanceModel("paid")
    model.mine([direct(alice, 5n)])
    return model
  }

  modelStory("is rejected when its receipt is of another block or another transaction", function* () {
    const model = paid()
    for (const over of [{ blockHash: other }, { transactionHash: other }]) {
      const lying = distorted(model.client, "eth_getTransactionReceipt", (answer) => ({ ...answer, ...over }))
      expect(yield* look(model, lying)).toMatchObject({ failed: [{ reason: "inconsistent" }], income: [] })
    }
    expect(yield* look(model)).toEqual({ failed: [], income: ["1 tx:0 5"] })
  })

  modelStory("is rejected when it and its receipt name another block than the one that lists it", function* () {
    const model = paid()
    const strayed = withTransactions(model, { blockHash: other })
    const agreeing = distorted(strayed, "eth_getTransactionReceipt", (answer) => ({ ...answer, blockHash: other }))
    const { failed, income } = yield* look(model, agreeing)
    expect(income).toEqual([])
    expect(failed).toMatchObject([{ reason: "garbage" }])
    expect(failed[0]?.detail).toContain("names another block")
  })

  modelStory("is read with its addresses in mixed case", function* () {
    const model = paid()
    const written = withTransactions(model, { to: getAddress(alice) })
    expect(yield* look(model, written)).toEqual({ failed: [], income: ["1 tx:0 5"] })
  })
})

describe("a provider that does not trace", () => {
  /** Of whose traces one fails, each time that a reason is given. */
  const tracing = (model: BalanceModel, reasons: Array<RpcReason>): RpcClient => ({
    ...model.client,
    send: (calls) => {
      const reason = calls.some(ofTrace) ? reasons.shift() : undefined
      return reason === undefined ? model.client.send(calls) : errorOf("model", reason)
    }
  })
  const inner = () => {
    const model = new BalanceModel("inner")
    model.mine([inside(alice, 3n), inside(alice, 4n)])
    return model
  }
  const traced = { failed: [], income: ["1 call:? 3", "1 call:? 4"] }
  const unattributed = { failed: [], income: ["1 unattributed 7"] }

  modelStory("because of an error is asked again, and one that refuses traces again after an hour", function* () {
    const model = inner()
    const troubled = tracing(model, ["timeout"])
    expect(yield* look(model, troubled)).toEqual(unattributed)
    expect(yield* look(model, troubled)).toEqual(traced)
    const unwilling = tracing(model, ["unsupported"])
    expect(yield* look(model, unwilling)).toEqual(unattributed)
    yield* TestClock.adjust("59 minutes")
    expect(yield* look(model, unwilling)).toEqual(unattributed)
    yield* TestClock.adjust("1 minute")
    expect(yield* look(model, unwilling)).toEqual(traced)
  })

  modelStory("does not stop the next one from being asked, nor does one whose trace is empty", function* () {
    const model = inner()
    const empty = distorted(model.client, "debug_traceTransaction", (frame) => ({ ...frame, calls: [] }))
    for (const client of [tracing(model, ["timeout"]), tracing(model, ["unsupported"]), empty]) {
      const { transfers } = yield* reconcileBalances(depsOf(client, [model.client]), model.head, [firstAsked(alice)])
      expect(transfers.map(({ amount }) => amount)).toEqual([3n, 4n])
    }
  })
})

describe("a simulated block", () => {
  const word = (value: bigint | string) => `0x${BigInt(value).toString(16).padStart(64, "0")}`
  const transfer = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
  /** Of each transaction, what it moves to alice. */
  const simulating = (client: RpcClient, amounts: ReadonlyArray<bigint>): RpcClient => ({
    ...client,
    send: (calls) => {
      if (calls[0]?.method !== "eth_simulateV1") return client.send(calls)
      const logs = amounts.map((amount) => [
        { address: `0x${"e".repeat(40)}`, topics: [transfer, word(bob), word(alice)], data: word(amount) }
      ])
      return Effect.succeed([[{ calls: logs.map((one) => ({ status: "0x1", logs: one })) }]])
    }
  })

  modelStory("is used where it explains the income exactly, and not where it shows more or less", function* (model) {
    model.traces = false
    model.mine([inside(alice, 3n), inside(alice, 4n)])
    const income = (...amounts: ReadonlyArray<bigint>) =>
      Effect.map(look(model, simulating(model.client, amounts)), (found) => found.income)
    expect(yield* income(3n, 4n)).toEqual(["1 call:? 3", "1 call:? 4"])
    expect(yield* income(3n, 5n)).toEqual(["1 unattributed 7"])
    expect(yield* income(3n, 3n)).toEqual(["1 unattributed 7"])
  })

  modelStory("attributes nothing to a transaction that runs no code", function* (model) {
    model.traces = false
    model.mine([direct(alice, 3n), inside(alice, 4n)])
    const income = yield* look(model, simulating(model.client, [3n, 4n]))
    expect(income).toEqual({ failed: [], income: ["1 call:? 4", "1 tx:0 3"] })
  })
})

describe("internal transfers of two transactions in one block, one of which names the address", () => {
  const both = (over: Partial<BalanceModel> = {}) => {
    const model = Object.assign(new BalanceModel("both"), over)
    model.mine([inside(alice, 3n, [alice]), inside(alice, 4n)])
    return model
  }

  modelStory("are distinguished by traces", function* () {
    expect((yield* look(both())).income).toEqual(["1 call:? 3", "1 call:? 4"])
  })

  modelStory("are attributed to the naming one up to its traced amount where the states are pruned", function* () {
    const model = both({ states: 0 })
    model.mine([nothing])
    expect((yield* look(model)).income).toEqual(["1 call:? 3", "2 unattributed 4"])
  })

  modelStory("are attributed to the naming one where no provider traces, or the trace is empty", function* () {
    const model = both()
    const empty = distorted(model.client, "debug_traceTransaction", (frame) => ({ ...frame, calls: [] }))
    expect((yield* look(model, empty)).income).toEqual(["1 call:? 7"])
    expect((yield* look(both({ traces: false }))).income).toEqual(["1 call:? 7"])
  })
})

describe("where no provider has the states between two points", () => {
  /** `blocks` of them, the first of which pays alice directly and the last from inside. */
  const long = (blocks: number) => {
    const model = new BalanceModel("long")
    model.states = 0
    model.mine([direct(alice, 5n)])
    for (let n = 2; n < blocks; n++) model.mine([nothing])
    model.mine([inside(alice, 7n, [alice])])
    return model
  }

  modelStory("the transactions of at most five hundred blocks are read", function* () {
    const most = long(500)
    expect((yield* look(most)).income).toEqual(["1 tx:0 5", "500 call:? 7"])
    expect(fullBlocksOf(most)).toBe(500)
    const more = long(501)
    expect((yield* look(more)).income).toEqual(["501 unattributed 12"])
    expect(fullBlocksOf(more)).toBe(0)
  })

  modelStory("income that the owner has collected is still found", function* (model) {
    model.states = 0
    model.mine([direct(alice, 50n)])
    model.mine([spends(alice, 50n - fee)])
    for (let n = 0; n < 500; n++) model.mine([nothing])
    const asked = { ...firstAsked(alice), withNonce: true }
    const { transfers } = yield* reconcileBalances(depsOf(model.client), model.head, [asked])
    // It has paid a fee, and had nothing: the amount that came cannot be determined.
    expect(transfers).toMatchObject([{ position: "unattributed", amount: 1n, since: 1 }])
    // What it had by then may have been all that it has spent.
    const known = { ...asked, known: { number: 1, balance: 50n, nonce: 0, assumed: false } }
    expect((yield* reconcileBalances(depsOf(model.client), model.head, [known])).transfers).toEqual([])
  })

  modelStory("nor their blocks, income is unattributed in the last block; provider errors fail instead", function* () {
    const model = long(20)
    const refusing = (reason: RpcReason) => failing(model.client, ofFullBlock, reason)
    for (const reason of ["missing", "unsupported"] as const) {
      expect(yield* look(model, refusing(reason))).toEqual({ failed: [], income: ["20 unattributed 12"] })
    }
    expect(yield* look(model, refusing("inconsistent"))).toMatchObject({
      failed: [{ reason: "inconsistent" }],
      income: []
    })
    expect(yield* Effect.flip(look(model, refusing("timeout")))).toMatchObject({ reason: "timeout" })
  })
})
