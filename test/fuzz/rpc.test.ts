import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import { median } from "../bench/Figure.ts"
import { fuzzAnswers } from "./rpc/fuzzAnswers.ts"

const seed = 3

// `npm run test:long` makes 4,000 and `npm run test:fuzz` 20,000, of a new seed each time.
it.live(
  "1,500 answers of a provider, nearly all of them wrong: none ends the watcher, no money comes or goes by them, none is kept",
  () =>
    Effect.gen(function* () {
      const { counts, faults, garbage, heaps, leftBehind, lives, made, waiting } = yield* fuzzAnswers(seed, 1_500)
      expect(faults).toEqual([])
      expect(made).toBeGreaterThanOrEqual(1_500)
      // The outcomes that the responses must reach, or they test nothing.
      const methods = ["eth_chainId", "eth_getBlockByNumber", "eth_getLogs", "eth_getBalance", "eth_call"]
      for (const name of ["value", "lie", "envelope", "text", "fault", "size", "nothing", ...methods]) {
        expect([name, (counts.get(name) ?? 0) > 3]).toEqual([name, true])
      }
      expect(garbage).toBeGreaterThan(made / 10)
      // Two of each life's three payments are paid.
      expect(waiting).toBeLessThan(lives / 2)
      // What each adds to the chain and the store among it.
      expect(median(leftBehind)).toBeLessThan(64 * 1024)
      const half = Math.floor(heaps.length / 2)
      expect(median(heaps.slice(half)) / median(heaps.slice(0, half))).toBeLessThan(1.5)
    }).pipe(Effect.provide(Rpc.layer))
)

it.live("a seed determines its responses", () =>
  Effect.gen(function* () {
    const [first, again] = [yield* fuzzAnswers(7, 100), yield* fuzzAnswers(7, 100)]
    expect(again.counts).toEqual(first.counts)
    expect(again.garbage).toBe(first.garbage)
  }).pipe(Effect.provide(Rpc.layer))
)
