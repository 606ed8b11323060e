import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Redacted } from "effect"
import type { BalanceQuery } from "../../../src/Chains/balances/discrepancy.ts"
import { pointAt, statesOf } from "../../../src/Chains/balances/historicalStates.ts"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import type { RpcClient, RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import { RpcError, type RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { nodeClient, replies } from "../../sim/nodeClient.ts"
import { hex } from "../../sim/transactions.ts"
import { errorOf } from "../providing.ts"
import { older } from "../twisted.ts"
import { BalanceModel, direct } from "./BalanceModel.ts"
import { alice, base, depsOf, firstAsked } from "./reconcileWorld.ts"
import { modelStory } from "./story.ts"

/** A node with these responses about an address, or that fails each time. */
const node = (host: string, answers: RpcReason | { readonly balance: number; readonly nonce: number }) => ({
  client: nodeClient(host, (calls) =>
    typeof answers === "string"
      ? errorOf(host, answers)
      : replies(host, calls, ({ method }) => hex(method === "eth_getBalance" ? answers.balance : answers.nonce))
  )
})

const at = { number: 1_000, hash: "0xhead", time: 0 }
const rich = node("rich", { balance: 9, nonce: 2 })
const [pruned, silent] = [node("second", "state"), node("third", "timeout")]

it.effect.each<
  [
    string,
    firsts: ReadonlyArray<RpcReason>,
    depth: number,
    others: ReadonlyArray<typeof rich>,
    outcome: "rich" | "fails" | undefined
  ]
>([
  ["read from another provider where the first has pruned it", ["state", "refused", "unsupported"], 1, [rich], "rich"],
  ["so too by the errors of old nodes, far back", ["missing", "garbage"], 129, [rich], "rich"],
  ["on every node a few blocks back: those errors fail there", ["missing", "garbage"], 128, [rich], "fails"],
  ["not pruned by an error about something else", ["timeout", "unreachable", "rate_limited"], 500, [rich], "fails"],
  ["nor by another one", ["http", "inconsistent", "behind"], 500, [rich], "fails"],
  ["undefined where no other provider has it, whatever its error", ["state"], 1, [pruned, silent], undefined],
  ["undefined without another provider", ["state"], 1, [], undefined],
  ["read from the only one that has it", ["state"], 1, [pruned, silent, rich], "rich"]
])("the state of an old block is %s", ([, firsts, depth, others, outcome]) =>
  Effect.gen(function* () {
    for (const reason of firsts) {
      const number = at.number - depth
      const sources = { provider: node("first", reason), others, at, hashes: new Map([[number, "0xold"]]) }
      const expected = {
        rich: Either.right({ number, balance: 9n, nonce: 2 }),
        fails: Either.left(expect.objectContaining({ host: "first", reason }))
      }
      const found = yield* Effect.either(pointAt(sources, alice, number))
      expect(found).toEqual(outcome === undefined ? Either.right(undefined) : expected[outcome])
    }
  })
)

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
    // Of each address its own number, and twice that.
    const client = nodeClient("counting", (calls) => {
      sizes.push(calls.length)
      return replies("counting", calls, ({ method, params: [address] }) =>
        hex(Number(String(address).slice(-4)) * (method === "eth_getBalance" ? 1 : 2))
      )
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
