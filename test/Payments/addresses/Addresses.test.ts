import { expect, it } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"
import { insertWallet, walletContext } from "../../../src/Auth/AccountsRepo.ts"
import type { AddressHistory } from "../../../src/Chains/balances/AddressHistory.ts"
import type { Owner } from "../../../src/Domain/Account.ts"
import type { ChainName } from "../../../src/Domain/Chain.ts"
import { AccountId } from "../../../src/Domain/Ids.ts"
import { Addresses } from "../../../src/Payments/addresses/Addresses.ts"
import { Secrets } from "../../../src/Secrets.ts"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { liveTest } from "../../lib/scopedTest.ts"
import { liveXpub, testXpub } from "../../lib/settings.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { addShop, byTwo, owner, running, runningWith, shop, take, takeFor, takeMany, wallet } from "./addressing.ts"

liveTest("200 concurrent payments get the first 200 addresses of the wallet", function* () {
  const path = yield* temporaryDatabase
  const taken = yield* Effect.provide(takeMany(200), running(path))
  expect(taken.map(({ index }) => index).sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i))
  for (const { address, index } of taken) expect(address).toBe(wallet.address(index))
})

liveTest("an account with its own wallets gets none of the operator's where it lacks one", function* () {
  const path = yield* temporaryDatabase
  const refused = Effect.zipRight(addShop(liveXpub, "live"), Effect.flip(takeFor(shop)))
  const answer = yield* Effect.provide(refused, running(path))
  expect(answer).toMatchObject({ _tag: "WalletNotConfigured", mode: "test" })
})

liveTest("a command that is refused gives its address back, also the first one of a wallet", function* () {
  const path = yield* temporaryDatabase
  yield* Effect.gen(function* () {
    yield* addShop(liveXpub)
    const writer = yield* Writer
    const addresses = yield* Addresses
    const refused = Effect.zipRight(addresses.take(shop), Effect.fail("refused"))
    yield* Effect.flip(writer.write(refused))
    expect((yield* takeFor(shop)).index).toBe(0)
  }).pipe(Effect.provide(running(path)))
})

liveTest("accounts that share a wallet, and get their first payments in one commit, skip nothing", function* () {
  const path = yield* temporaryDatabase
  const again: Owner = { account: AccountId.make("again"), mode: "test" }
  yield* Effect.gen(function* () {
    yield* addShop(liveXpub)
    const { seal } = yield* Secrets
    const writer = yield* Writer
    const { fingerprint } = hdWallet(liveXpub)
    const sealed = seal(liveXpub, walletContext(again.account, "test"))
    yield* writer.write(
      Effect.zipRight(
        Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO accounts (id, name, created_at) VALUES ('again', 'Again', 0)")),
        insertWallet(again.account, { mode: "test", fingerprint, sealed })
      )
    )
    const both = yield* Effect.all([takeFor(shop), takeFor(again)], { concurrency: "unbounded" })
    expect(both.map(({ index }) => index)).toEqual([0, 1])
  }).pipe(Effect.provide(running(path)))
})

liveTest("addresses with a history are skipped once they are known", function* () {
  const path = yield* temporaryDatabase
  const used = [0, 1, 3, 4, 5].map((index) => wallet.address(index))
  const taken = yield* Effect.gen(function* () {
    const addresses = yield* Addresses
    yield* Effect.forkScoped(addresses.run)
    // The round of vetting has come to its end when the writer has had a few turns: it waits for nothing else.
    const writer = yield* Writer
    yield* Effect.repeatN(writer.write(Effect.void), 50)
    return yield* takeMany(3)
  }).pipe(Effect.scoped, Effect.provide(running(path, used)))
  expect(taken.map(({ index }) => index)).toEqual([2, 6, 7])
})

