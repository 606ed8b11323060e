import { copyFileSync, rmSync, writeFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { insertWallet, walletContext } from "../../src/Auth/AccountsRepo.ts"
import { MatchSet } from "../../src/Chains/MatchSet.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import type { Owner } from "../../src/Domain/Owner.ts"
import { Addresses } from "../../src/Payments/Addresses.ts"
import { hdWallet } from "../../src/Payments/hdWallet.ts"
import { Secrets } from "../../src/Secrets.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { liveXpub, testXpub } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"
import {
  addShop,
  gap,
  owner,
  restore,
  running,
  runningWith,
  shop,
  take,
  takeFor,
  takeMany,
  threeTaken,
  wallet
} from "./addressing.ts"

it.live("200 at once get 200 addresses, the first of the wallet", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const taken = yield* Effect.provide(takeMany(200), running(path))
    expect(taken.map(({ index }) => index).sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i))
    for (const { address, index } of taken) expect(address).toBe(wallet.address(index))
  }).pipe(Effect.scoped)
)

it.live("a refused command gives its address back", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const writer = yield* Writer
      const addresses = yield* Addresses
      yield* Effect.flip(
        writer.write(Effect.flatMap(Tx, (tx) => Effect.zipRight(addresses.take(tx, owner), Effect.fail("refused"))))
      )
      expect((yield* take).index).toBe(0)
    }).pipe(Effect.provide(running(path)))
  }).pipe(Effect.scoped)
)

it.live("an ordinary restart skips nothing", () =>
  Effect.gen(function* () {
    const path = yield* threeTaken
    expect((yield* Effect.provide(take, running(path))).index).toBe(3)
  }).pipe(Effect.scoped)
)

const skipped = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => ({
    address: wallet.address(from + i),
    mode: "test",
    wallet_index: from + i
  }))

it.live("a restored older copy goes on where the newer one stood, and what it skips is watched from then on", () =>
  Effect.gen(function* () {
    const path = yield* threeTaken
    expect((yield* Effect.provide(gap, running(path))).rows).toEqual([])
    copyFileSync(path, `${path}.backup`)
    yield* Effect.provide(takeMany(40), running(path))
    restore(path)
    const atOnce = yield* Effect.provide(Effect.zip(take, gap), running(path))
    expect(atOnce[0].index).toBe(43)
    expect(atOnce[1]).toEqual({ rows: skipped(3, 43), watched: 40 })
    const later = yield* Effect.provide(Effect.zip(take, gap), running(path))
    expect(later[0].index).toBe(44)
    expect(later[1]).toEqual(atOnce[1])
  }).pipe(Effect.scoped)
)

it.effect("skipped addresses are watched as long as those of ended payments", () =>
  Effect.gen(function* () {
    const path = yield* threeTaken
    rmSync(`${path}.index`)
    expect((yield* Effect.provide(gap, running(path))).watched).toBe(1000)
    yield* TestClock.adjust("30 days")
    const { rows, watched } = yield* Effect.provide(gap, running(path))
    expect({ rows: rows.length, watched }).toEqual({ rows: 1000, watched: 0 })
  }).pipe(Effect.scoped)
)

it.live("without the file beside the database numbering jumps by a thousand, once", () =>
  Effect.gen(function* () {
    const path = yield* threeTaken
    rmSync(`${path}.index`)
    expect((yield* Effect.provide(take, running(path))).index).toBe(1003)
    const [{ index }, { rows }] = yield* Effect.provide(Effect.zip(take, gap), running(path))
    expect(index).toBe(1004)
    expect(rows).toEqual(skipped(3, 1003))
  }).pipe(Effect.scoped)
)

it.live("an unreadable file beside the database is no more than a missing one, and is readable from then on", () =>
  Effect.gen(function* () {
    const path = yield* threeTaken
    writeFileSync(`${path}.index`, "torn ".repeat(100))
    expect((yield* Effect.provide(take, running(path))).index).toBe(1003)
    expect((yield* Effect.provide(take, running(path))).index).toBe(1004)
  }).pipe(Effect.scoped)
)

it.live("a new database beside an old file hands out nothing again, and watches all that was handed out", () =>
  Effect.gen(function* () {
    const path = yield* threeTaken
    for (const part of ["", "-wal", "-shm"]) rmSync(`${path}${part}`, { force: true })
    const [{ index }, found] = yield* Effect.provide(Effect.zip(take, gap), running(path))
    expect(index).toBe(3)
    expect(found).toEqual({ rows: skipped(0, 3), watched: 3 })
  }).pipe(Effect.scoped)
)

it.live("a restored copy watches what it skips of an account's own wallet too", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const own = hdWallet(liveXpub)
    yield* Effect.gen(function* () {
      yield* addShop(liveXpub)
      yield* takeFor(shop)
    }).pipe(Effect.provide(running(path)))
    copyFileSync(path, `${path}.backup`)
    yield* Effect.provide(Effect.zip(takeFor(shop), takeFor(shop)), running(path))
    restore(path)
    const found = yield* Effect.provide(gap, running(path))
    expect(found.rows.map(({ address }) => address)).toEqual([own.address(1), own.address(2)])
    expect(found.watched).toBe(2)
    expect((yield* Effect.provide(takeFor(shop), running(path))).index).toBe(3)
  }).pipe(Effect.scoped)
)

