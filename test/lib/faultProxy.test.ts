import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import { request } from "undici"
import { transferTopic } from "../../src/Chains/rpc/methods.ts"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import type { RpcError } from "../../src/Chains/rpc/RpcError.ts"
import { startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { faultNames, type PassingFault, plansOf, providersWords, startFaultProxy } from "./faultProxy.ts"
import { liveTestOn } from "./scopedTest.ts"

const test = liveTestOn(Rpc.layer)
const payee = "0x00000000000000000000000000000000000a11ce"

/** A chain with two transfers in its last two blocks, a proxy in front of it, and a client of the proxy. */
const setUp = Effect.gen(function* () {
  const chain = yield* startLocalChain({ chain: "base", chainId: 31_341, tokens: ["USDC"] })
  for (const amount of [1n, 2n]) {
    yield* chain.payToken({ symbol: "USDC", to: payee, amount })
    yield* chain.mine()
  }
  const proxy = yield* startFaultProxy(chain.url)
  const rpc = yield* Rpc
  const { send } = rpc.client(Redacted.make(proxy.url))
  const call = (method: string, ...params: ReadonlyArray<unknown>) =>
    Effect.map(send([{ method, params }]), ([result]) => result)
  return { chain, proxy, send, call }
})

type World = Effect.Effect.Success<typeof setUp>
const hex = (value: number) => `0x${value.toString(16)}`
const head = ({ call }: World) => Effect.map(call("eth_blockNumber"), Number)
const logs = ({ call }: World, last: number) =>
  Effect.map(
    call("eth_getLogs", {
      fromBlock: "0x0",
      toBlock: hex(last),
      topics: [transferTopic, null, `0x${payee.slice(2).padStart(64, "0")}`]
    }),
    (found) => (found as ReadonlyArray<unknown>).length
  )
const headerHash = ({ call }: World, number: number) =>
  Effect.map(call("eth_getBlockByNumber", hex(number), false), (block) => (block as { hash: string } | null)?.hash)

const reason = (effect: Effect.Effect<unknown, RpcError>, expected: RpcError["reason"]) =>
  Effect.map(Effect.flip(effect), (error) => expect(error.reason).toBe(expected))

/** What each fault shows itself by. */
const shows: Readonly<Record<PassingFault, (world: World) => Effect.Effect<unknown, unknown>>> = {
  delay: (world) =>
    Effect.map(Effect.timed(head(world)), ([took]) => expect(Duration.toMillis(took)).toBeGreaterThanOrEqual(300)),
  hang: (world) => reason(head(world), "timeout"),
  drop: (world) => reason(head(world), "unreachable"),
  tooManyRequests: (world) => reason(head(world), "rate_limited"),
  truncatedJson: (world) => reason(head(world), "garbage"),
  rangeLimit: (world) => reason(logs(world, 10), "range"),
  logLimit: (world) => reason(logs(world, 10), "range"),
  staleHead: (world) =>
    Effect.gen(function* () {
      const before = yield* world.chain.head
      yield* world.chain.mine(3)
      expect(yield* head(world)).toBe(before.number)
      expect(yield* headerHash(world, before.number + 1)).toBeUndefined()
      expect(yield* headerHash(world, before.number)).toBe(before.hash)
    }),
  balancer: (world) =>
    Effect.gen(function* () {
      const heads = yield* Effect.replicateEffect(head(world), 4, { concurrency: 1 })
      expect(heads[2]).toBe(heads[0])
      expect(Math.abs((heads[0] ?? 0) - (heads[1] ?? 0))).toBe(2)
    }),
  emptyLogs: (world) => Effect.map(logs(world, 99), (found) => expect(found).toBe(0)),
  partialLogs: (world) => Effect.map(logs(world, 99), (found) => expect(found).toBe(1)),
  wrongHash: (world) =>
    Effect.gen(function* () {
      const { hash, number } = yield* world.chain.head
      const said = yield* headerHash(world, number)
      expect(said).not.toBe(hash)
      expect(yield* headerHash(world, number)).toBe(said)
    }),
  wrongChain: ({ call }) => Effect.map(call("eth_chainId"), (id) => expect(id).toBe("0x539")),
  prunedState: (world) =>
    Effect.gen(function* () {
      const last = yield* head(world)
      const balance = (number: number) => world.call("eth_getBalance", payee, hex(number))
      yield* world.chain.mine(1)
      expect(yield* balance(last)).toBe("0x0")
      expect((yield* Effect.flip(balance(last - 2))).detail).toContain("missing trie node")
    })
}

const unaltered = (world: World) =>
  Effect.gen(function* () {
    const { chain, proxy } = world
    yield* proxy.set()
    const { hash, number } = yield* chain.head
    expect(yield* head(world)).toBe(number)
    expect(yield* headerHash(world, number)).toBe(hash)
    expect(yield* logs(world, number)).toBe(2)
    expect(yield* world.call("eth_chainId")).toBe(hex(chain.chainId))
    expect(yield* world.call("eth_getBalance", payee, "0x0")).toBe("0x0")
  })

describe("a fault", () => {
  for (const fault of faultNames) {
    test(`${fault} shows while it is switched on, and no longer`, function* () {
      const world = yield* setUp
      yield* unaltered(world)
      yield* world.proxy.set(fault)
      yield* shows[fault](world)
      yield* unaltered(world)
    })
  }

  test("of too many requests says when to retry", function* () {
    const { proxy } = yield* setUp
    yield* proxy.set("tooManyRequests", { retryAfterSeconds: 7 })
    const answered = yield* Effect.promise(() => request(proxy.url, { method: "POST", body: "[]" }))
    expect(answered).toMatchObject({ statusCode: 429, headers: { "retry-after": "7" } })
    yield* Effect.promise(() => answered.body.dump())
  })

  test("of a range is worded as each provider words it, and lets through what fits", function* () {
    const world = yield* setUp
    const said = new Set<string>()
    for (const words of providersWords) {
      yield* world.proxy.set("rangeLimit", { words, blocks: 5 })
      said.add((yield* Effect.flip(logs(world, 5))).detail)
      expect(yield* logs(world, 4)).toBe(2)
    }
    expect(said.size).toBe(providersWords.length)
  })
})

describe("a seed", () => {
  const first = (seed: number, options?: Parameters<typeof plansOf>[1]) => {
    const next = plansOf(seed, options)
    return Array.from({ length: 1_000 }, () => next().fault)
  }

  it("gives the same faults each time, and others than another seed", () => {
    expect(first(7)).toEqual(first(7))
    expect(first(7)).not.toEqual(first(8))
  })

  it("leaves none of the faults out, and strikes as often as configured", () => {
    expect(new Set(first(7))).toEqual(new Set([undefined, ...faultNames]))
    const struck = first(7, { faults: ["drop"], share: 0.1 }).filter((fault) => fault === "drop")
    expect(Math.abs(struck.length - 100)).toBeLessThan(30)
  })

  test("drives the proxy", function* () {
    const { call, proxy } = yield* setUp
    yield* proxy.schedule(3, { faults: ["wrongChain"], share: 0.5 })
    const ids = yield* Effect.replicateEffect(call("eth_chainId"), 20, { concurrency: 1 })
    const next = plansOf(3, { faults: ["wrongChain"], share: 0.5 })
    expect(ids.map((id) => (id === "0x539" ? "wrongChain" : undefined))).toEqual(ids.map(() => next().fault))
    expect(proxy.count("eth_chainId")).toBe(20)
  })
})
