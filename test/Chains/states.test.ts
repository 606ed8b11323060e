import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import type { Asked } from "../../src/Chains/balances.ts"
import { makeClient, type RpcReason } from "../../src/Chains/Rpc.ts"
import { pointAt, statesOf } from "../../src/Chains/states.ts"
import { alice, firstAsked } from "./oracleWorld.ts"
import { errorOf } from "./providing.ts"

/** A node that knows an address by these answers, or fails each time. */
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
const states = (first: RpcReason, depth: number, others = [rich]) =>
  pointAt({ provider: node("first", first), others, at }, alice, at.number - depth)

describe("the state of an old block", () => {
  const gone = ["state", "refused", "unsupported"] as const
  const ofOldNodes = ["missing", "garbage"] as const

  it.effect("is asked of others where the first does not have it, however it says so", () =>
    Effect.gen(function* () {
      for (const reason of gone) {
        expect(yield* states(reason, 1)).toEqual({ number: 999, balance: 9n, nonce: 2 })
      }
      for (const reason of ofOldNodes) {
        expect(yield* states(reason, 129)).toEqual({ number: 871, balance: 9n, nonce: 2 })
      }
    })
  )

  it.effect("is one that every node has, a few blocks back: words of old nodes are errors there", () =>
    Effect.gen(function* () {
      for (const reason of ofOldNodes) {
        expect(yield* Effect.flip(states(reason, 128))).toMatchObject({ host: "first", reason })
      }
    })
  )

  it.effect("is not taken for gone where the provider is in trouble", () =>
    Effect.gen(function* () {
      for (const reason of ["timeout", "unreachable", "rate_limited", "http", "inconsistent", "behind"] as const) {
        expect(yield* Effect.flip(states(reason, 500))).toMatchObject({ host: "first", reason })
      }
    })
  )

  it.effect("is gone where no other has it either, whatever keeps them", () =>
    Effect.gen(function* () {
      const others = [node("second", "state"), node("third", "timeout")]
      expect(yield* states("state", 1, others)).toBeUndefined()
      expect(yield* states("state", 1, [])).toBeUndefined()
      expect(yield* states("state", 1, [...others, rich])).toMatchObject({ balance: 9n })
    })
  )
})

describe("the states of those whose balance has changed", () => {
  it.effect("are each their own, in as many batches as it takes", () =>
    Effect.gen(function* () {
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
      const asked = Array.from({ length: 100 }, (_, i): readonly [Asked, bigint] => [
        firstAsked(`0x${String(i).padStart(40, "0")}`),
        BigInt(i)
      ])
      const found = yield* statesOf(client, at, asked)
      expect(found).toEqual(
        asked.map(([one], i) => [
          one,
          { point: { number: 1_000, balance: BigInt(i), nonce: 2 * i }, dispute: undefined }
        ])
      )
      expect(sizes).toEqual([90, 90, 20])
    })
  )

  it.effect("are disputed where the two answers differ, and the smaller is the one to go by", () =>
    Effect.gen(function* () {
      for (const first of [8n, 10n]) {
        const [found] = yield* statesOf(rich.client, at, [[firstAsked(alice), first]])
        expect(found?.[1].point.balance).toBe(first < 9n ? first : 9n)
        expect(found?.[1].dispute).toMatchObject({ host: "rich", reason: "inconsistent" })
        expect(found?.[1].dispute?.detail).toContain(`${first} in one answer and 9 in the next`)
      }
    })
  )
})
