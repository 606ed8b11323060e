import { expect, it } from "@effect/vitest"
import { Effect, TestClock, TestContext } from "effect"
import * as fc from "fast-check"
import { getAddress, type Hex } from "viem"
import type { RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import { Chains } from "../../../src/Chains.ts"
import { eventLoopTurn } from "../../../src/Sql/eventLoopTurn.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { ModelChain, modelRpc } from "../ModelChain.ts"
import { chainSettings, committedTo, ledger, notingSettlement, pay, until, watch, world } from "../world.ts"

const address = (n: number): string => getAddress(`0x${(n + 1).toString(16).padStart(40, "0")}` as Hex)
const contract = (n: number): string => `0x${n.toString(16).padStart(40, "c")}`
const settings = chainSettings({
  tokens: [{ symbol: "USDC", address: contract(1), decimals: 6 }],
  wrongTokens: [{ name: "USDC.e", address: contract(2) }]
})
const currencies = new Map([
  [undefined, "ETH"],
  [contract(1), "USDC"],
  [contract(2), "USDC.e"]
])

interface Transaction {
  readonly payment: number
  readonly value: bigint
  readonly fails: boolean
  readonly token: string | undefined
}

type Step =
  | { readonly does: "mine"; readonly blocks: ReadonlyArray<ReadonlyArray<Transaction>> }
  | { readonly does: "reorg"; readonly depth: number; readonly again: boolean; readonly more: number }
  | { readonly does: "fail"; readonly reason: RpcReason | undefined }
  | { readonly does: "fallBehind"; readonly blocks: number }
  | { readonly does: "lie"; readonly call: number }
  | { readonly does: "pay" }
  | { readonly does: "goBack" }
  | { readonly does: "wait"; readonly seconds: number; readonly turns: number }
  | { readonly does: "restart" }

const transaction = fc.record({
  payment: fc.nat(20),
  value: fc.oneof({ weight: 5, arbitrary: fc.bigInt({ min: 1n, max: 10n ** 20n }) }, fc.constant(0n)),
  fails: fc.constantFrom(false, false, false, true),
  token: fc.constantFrom(undefined, contract(1), contract(2), contract(3))
})
const weighted = (weight: number, arbitrary: fc.Arbitrary<Step>) => ({ weight, arbitrary })
const block = fc.array(transaction, { maxLength: 3 })
const step = fc.oneof(
  weighted(6, fc.record({ does: fc.constant("mine"), blocks: fc.array(block, { minLength: 1, maxLength: 6 }) })),
  weighted(
    3,
    fc.record({
      does: fc.constant("reorg"),
      depth: fc.integer({ min: 1, max: 6 }),
      again: fc.boolean(),
      more: fc.nat(3)
    })
  ),
  weighted(
    1,
    fc.record({
      does: fc.constant("fail"),
      reason: fc.constantFrom<RpcReason | undefined>(undefined, "timeout", "unreachable")
    })
  ),
  weighted(1, fc.record({ does: fc.constant("fallBehind"), blocks: fc.nat(5) })),
  weighted(1, fc.record({ does: fc.constant("lie"), call: fc.nat(9) })),
  weighted(2, fc.constant({ does: "pay" })),
  weighted(
    6,
    fc.record({
      does: fc.constant("wait"),
      seconds: fc.constantFrom(1, 1, 1, 5, 61),
      // From the middle of a tick to well after it.
      turns: fc.constantFrom(0, 1, 2, 3, 5, 8, 40, 40)
    })
  ),
  weighted(1, fc.constant({ does: "goBack" })),
  weighted(1, fc.constant({ does: "restart" }))
)

const start = 10
const second = TestClock.adjust("1 second")
const health = Effect.flatMap(Chains, (chains) => chains.health)

const pass = (seconds: number, turns: number) =>
  Effect.zipRight(TestClock.adjust(`${seconds} seconds`), Effect.repeatN(eventLoopTurn, turns))

/** The expected ledger at the end: every payment on the chain to a watched address, once. */
const expected = (chain: ModelChain, payments: number) => {
  const receivers = new Set(Array.from({ length: payments }, (_, n) => address(n).toLowerCase()))
  return chain.blocks
    .flatMap((block) =>
      block.transactions.map((one, i) => ({
        ...one,
        // Each transaction writes one log.
        position:
          one.token === undefined
            ? `tx:${i}`
            : `log:${one.hash}:${currencies.get(one.token)}:${one.value.toString()}:0`,
        block
      }))
    )
    .filter(({ fails, to, token, value }) => fails !== true && value > 0n && receivers.has(to) && currencies.has(token))
    .map(({ block, position, token, value }) =>
      [block.hash, position, currencies.get(token), value.toString()].join(" ")
    )
    .sort()
}

/** Applies a step to the chain or the node. */
const change = (chain: ModelChain, one: Step, payments: number): void => {
  if (one.does === "mine") {
    for (const transactions of one.blocks) {
      const paying = transactions.filter(() => payments > 0)
      const hash = () => `0x${(chain.made++).toString(16).padStart(64, "0")}`
      chain.mine(
        ...paying.map(({ payment, ...rest }) => ({
          ...rest,
          hash: hash(),
          to: address(payment % payments).toLowerCase()
        }))
      )
    }
  } else if (one.does === "reorg") {
    // Nothing is read below the first head.
    const depth = Math.min(one.depth, chain.height - start)
    const dropped = chain.blocks.slice(chain.blocks.length - depth).flatMap((block) => block.transactions)
    chain.rollback(depth)
    for (let i = 1; i < depth; i++) chain.mine()
    chain.mine(...(one.again ? dropped : []))
    for (let i = 0; i < one.more; i++) chain.mine()
  } else if (one.does === "goBack") {
    chain.returnToLastBranch()
  } else if (one.does === "fail") {
    chain.failure = one.reason
  } else if (one.does === "fallBehind") {
    chain.behind = one.blocks
  } else if (one.does === "lie") {
    let calls = one.call
    chain.distort = (_, answer) => {
      if (calls-- !== 0) return answer
      return Array.isArray(answer) ? [...answer, { topics: 7 }] : null
    }
  }
}

/** Runs the steps on one database file, with a new world after each restart. */
const play = (steps: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const chain = new ModelChain(start)
    const inWorld = Effect.provide(world(path, [settings], modelRpc({ "model:ethereum": chain }), notingSettlement))
    yield* Effect.scoped(inWorld(Effect.zipRight(watch, committedTo(start))))
    let payments = 0
    chain.slow = true

    let left = steps
    while (left.length > 0) {
      const restart = left.findIndex(({ does }) => does === "restart")
      const life = restart < 0 ? left : left.slice(0, restart)
      left = restart < 0 ? [] : left.slice(restart + 1)
      yield* Effect.gen(function* () {
        yield* watch
        for (const one of life) {
          if (one.does === "pay") yield* pay(address(payments++))
          else if (one.does === "wait") yield* pass(one.seconds, one.turns)
          else change(chain, one, payments)
        }
      }).pipe(inWorld, Effect.scoped)
    }

    return yield* Effect.gen(function* () {
      chain.failure = undefined
      chain.behind = 0
      chain.distort = (_, answer) => answer
      // The watcher waits while the branch is shorter than what was read.
      chain.mineMany(8)
      yield* watch
      yield* Effect.raceFirst(
        until(health, ([now]) => now?.head === chain.height && now.lagBlocks === 0 && now.reason === undefined),
        Effect.forever(second)
      )
      const rows = yield* ledger
      const canonical = rows.filter((row) => row.canonical === 1)
      expect(canonical.map((row) => [row.block_hash, row.position, row.currency, row.amount].join(" ")).sort()).toEqual(
        expected(chain, payments)
      )
    }).pipe(inWorld, Effect.scoped)
  })

it("the ledger ends equal to the chain after reorgs, failures, wrong responses and restarts", () =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), (steps) =>
      Effect.runPromise(play([{ does: "pay" }, ...steps]).pipe(Effect.scoped, Effect.provide(TestContext.TestContext)))
    ),
    { numRuns: 30 }
  ))
