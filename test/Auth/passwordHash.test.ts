import { expect } from "@effect/vitest"
import { Effect, Either, Fiber, TestClock } from "effect"
import {
  type Claimant,
  knownPerson,
  makePasswordHasher,
  PasswordCost,
  strangerAt
} from "../../src/Auth/passwordHash.ts"
import { AccountId, PersonId } from "../../src/Domain/Ids.ts"
import { networkOf, wideNetworkOf } from "../../src/Http/clientAddress.ts"
import { clockTest } from "../lib/scopedTest.ts"

const person = (name: string, account?: string) => ({
  id: PersonId.make(`per_${name.padEnd(22, "x")}`),
  account: account === undefined ? undefined : AccountId.make(account)
})

const ada = knownPerson(person("ada"), "192.0.2.1")
const at = (address: string) => strangerAt(networkOf(address), wideNetworkOf(address))

/** Strangers at `size` addresses, each in a separate network. */
const crowd = (size: number) =>
  Array.from({ length: size }, (_, n) => [`stranger ${n}`, at(`10.${n >> 8}.${n & 255}.1`)] as const)

type Tries = ReadonlyArray<readonly [name: string, claimant: Claimant]>

/** Passwords that are tried one after the other, the first of which is being hashed when the others come. */
const tryingAt = (cost: number) =>
  Effect.gen(function* () {
    const { verify } = yield* makePasswordHasher
    const order: Array<string> = []
    const tried = (tries: Tries) =>
      Effect.forEach(
        tries,
        ([name, claimant]) =>
          Effect.tap(
            Effect.fork(
              Effect.either(
                Effect.zipLeft(
                  verify("wrong", claimant),
                  Effect.sync(() => order.push(name))
                )
              )
            ),
            () => Effect.yieldNow()
          ),
        { concurrency: 1 }
      )
    /** The refusals of those that were not hashed, in the end. */
    const refusals = (fibers: Effect.Effect.Success<ReturnType<typeof tried>>) =>
      Effect.map(Fiber.join(Fiber.all(fibers)), (ends) =>
        ends.flatMap((end) => (Either.isLeft(end) ? [end.left.message] : []))
      )
    return { order, tried, refusals }
  }).pipe(Effect.provideService(PasswordCost, { N: 2 ** cost, r: 8, p: 1, maxmem: 160 * 1024 * 1024 }))

const trying = tryingAt(12)

clockTest("a person at a known network gets in whatever strangers do, and is next", function* () {
  const { order, refusals, tried } = yield* trying
  const strangers = yield* tried(crowd(100))
  const hers = yield* tried([["ada", ada]])
  expect(yield* refusals(hers)).toEqual([])
  expect(order.indexOf("ada")).toBeLessThanOrEqual(2)
  // One is hashed while thirty wait.
  const all = yield* refusals(strangers)
  expect([all.length, new Set(all).size]).toEqual([69, 1])
  expect(all[0]).toMatch(/^Too many people are signing in by password/)
})

clockTest("four attempts of one place wait, and eight of an account, or of the network around strangers", function* () {
  const { refusals, tried } = yield* trying
  yield* tried([["first", at("203.0.113.1")]])
  const counts: Array<number> = []
  for (const tries of [
    Array.from({ length: 9 }, () => ada),
    Array.from({ length: 9 }, () => at("2001:db8::1")),
    Array.from({ length: 40 }, (_, n) => knownPerson(person(`${n}`, "shop"), "10.0.0.1")),
    Array.from({ length: 40 }, (_, n) => at(`10.0.0.${n}`)),
    Array.from({ length: 40 }, (_, n) => at(`2001:db8:1:${n.toString(16)}::1`))
  ]) {
    const [other] = yield* tried([["other", at(`198.51.${counts.length}.1`)]])
    const refused = yield* refusals(yield* tried(tries.map((claimant) => ["one", claimant] as const)))
    counts.push(tries.length - refused.length)
    expect(refused[0]).toMatch(/^Other attempts from your network are still being checked/)
    if (other !== undefined) yield* Fiber.join(other)
  }
  expect(counts).toEqual([4, 4, 8, 8, 8])
})

clockTest("an attempt that has waited for twelve seconds is refused, and keeps no place", function* () {
  const { refusals, tried } = yield* tryingAt(17)
  const fibers = yield* tried(crowd(31))
  yield* TestClock.adjust("12 seconds")
  expect((yield* refusals(fibers)).length).toBe(30)
  expect(yield* refusals(yield* tried(crowd(2)))).toEqual([])
})