it.live("what is skipped of a wallet for live payments is watched in that mode", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const own = hdWallet(liveXpub)
    const liveShop: Owner = { ...shop, mode: "live" }
    yield* Effect.provide(Effect.zipRight(addShop(liveXpub, "live"), takeFor(liveShop)), running(path))
    copyFileSync(path, `${path}.backup`)
    yield* Effect.provide(takeFor(liveShop), running(path))
    restore(path)
    const [{ rows }, matchSet] = yield* Effect.provide(Effect.zip(gap, MatchSet), running(path))
    expect(rows).toEqual([{ address: own.address(1), mode: "live", wallet_index: 1 }])
    expect([matchSet.has("live", own.address(1)), matchSet.has("test", own.address(1))]).toEqual([true, false])
  }).pipe(Effect.scoped)
)

it.live("an account with a wallet of its own gets none of the operator's where it has none", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const refused = Effect.zipRight(addShop(liveXpub, "live"), Effect.flip(takeFor(shop)))
    const answer = yield* Effect.provide(refused, running(path))
    expect(answer).toMatchObject({ _tag: "WalletNotConfigured", mode: "test" })
  }).pipe(Effect.scoped)
)

it.live("a wallet whose first payment was refused serves the next one", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      yield* addShop(liveXpub)
      const writer = yield* Writer
      const addresses = yield* Addresses
      const refused = Effect.flatMap(Tx, (tx) => Effect.zipRight(addresses.take(tx, shop), Effect.fail("refused")))
      yield* Effect.flip(writer.write(refused))
      expect((yield* takeFor(shop)).index).toBe(0)
    }).pipe(Effect.provide(running(path)))
  }).pipe(Effect.scoped)
)

it.live("a wallet that is given again after a copy from before it was first used goes on where it stood", () =>
  Effect.gen(function* () {
    const path = yield* threeTaken
    copyFileSync(path, `${path}.backup`)
    const twice = Effect.zip(takeFor(shop), takeFor(shop))
    yield* Effect.provide(Effect.zipRight(addShop(liveXpub), twice), running(path))
    restore(path)
    const both = Effect.zip(takeFor(shop), takeFor(shop), { concurrent: true })
    const again = Effect.zip(Effect.zipRight(addShop(liveXpub), both), gap)
    const [taken, { rows, watched }] = yield* Effect.provide(again, running(path))
    expect(taken.map(({ index }) => index)).toEqual([2, 3])
    const own = hdWallet(liveXpub)
    expect(rows.map(({ address }) => address)).toEqual([own.address(0), own.address(1)])
    expect(watched).toBe(2)
  }).pipe(Effect.scoped)
)

it.live("a wallet that comes back to a copy from before its account goes on where it stood", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const own = hdWallet(liveXpub)
    // It was somebody else's, who is not there any more: nobody gives its key at the start.
    const known = Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO wallets VALUES (?, 5)", [own.fingerprint]))
    yield* Effect.flatMap(Writer, (writer) => writer.write(known)).pipe(Effect.provide(running(path)))
    writeFileSync(`${path}.index`, JSON.stringify({ [own.fingerprint]: 7 }))
    const again = Effect.zip(Effect.zipRight(addShop(liveXpub), takeFor(shop)), gap)
    const [{ index }, { rows, watched }] = yield* Effect.provide(again, running(path))
    expect(index).toBe(7)
    expect(rows.map(({ address }) => address)).toEqual([own.address(5), own.address(6)])
    expect(watched).toBe(2)
    rmSync(`${path}.index`)
    expect((yield* Effect.provide(takeFor(shop), running(path))).index).toBe(1008)
  }).pipe(Effect.scoped)
)

it.live("accounts that share a wallet, and are first paid in one commit, jump over nothing", () =>
  Effect.gen(function* () {
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
          Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO accounts VALUES ('again', 'Again', 0)")),
          insertWallet(again.account, { mode: "test", fingerprint, sealed })
        )
      )
      const both = yield* Effect.all([takeFor(shop), takeFor(again)], { concurrency: "unbounded" })
      expect(both.map(({ index }) => index)).toEqual([0, 1])
    }).pipe(Effect.provide(running(path)))
  }).pipe(Effect.scoped)
)

it.live("an address with a history is skipped once it is known", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const layer = running(path, [wallet.address(0), wallet.address(2)])
    const indexes = yield* Effect.gen(function* () {
      const addresses = yield* Addresses
      yield* Effect.forkScoped(addresses.run)
      // The round of vetting has come to its end when the writer has had a few turns: it waits for nothing else.
      const writer = yield* Writer
      yield* Effect.repeatN(writer.write(Effect.void), 50)
      return yield* Effect.replicateEffect(
        Effect.map(take, ({ index }) => index),
        3,
        { concurrency: 1 }
      )
    }).pipe(Effect.scoped, Effect.provide(layer))
    expect(indexes).toEqual([1, 3, 4])
  }).pipe(Effect.scoped)
)

it.effect("addresses of which a chain could not tell are asked about again, a minute later", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    let rounds = 0
    const layer = runningWith(path, () => {
      rounds += 1
      if (rounds === 1) return Effect.succeed({ used: new Set<string>(), unreachable: ["base"] })
      return Effect.succeed({ used: new Set([wallet.address(0)]), unreachable: [] })
    })
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

it.live("accounts on one extended public key share the numbering, and each mode needs a wallet", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      yield* addShop(testXpub)
      expect((yield* take).index).toBe(0)
      expect((yield* takeFor(shop)).index).toBe(1)
      expect((yield* take).index).toBe(2)
      const refused = yield* Effect.flip(takeFor({ ...shop, mode: "live" }))
      expect(refused).toMatchObject({ _tag: "WalletNotConfigured", mode: "live" })
    }).pipe(Effect.provide(running(path)))
  }).pipe(Effect.scoped)
)
