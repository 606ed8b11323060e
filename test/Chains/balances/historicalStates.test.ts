import { describe, expect } from "@effect/vitest"
import { Effect, Either, Redacted } from "effect"
import type { BalanceQuery } from "../../../src/Chains/balances/discrepancy.ts"
import { pointAt, statesOf } from "../../../src/Chains/balances/historicalStates.ts"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import { makeClient, type RpcClient, type RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import { RpcError, type RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { errorOf } from "../providing.ts"
import { older } from "../twisted.ts"
import { BalanceModel, direct } from "./BalanceModel.ts"
import { alice, base, depsOf, firstAsked } from "./reconcileWorld.ts"
import { modelStory } from "./story.ts"

/** A node with these responses about an address, or that fails each time. */
const node = (host: string, answers: RpcReason | { readonly balance: number; readonly nonce: number }) => ({
  client: makeClient({
    host,
    counters: { calls: 0, batches: 0, sent: 0, received: 0 },
    sendEach: (calls) =>
      typeof answers === "string"
        ? errorOf(host, answers)
        : Effect.succeed(
            calls.map(({ method }) =>
              Either.right(`0x${(method === "eth_getBalance" ? answers.balance : answers.nonce).toString(16)}`)
            )
          )
  })
})

const at = { number: 1_000, hash: "0xhead", time: 0 }
const rich = node("rich", { balance: 9, nonce: 2 })
const states = (first: RpcReason, depth: number, others = [rich]) => {
  const hashes = new Map([[at.number - depth, "0xold"]])
  return pointAt({ provider: node("first", first), others, at, hashes }, alice, at.number - depth)
}

describe("the state of an old block", () => {
  const gone = ["state", "refused", "unsupported"] as const
  const ofOldNodes = ["missing", "garbage"] as const

  modelStory("is read from another provider where the first has pruned it, however its error says so", function* () {
    for (const reason of gone) {
      expect(yield* states(reason, 1)).toEqual({ number: 999, balance: 9n, nonce: 2 })
    }
    for (const reason of ofOldNodes) {
      expect(yield* states(reason, 129)).toEqual({ number: 871, balance: 9n, nonce: 2 })
    }
  })

  modelStory(
    "must exist on every node a few blocks back: old nodes' errors for pruned states fail there",
    function* () {
      for (const reason of ofOldNodes) {
        expect(yield* Effect.flip(states(reason, 128))).toMatchObject({ host: "first", reason })
      }
    }
  )

  modelStory("does not count as pruned on another error of the provider", function* () {
    for (const reason of ["timeout", "unreachable", "rate_limited", "http", "inconsistent", "behind"] as const) {
      expect(yield* Effect.flip(states(reason, 500))).toMatchObject({ host: "first", reason })
    }
  })

  modelStory("is undefined where no other provider has it either, whatever its error", function* () {
    const others = [node("second", "state"), node("third", "timeout")]
    expect(yield* states("state", 1, others)).toBeUndefined()
    expect(yield* states("state", 1, [])).toBeUndefined()
    expect(yield* states("state", 1, [...others, rich])).toMatchObject({ balance: 9n })
  })
})

describe("the state of a block (issue 14 row 14: by hash)", () => {
  const sourcesOf = (client: RpcClient, head: BlockRef) => ({
    provider: { client },
    others: [],
    at: head,
    hashes: new Map<number, string>()
  })
  /** Block 1 has 5 for alice, and a branch that was replaced had 60; block 2 follows. */
  const forked = (edit: (call: RpcRequest, answer: unknown) => unknown) => {
    const model = new BalanceModel("branch")
    const old = new BalanceModel("other branch")
    model.mine([direct(alice, 5n)])
    old.mine([direct(alice, 60n)])
    model.mine([])
    const client: RpcClient = {
      ...model.client,
      send: (calls) =>
        Effect.flatMap(model.client.send(calls), (answers) =>
          Effect.forEach(answers, (answer, i) => {
            const edited = edit(calls[i] ?? { method: "", params: [] }, answer)
            return edited instanceof RpcError ? edited : Effect.succeed(edited)
          })
        )
    }
    return { client, head: model.head, oldHash: old.head.hash }
  }
  const isByNumber = ({ method, params }: RpcRequest) => method === "eth_getBalance" && typeof params[1] === "string"

  modelStory("is never of another branch, which a node behind a load balancer has at the same number", function* () {
    const { client, head } = forked((call, answer) => (isByNumber(call) ? "0x3c" : answer))
    expect(yield* pointAt(sourcesOf(client, head), alice, 1)).toEqual({ number: 1, balance: 5n, nonce: 0 })
  })

  modelStory("is read by number where a node refuses hashes, and must be of the same block", function* () {
    const refused = new RpcError({ host: "model", method: "eth_getBalance", reason: "refused", detail: "an object" })
    const byHash = ({ params }: RpcRequest) => typeof params[1] === "object"
    const plain = forked((call, answer) => (byHash(call) ? refused : answer))
    expect(yield* pointAt(sourcesOf(plain.client, plain.head), alice, 1)).toMatchObject({ balance: 5n })
    let headers = 0
    const mixed = forked((call, answer) => {
      if (byHash(call)) return refused
      const isOld = call.method === "eth_getBlockByNumber" && Number(call.params[0]) === 1 && headers++ > 0
      return isOld ? { ...(answer as object), hash: mixed.oldHash } : answer
    })
    expect(yield* Effect.flip(pointAt(sourcesOf(mixed.client, mixed.head), alice, 1))).toMatchObject({
      reason: "inconsistent",
      detail: expect.stringContaining("its block 1 is ")
    })
  })

  modelStory("is of the branch of the round's block, or the read fails", function* () {
    const { client, head } = forked((_, answer) => answer)
    const replaced = { ...head, hash: `0x${"9".repeat(64)}` }
    expect(yield* Effect.flip(pointAt(sourcesOf(client, replaced), alice, 1))).toMatchObject({
      reason: "inconsistent"
    })
  })
})

describe("the states of addresses whose balance has changed", () => {
  modelStory("are matched to their addresses over several batches", function* () {
    const sizes: Array<number> = []
    const client = makeClient({
      host: "counting",
      counters: { calls: 0, batches: 0, sent: 0, received: 0 },
      sendEach: (calls) => {
        sizes.push(calls.length)
        // Its own number, and twice that.
        return Effect.succeed(
          calls.map(({ method, params: [address] }) => {
            const n = Number(String(address).slice(-4))
            return Either.right(`0x${(method === "eth_getBalance" ? n : 2 * n).toString(16)}`)
          })
        )
      }
    })
    const asked = Array.from({ length: 100 }, (_, i): readonly [BalanceQuery, bigint] => [
      firstAsked(`0x${String(i).padStart(40, "0")}`),
      BigInt(i)
    ])
    const found = yield* statesOf(client, at, asked)
    expect(found).toEqual(
      asked.map(([one], i) => [one, { point: { number: 1_000, balance: BigInt(i), nonce: 2 * i }, dispute: undefined }])
    )
    expect(sizes).toEqual([90, 90, 20])
  })

  modelStory("are disputed where the two responses differ, with the smaller balance", function* () {
    for (const first of [8n, 10n]) {
      const [found] = yield* statesOf(rich.client, at, [[firstAsked(alice), first]])
      expect(found?.[1].point.balance).toBe(first < 9n ? first : 9n)
      expect(found?.[1].dispute).toMatchObject({ host: "rich", reason: "inconsistent" })
      expect(found?.[1].dispute?.detail).toContain(`${first} in one answer and 9 in the next`)
    }
  })
})

// A provider that reports too much from before the payment hides what came.
describe("what an address held before its payment", () => {
  const model = new BalanceModel("past")
  model.mine([direct(alice, 50n)])
  model.mine([])
  const ofTwo = { ...base, rpcUrls: ["a", "b"].map((url) => Redacted.make(url)) }

  modelStory("hides no money by the report of one provider alone", function* () {
    const deps = { ...depsOf(older(model, 50n), [model.client]), chain: ofTwo }
    const { failed, transfers } = yield* reconcileBalances(deps, model.head, [firstAsked(alice)])
    expect(failed).toEqual([])
    expect(transfers.map(({ amount, blockNumber }) => [amount, blockNumber])).toEqual([[50n, 1]])
  })

  modelStory(
    "is not believed while no other provider responds: the address is retried, and nothing stored",
    function* () {
      const deps = { ...depsOf(older(model, 50n)), chain: ofTwo }
      const own = yield* reconcileBalances(deps, model.head, [firstAsked(alice)])
      expect(own).toMatchObject({ transfers: [], rows: [], failed: [{ address: alice, givenUp: false }] })
      // On a chain that the payment is not meant for, too.
      const elsewhere = yield* reconcileBalances(deps, model.head, [{ ...firstAsked(alice), own: false }])
      expect(elsewhere).toMatchObject({ transfers: [], rows: [], failed: [{ address: alice }] })
    }
  )

  modelStory("does not count according to two providers, or to the only one", function* () {
    const two = { ...depsOf(older(model, 50n), [older(model, 50n)]), chain: ofTwo }
    for (const deps of [two, depsOf(older(model, 50n))]) {
      const { failed, rows, transfers } = yield* reconcileBalances(deps, model.head, [firstAsked(alice)])
      expect([failed, transfers]).toEqual([[], []])
      expect(rows).toMatchObject([{ address: alice, balance: 50n }])
    }
  })
})