it.effect("a chain that could not be asked about addresses is asked again a minute later", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    let rounds = 0
    const layer = runningWith(path, (_mode, _addresses, found) =>
      Effect.sync(() => {
        rounds += 1
        if (rounds === 1) return ["base"]
        found(byTwo([wallet.address(0)]))
        return []
      })
    )
    yield* Effect.gen(function* () {
      const addresses = yield* Addresses
      const writer = yield* Writer
      yield* Effect.forkScoped(addresses.run)
      yield* Effect.repeatN(writer.write(Effect.void), 50)
      yield* TestClock.adjust("59 seconds")
      expect(rounds).toBe(1)
      yield* TestClock.adjust("1 second")
      yield* Effect.repeatN(writer.write(Effect.void), 50)
      expect((yield* take).index).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(layer))
  }).pipe(Effect.scoped)
)

/** Chains that know these indexes of the wallet, what they are asked, and one of them that does not respond. */
const knowing = (indexes: ReadonlyArray<number>, unreachable: ReadonlyArray<ChainName> = []) => {
  const used = new Set(indexes.map((index) => wallet.address(index)))
  const asked: Array<number> = []
  const vet: AddressHistory["Type"]["vet"] = (_mode, addresses, found) =>
    Effect.sync(() => {
      asked.push(addresses.length)
      found(byTwo(addresses.filter((address) => used.has(address))))
      return unreachable
    })
  return { asked, vet }
}

const firstOf = (path: string, vet: AddressHistory["Type"]["vet"]) =>
  Effect.gen(function* () {
    const addresses = yield* Addresses
    yield* addresses.ready(owner)
    return (yield* take).index
  }).pipe(Effect.scoped, Effect.provide(runningWith(path, vet)))

liveTest(
  "a wallet that was used elsewhere is looked through until 200 in a row are unused, before its first payment",
  function* () {
    const path = yield* temporaryDatabase
    const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)
    // All of the first eighty, and then some, each in sight of the one before.
    const { asked, vet } = knowing([...upTo(80), 81, 280, 479])
    expect(yield* firstOf(path, vet)).toBe(80)
    expect(asked.reduce((sum, count) => sum + count, 0)).toBe(480 + 200)
    expect(asked.length).toBeLessThanOrEqual(4)
    expect(yield* firstOf(path, vet)).toBe(82)
  }
)

liveTest("histories on reachable chains count while another chain is unreachable", function* () {
  const path = yield* temporaryDatabase
  const { vet } = knowing(
    Array.from({ length: 300 }, (_, i) => i),
    ["base"]
  )
  expect(yield* firstOf(path, vet)).toBe(300)
})

it.effect("the first payment waits at most five seconds for the chains, and skips what has been found by then", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const hangs: AddressHistory["Type"]["vet"] = (_mode, _addresses, found) =>
      Effect.zipRight(
        Effect.sync(() => found(byTwo([wallet.address(0), wallet.address(1)]))),
        Effect.never
      )
    const first = yield* Effect.fork(firstOf(path, hangs))
    const layersAreUp = Effect.repeatN(
      Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
      500
    )
    yield* layersAreUp
    yield* TestClock.adjust("4900 millis")
    yield* layersAreUp
    expect(first.unsafePoll()).toBeNull()
    yield* TestClock.adjust("200 millis")
    expect(yield* Fiber.join(first)).toBe(2)
  }).pipe(Effect.scoped)
)

liveTest("accounts on one extended public key share the numbering, and each mode needs a wallet", function* () {
  const path = yield* temporaryDatabase
  yield* Effect.gen(function* () {
    yield* addShop(testXpub)
    expect((yield* take).index).toBe(0)
    expect((yield* takeFor(shop)).index).toBe(1)
    expect((yield* take).index).toBe(2)
    const refused = yield* Effect.flip(takeFor({ ...shop, mode: "live" }))
    expect(refused).toMatchObject({ _tag: "WalletNotConfigured", mode: "live" })
  }).pipe(Effect.provide(running(path)))
})
