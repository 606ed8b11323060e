import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { walletsOf } from "../../src/Auth/AccountsRepo.ts"
import { Accounts, defaultAccount } from "../../src/Auth.ts"
import { newAccountId } from "../../src/Domain/Ids.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader } from "../../src/Sql.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { temporaryDatabase, tempStore } from "../lib/store.ts"

const test = scopedTest(Accounts.layer.pipe(Layer.provideMerge(tempStore)))

const wallet = (mode: "live" | "test", fingerprint: string) => ({ mode, fingerprint, sealed: Uint8Array.of(1, 2, 3) })

it.live("the default account exists from the first start, once", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    const layer = () => Accounts.layer.pipe(Layer.provide(Sql.layer(database)))
    const list = Effect.flatMap(Accounts, (accounts) => accounts.list({ limit: 100 }))
    const first = yield* Effect.provide(list, layer())
    expect(first.map(({ id, ownWallets }) => ({ id, ownWallets }))).toEqual([{ id: "default", ownWallets: [] }])
    expect(yield* Effect.provide(list, layer())).toEqual(first)
  }).pipe(Effect.scoped)
)

test("an account keeps its own wallets, and uses the configuration's if it has none", function* () {
  const accounts = yield* Accounts
  const id = newAccountId()
  yield* accounts.create({ id, name: "Shop", wallets: [wallet("live", "a"), wallet("test", "b")] })
  expect((yield* accounts.list({ limit: 100 })).find((each) => each.id === id)?.ownWallets.toSorted()).toEqual([
    "live",
    "test"
  ])
  const reader = yield* Reader
  expect(yield* walletsOf(reader, id)).toHaveLength(2)
  expect(yield* walletsOf(reader, defaultAccount)).toEqual([])
  expect(yield* accounts.exists(id)).toBe(true)
  expect(yield* accounts.exists("nobody")).toBe(false)
})

test("a wallet serves one mode only, of all accounts; two accounts of a mode may share it", function* () {
  const accounts = yield* Accounts
  const create = (...wallets: ReadonlyArray<ReturnType<typeof wallet>>) =>
    accounts.create({ id: newAccountId(), name: "Shop", wallets })
  yield* create(wallet("live", "a"))
  yield* create(wallet("live", "a"))
  expect((yield* Effect.flip(create(wallet("test", "a"))))._tag).toBe("WalletInOtherMode")
  expect((yield* Effect.flip(create(wallet("live", "b"), wallet("test", "b"))))._tag).toBe("WalletInOtherMode")
  // A refusal stores nothing.
  expect(yield* accounts.list({ limit: 100 })).toHaveLength(3)
})
