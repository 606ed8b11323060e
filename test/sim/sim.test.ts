import { isDeepStrictEqual } from "node:util"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Dice } from "./Dice.ts"
import { Stage, seedsSteps, shrink } from "./simulate.ts"
import type { Step } from "./steps.ts"
import { kinds } from "./stories.ts"

/** What a seed does without any story. */
const plain = (seed: string) => seedsSteps(seed, { kinds: [], always: false })

const all = { kinds, always: false }

let stage: Stage
beforeAll(async () => {
  stage = await Stage.make()
})
afterAll(() => stage.close())

it("40 seeds: nothing is missed, nothing is counted twice, and everything is told", { timeout: 300_000 }, async () => {
  const failed: Array<string> = []
  for (let seed = 1; seed <= 40; seed++) {
    const why = await stage.run(String(seed), seedsSteps(String(seed)))
    if (why !== undefined) failed.push(`npm run sim -- --seed ${seed}: ${why}`)
  }
  expect(failed).toEqual([])
})

it("seeds that once failed do so no more", { timeout: 300_000 }, async () => {
  // A reorg while the second pass reads; blocks that a liar read first and alone; a provider that stands still and comes back.
  for (const seed of ["2635", "2503", "3741"]) expect(await stage.run(seed, plain(seed), false)).toBeUndefined()
  // Providers of a new chain that answer only when payments have been made and paid.
  expect(await stage.run("3", plain("3"))).toBeUndefined()
  // Coins that a reorg takes and brings again, and that their owner collects before anybody looks.
  expect(await stage.run("7000134", plain("7000134"))).toBeUndefined()
  // Dust that was late, and that a reorg mines again in time.
  expect(await stage.run("948", seedsSteps("948"))).toBeUndefined()
  // Coins seen by a later block's balance, and found again by the search before their payment ends.
  expect(await stage.run("1003082", seedsSteps("1003082"))).toBeUndefined()
  // Coins that the serving provider hides until their owner has collected a part of them.
  expect(await stage.run("1003393", seedsSteps("1003393"))).toBeUndefined()
  // One provider hides the money, and another one has other blocks: their denials do not add up.
  expect(await stage.run("1002239", seedsSteps("1002239"))).toBeUndefined()
  // Dust that one provider hides, and that the other one tells of only when its payment is to end.
  expect(await stage.run("542", seedsSteps("542"))).toBeUndefined()
  // Coins that are dust, of which the serving provider shows twice as many.
  expect(await stage.run("1001052", seedsSteps("1001052"))).toBeUndefined()
  // Coins without a transaction, of which one provider says that they came after the payment's time.
  expect(await stage.run("6681", seedsSteps("6681"))).toBeUndefined()
  // Dust that a provider shows in a block of another hash, too.
  expect(await stage.run("2769", seedsSteps("2769"))).toBeUndefined()
  // Coins that two contracts moved in one block, which nobody keeps the state of.
  expect(await stage.run("2906", seedsSteps("2906"))).toBeUndefined()
  // A deep reorg takes what the only payments were confirmed by, while nobody waits for anything.
  expect(await stage.run("5451", seedsSteps("5451"))).toBeUndefined()
  // Two providers tell the same times: the model has one of them at most.
  expect(await stage.run("1006717", seedsSteps("1006717"))).toBeUndefined()
  // Of two inventions one is denied, and who would deny the other one is gone before it can: the model does no such thing.
  for (const seed of ["5846", "13470"]) expect(await stage.run(seed, seedsSteps(seed))).toBeUndefined()
  // A clock that is set back before the first look at a chain, and one that is set right between a look and a payment: by
  // a day too much, coins that were collected are in no state any more, and every attempt at a webhook is over.
  for (const seed of ["1001490", "1000959"]) expect(await stage.run(seed, seedsSteps(seed))).toBeUndefined()
})

it("a seed has its steps", () => {
  expect(seedsSteps("7")).toEqual(seedsSteps("7"))
  expect(seedsSteps("7")).not.toEqual(seedsSteps("8"))
})

it("a kind that is left out changes no other seed", () => {
  const seeds = Array.from({ length: 200 }, (_, i) => String(i))
  const tells = (seed: string) => seedsSteps(seed, all).some((step) => "of" in step && step.of?.startsWith("dust"))
  const without = { ...all, kinds: kinds.filter((kind) => kind !== "dust") }
  const changed = seeds.filter((seed) => !isDeepStrictEqual(seedsSteps(seed, all), seedsSteps(seed, without)))
  expect(changed.length).toBeGreaterThan(2)
  expect(changed).toEqual(seeds.filter(tells))
})

it("every kind is told by some of 1,000 seeds", () => {
  const told = new Map<string, number>()
  for (let seed = 1; seed <= 1_000; seed++) {
    for (const step of seedsSteps(String(seed), all)) {
      if (step.does !== "create" || step.name === undefined) continue
      const [kind = ""] = step.name.split(" ")
      told.set(kind, (told.get(kind) ?? 0) + 1)
    }
  }
  for (const kind of kinds) expect([kind, told.get(kind) ?? 0]).toEqual([kind, expect.toSatisfy((n: number) => n >= 5)])
})

it("a failure is cut down to the steps that it needs", async () => {
  const steps = plain("12")
  const needed = [steps[3], steps[7]]
  const fails = async (some: ReadonlyArray<Step>) => needed.every((step) => step !== undefined && some.includes(step))
  expect(await shrink(steps, fails)).toEqual(needed)
})

it("dice give each name as often as its weight says", () => {
  const dice = new Dice("a seed")
  const counts = { often: 0, seldom: 0, never: 0 }
  for (let i = 0; i < 4_000; i++) counts[dice.weighted({ often: 3, seldom: 1, never: 0 })]++
  expect(counts.never).toBe(0)
  expect(counts.often / counts.seldom).toBeGreaterThan(2.5)
  expect(counts.often / counts.seldom).toBeLessThan(3.5)
})
