import { expect, it } from "@effect/vitest"
import { Effect, Fiber, HashMap, Layer, Logger, LogLevel, Option, Redacted, TestClock } from "effect"
import { insertWallet, walletContext } from "../../../src/Auth/AccountsRepo.ts"
import type { AddressHistory } from "../../../src/Chains/balances/AddressHistory.ts"
import type { Owner } from "../../../src/Domain/Account.ts"
import type { ChainName } from "../../../src/Domain/Chain.ts"
import { AccountId } from "../../../src/Domain/Ids.ts"
import { Addresses, refuseSharedWallets } from "../../../src/Payments/addresses/Addresses.ts"
import { Secrets } from "../../../src/Secrets.ts"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import * as Sql from "../../../src/Sql.ts"
import { Tx, Writer } from "../../../src/Sql.ts"
import { liveTest, scopedTest } from "../../lib/scopedTest.ts"
import { liveXpub, testSettingsLayer, testXpub } from "../../lib/settings.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { addShop, byTwo, owner, running, runningWith, shop, take, takeFor, takeMany, wallet } from "./addressing.ts"

/** A test on the test clock. */
const test = scopedTest(Layer.empty)

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

test("a chain that could not be asked about addresses is asked again a minute later", function* () {
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
})

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

liveTest("a wallet that was used elsewhere is looked through until 200 in a row are unused", function* () {
  const path = yield* temporaryDatabase
  const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)
  // All of the first eighty, and then some, each in sight of the one before.
  const { asked, vet } = knowing([...upTo(80), 81, 280, 479])
  expect(yield* firstOf(path, vet)).toBe(80)
  expect(asked.reduce((sum, count) => sum + count, 0)).toBe(480 + 200)
  expect(asked.length).toBeLessThanOrEqual(4)
  expect(yield* firstOf(path, vet)).toBe(82)
})

liveTest("histories on reachable chains count while another chain is unreachable", function* () {
  const path = yield* temporaryDatabase
  const { vet } = knowing(
    Array.from({ length: 300 }, (_, i) => i),
    ["base"]
  )
  expect(yield* firstOf(path, vet)).toBe(300)
})

/** Layers are built, and questions answered, after some turns of the event loop. */
const layersAreUp = Effect.repeatN(
  Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
  500
)

test("the first payment waits at most five seconds for the chains, and skips what has been found by then", function* () {
  const path = yield* temporaryDatabase
  const hangs: AddressHistory["Type"]["vet"] = (_mode, _addresses, found) =>
    Effect.zipRight(
      Effect.sync(() => found(byTwo([wallet.address(0), wallet.address(1)]))),
      Effect.never
    )
  const first = yield* Effect.fork(firstOf(path, hangs))
  yield* layersAreUp
  yield* TestClock.adjust("4900 millis")
  yield* layersAreUp
  expect(first.unsafePoll()).toBeNull()
  yield* TestClock.adjust("200 millis")
  expect(yield* Fiber.join(first)).toBe(2)
})

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

const indexOf = new Map(Array.from({ length: 2000 }, (_, index) => [wallet.address(index), index]))

/** A chain of which one provider alone reports a history of all addresses; the last index of each question. */
const alone = (path: string) => {
  const asked: Array<number> = []
  const errors: Array<unknown> = []
  const vet: AddressHistory["Type"]["vet"] = (_mode, addresses, found) =>
    Effect.sync(() => {
      asked.push(indexOf.get(addresses.at(-1) ?? "") ?? Number.NaN)
      found({ chain: "base", addresses, isConfirmed: false })
      return []
    })
  const logger = Logger.make(({ annotations, logLevel }) => {
    if (logLevel === LogLevel.Error) errors.push(Option.getOrUndefined(HashMap.get(annotations, "chain")))
  })
  return { asked, errors, layer: Layer.provideMerge(runningWith(path, vet), Logger.add(logger)) }
}

test("uncorroborated reports of a provider skip 1,000 indexes in all, however many payments follow", function* () {
  const path = yield* temporaryDatabase
  const { asked, errors, layer } = alone(path)
  yield* Effect.gen(function* () {
    const addresses = yield* Addresses
    yield* Effect.forkScoped(addresses.run)
    yield* addresses.ready(owner)
    const indexes: Array<number> = []
    for (let i = 0; i < 3; i++) {
      indexes.push((yield* take).index)
      yield* TestClock.adjust("1 hour")
      yield* layersAreUp
    }
    expect(indexes).toEqual([1000, 1001, 1002])
    expect(asked.length).toBeGreaterThan(3)
    expect(Math.max(...asked)).toBeLessThan(1300)
    expect(errors).toEqual(["base"])
  }).pipe(Effect.scoped, Effect.provide(layer))
})

test("an uninterruptible create waits until the chains have responded, and no longer", function* () {
  const path = yield* temporaryDatabase
  yield* Effect.gen(function* () {
    const addresses = yield* Addresses
    const caller = yield* Effect.fork(Effect.uninterruptible(addresses.ready(owner)))
    yield* layersAreUp
    const ended = yield* Fiber.poll(caller)
    yield* TestClock.adjust("5 seconds")
    yield* Fiber.join(caller)
    expect(Option.isSome(ended)).toBe(true)
  }).pipe(Effect.provide(runningWith(path, () => Effect.succeed([]))))
})

/** Accounts with wallets of their own, and then a start, which is refused with a message or not. */
const startWith = (own: ReadonlyArray<readonly [id: string, mode: "live" | "test", xpub: string]>) =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const wallets = { live: undefined, test: Redacted.make(testXpub) }
    const layer = Layer.provideMerge(Sql.layer(path), testSettingsLayer(path, { wallets }))
    return yield* Effect.gen(function* () {
      const { write } = yield* Writer
      for (const [id, mode, xpub] of own) {
        const { fingerprint } = hdWallet(xpub)
        const make = Effect.flatMap(Tx, (tx) =>
          tx.run("INSERT INTO accounts (id, name, created_at) VALUES (?, 'Shop', 0) ON CONFLICT DO NOTHING", [id])
        )
        const sealed = new Uint8Array([1])
        yield* write(Effect.zipRight(make, insertWallet(AccountId.make(id), { mode, fingerprint, sealed })))
      }
      return yield* Effect.match(Effect.scoped(Layer.build(refuseSharedWallets)), {
        onFailure: ({ message }) => message,
        onSuccess: () => undefined
      })
    }).pipe(Effect.provide(layer))
  }).pipe(Effect.scoped)

const inConfiguration = "account acct_shop (live) and the configuration (wallets.test)"
const inTwoAccounts = "account acct_one (live) and account acct_two (test)"

it.live.each([
  ["that the configuration has in the other mode", [["acct_shop", "live", testXpub]], inConfiguration],
  [
    "that two accounts use in different modes",
    [
      ["acct_one", "live", liveXpub],
      ["acct_two", "test", liveXpub]
    ],
    inTwoAccounts
  ]
] as const)("a start with a wallet %s is refused, and the key is not shown", ([, own, users]) =>
  Effect.gen(function* () {
    const message = yield* startWith(own)
    expect(message).toContain(users)
    expect(message).not.toContain(own[0][2].slice(0, 12))
  })
)

liveTest("a wallet may be shared in one mode", function* () {
  const own = [
    ["acct_one", "live", liveXpub],
    ["acct_two", "live", liveXpub],
    ["acct_three", "test", testXpub]
  ] as const
  expect(yield* startWith(own)).toBeUndefined()
})
