import { expect, it } from "@effect/vitest"
import { Effect, TestContext } from "effect"
import * as fc from "fast-check"
import { address, around, bridged, lookAlike, second, upTo, usdc } from "../around.ts"
import { coin, ModelChain, type ModelTransaction } from "../ModelChain.ts"
import { pay, watch } from "../world.ts"
import { checkpoint, claimOf, damage, rescanFrom, rows, start } from "./repairing.ts"

const payees = 3
const transaction = fc
  .record({
    payee: fc.nat(payees),
    value: fc.bigInt({ min: 0n, max: 5n }),
    fails: fc.constantFrom(false, false, true),
    contract: fc.constantFrom(undefined, undefined, usdc, bridged, lookAlike)
  })
  .map(
    ({ contract, fails, payee, value }): ModelTransaction => coin(address(payee + 1), value, { fails, token: contract })
  )
const repair = fc.oneof(
  fc.record({ does: fc.constant("rescan" as const), from: fc.nat(20), blocks: fc.nat(10) }),
  fc.record({ does: fc.constant("claim" as const), which: fc.nat(50) })
)

/** A chain with these blocks that was read, in a world whose ledger is damaged, and then repaired as the steps say. */
const play = (
  blocks: ReadonlyArray<ReadonlyArray<ModelTransaction>>,
  choices: ReadonlyArray<"keep" | "drop" | "forget">,
  repairs: ReadonlyArray<typeof repair extends fc.Arbitrary<infer A> ? A : never>
) => {
  const chain = new ModelChain(start)
  return Effect.gen(function* () {
    for (let n = 1; n <= payees; n++) yield* pay(address(n))
    yield* watch
    yield* upTo(start)
    // The same transaction is in one block only.
    const made = blocks.map((block) => block.map((one) => ({ ...one, hash: coin(one.to, 0n).hash })))
    for (const block of made) chain.mine(...block)
    const { height } = chain
    const hashes = made.flat().map(({ hash }) => hash)
    yield* Effect.raceFirst(upTo(height), Effect.forever(second))
    const whole = yield* rows
    const read = yield* checkpoint

    yield* damage(choices)
    for (const step of repairs) {
      if (step.does === "claim") yield* Effect.ignore(claimOf(hashes[step.which % Math.max(1, hashes.length)] ?? ""))
      else {
        const from = Math.min(step.from, height)
        yield* rescanFrom(from, Math.min(from + step.blocks, height))
      }
    }
    // In either order: each finds everything it can.
    yield* Effect.forEach(hashes.slice(0, 3), (hash) => Effect.ignore(claimOf(hash)), { concurrency: 1 })
    yield* rescanFrom(0)
    expect(yield* rows).toEqual(whole)
    const again = yield* rescanFrom(0)
    expect(again.added).toBe(0)
    for (const hash of hashes) {
      const { added } = yield* claimOf(hash).pipe(Effect.catchTag("RepairRefused", () => Effect.succeed({ added: 0 })))
      expect(added).toBe(0)
    }
    expect(yield* rows).toEqual(whole)
    expect(yield* checkpoint).toEqual(read)
  }).pipe(around(chain))
}

it("a repair restores whatever the ledger lost, counts nothing twice, and changes nothing else", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(transaction, { maxLength: 3 }), { minLength: 1, maxLength: 6 }),
      fc.array(fc.constantFrom("keep" as const, "drop" as const, "forget" as const), { minLength: 1, maxLength: 8 }),
      fc.array(repair, { maxLength: 4 }),
      (blocks, choices, repairs) =>
        Effect.runPromise(play(blocks, choices, repairs).pipe(Effect.scoped, Effect.provide(TestContext.TestContext)))
    ),
    { numRuns: 25 }
  ))
