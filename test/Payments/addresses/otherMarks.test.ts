import { copyFileSync, writeFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { WatchedAddresses } from "../../../src/Chains/ledger/WatchedAddresses.ts"
import { Addresses } from "../../../src/Payments/addresses/Addresses.ts"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import { Reader } from "../../../src/Sql.ts"
import { liveTest } from "../../lib/scopedTest.ts"
import { liveXpub } from "../../lib/settings.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { addShop, gap, owner, running, shop, skipped, take, takeFor, takeMany, wallet } from "./addressing.ts"

/** Databases of one machine: they share the folder of their marks. */
const machine = Effect.map(temporaryDatabase, (path) => ({
  path,
  other: `${path}.other`,
  on: (database: string) => running(database, [], `${path}.marks`)
}))

const wallets = Effect.flatMap(Reader, (reader) =>
  reader.all<{ fingerprint: string; next_index: number }>("SELECT fingerprint, next_index FROM wallets")
)

liveTest("a new database continues after the addresses of the one that database.path named before", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(takeMany(3), on(path))
  const [first, found] = yield* Effect.provide(Effect.zip(take, gap), on(other))
  expect(first.index).toBe(1003)
  expect(found).toEqual({ rows: skipped(0, 1003), watched: 1003 })
  expect((yield* Effect.provide(take, on(other))).index).toBe(1004)
})

liveTest("and the former one continues after the new one, once", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(takeMany(3), on(path))
  yield* Effect.provide(take, on(other))
  const [back, found] = yield* Effect.provide(Effect.zip(take, gap), on(path))
  expect(back.index).toBe(1004 + 1000)
  expect(found).toEqual({ rows: skipped(3, 2004), watched: 2001 })
  expect((yield* Effect.provide(take, on(path))).index).toBe(2005)
})

liveTest("a copy that is older than the mark of its former path continues after that", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(takeMany(3), on(path))
  copyFileSync(path, other)
  yield* Effect.provide(takeMany(40), on(path))
  expect((yield* Effect.provide(take, on(other))).index).toBe(43 + 1000)
})

liveTest("a database that is further than the marks of all others skips nothing", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(take, on(other))
  yield* Effect.provide(takeMany(3), on(path))
  yield* Effect.provide(take, on(path))
  expect((yield* Effect.provide(take, on(path))).index).toBe(1001 + 4)
})

for (const [what, before] of [
  ["once it is asked for", () => Effect.void],
  ["before the transaction that takes its first address", () => Effect.flatMap(Addresses, ({ ready }) => ready(shop))]
] as const) {
  liveTest(`the wallet of an account that is created again does, too: ${what}`, function* () {
    const { on, other, path } = yield* machine
    const own = hdWallet(liveXpub)
    const two = Effect.zip(takeFor(shop), takeFor(shop))
    yield* Effect.provide(Effect.zipRight(addShop(liveXpub), two), on(path))
    const again = Effect.gen(function* () {
      yield* addShop(liveXpub)
      yield* before()
      const taken = yield* Effect.zip(takeFor(shop), takeFor(shop), { concurrent: true })
      const matchSet = yield* WatchedAddresses
      return { indexes: taken.map(({ index }) => index), isWatched: matchSet.has("test", own.address(1)) }
    })
    expect(yield* Effect.provide(again, on(other))).toEqual({ indexes: [1002, 1003], isWatched: true })
    // The account is known at this start.
    expect((yield* Effect.provide(takeFor(shop), on(path))).index).toBe(1004 + 1000)
  })
}

liveTest("a wallet that only the other database uses is not taken over", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(Effect.zipRight(addShop(liveXpub), takeFor(shop)), on(path))
  const found = yield* Effect.provide(
    Effect.flatMap(Addresses, ({ ready }) => Effect.zipRight(ready(owner), wallets)),
    on(other)
  )
  expect(found).toEqual([{ fingerprint: wallet.fingerprint, next_index: 0 }])
})

liveTest("unreadable marks, and other files there, are ignored", function* () {
  const { on, other, path } = yield* machine
  yield* Effect.provide(take, on(path))
  const marks = `${path}.marks`
  writeFileSync(`${marks}/numbering-0123456789abcdef.json`, "torn")
  writeFileSync(`${marks}/numbering-0123456789abcdef.json.kept`, "{}")
  expect((yield* Effect.provide(take, on(other))).index).toBe(1001)
})
