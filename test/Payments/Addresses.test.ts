import { copyFileSync, rmSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { insertWallet, walletContext } from "../../src/Auth/AccountsRepo.ts"
import { History } from "../../src/Chains/History.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import type { Owner } from "../../src/Domain/Owner.ts"
import { Addresses } from "../../src/Payments/Addresses.ts"
import { hdWallet } from "../../src/Payments/hdWallet.ts"
import { Secrets } from "../../src/Secrets.ts"
import { MasterKey } from "../../src/Settings.ts"
import * as Sql from "../../src/Sql.ts"
import { Tx, Writer } from "../../src/Sql.ts"
import { testSettingsLayer, testXpub } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"

const wallet = hdWallet(testXpub)
const owner: Owner = { account: AccountId.make("default"), mode: "test" }

/** A run of the daemon's address part on the database at `path`. `used` are addresses that the chains know. */
const running = (path: string, used: ReadonlyArray<string> = []) =>
  Addresses.layer.pipe(
    Layer.provide(
      Layer.succeed(History, {
        vet: (_mode, addresses) =>
          Effect.succeed({ used: new Set(addresses.filter((address) => used.includes(address))), unreachable: [] })
      })
    ),
    Layer.provideMerge(Secrets.layer),
    Layer.provideMerge(Sql.layer(path)),
    Layer.provide(Layer.succeed(MasterKey, Redacted.make(new Uint8Array(32).fill(7)))),
    Layer.provide(testSettingsLayer(path))
  )

const takeFor = (who: Owner) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const addresses = yield* Addresses
    return yield* writer.write(addresses.take(who))
  })
const take = takeFor(owner)
const takeMany = (n: number) => Effect.replicateEffect(take, n, { concurrency: "unbounded" })

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
      yield* Effect.flip(writer.write(Effect.zipRight(addresses.take(owner), Effect.fail("refused"))))
      expect((yield* take).index).toBe(0)
    }).pipe(Effect.provide(running(path)))
  }).pipe(Effect.scoped)
)

it.live("an ordinary restart skips nothing", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.provide(takeMany(3), running(path))
    expect((yield* Effect.provide(take, running(path))).index).toBe(3)
  }).pipe(Effect.scoped)
)

it.live("a restored older copy goes on where the newer one stood", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.provide(takeMany(3), running(path))
    copyFileSync(path, `${path}.backup`)
    yield* Effect.provide(takeMany(40), running(path))
    copyFileSync(`${path}.backup`, path)
    for (const left of ["-wal", "-shm"]) rmSync(`${path}${left}`, { force: true })
    expect((yield* Effect.provide(take, running(path))).index).toBe(43)
    expect((yield* Effect.provide(take, running(path))).index).toBe(44)
  }).pipe(Effect.scoped)
)

it.live("without the file beside the database numbering jumps by a thousand, once", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.provide(takeMany(3), running(path))
    rmSync(`${path}.index`)
    expect((yield* Effect.provide(take, running(path))).index).toBe(1003)
    expect((yield* Effect.provide(take, running(path))).index).toBe(1004)
  }).pipe(Effect.scoped)
)

it.live("a new database beside an old file hands out nothing again", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.provide(takeMany(3), running(path))
    for (const part of ["", "-wal", "-shm"]) rmSync(`${path}${part}`, { force: true })
    expect((yield* Effect.provide(take, running(path))).index).toBe(3)
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

it.live("accounts on one extended public key share the numbering, and each mode needs a wallet", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const shop = AccountId.make("shop")
    yield* Effect.gen(function* () {
      const writer = yield* Writer
      const secrets = yield* Secrets
      yield* writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* tx.run("INSERT INTO accounts VALUES ('shop', 'Shop', 0)")
          const sealed = secrets.seal(testXpub, walletContext(shop, "test"))
          yield* insertWallet(shop, { mode: "test", fingerprint: wallet.fingerprint, sealed })
        })
      )
      expect((yield* take).index).toBe(0)
      expect((yield* takeFor({ account: shop, mode: "test" })).index).toBe(1)
      expect((yield* take).index).toBe(2)
      const refused = yield* Effect.flip(takeFor({ account: shop, mode: "live" }))
      expect(refused).toMatchObject({ _tag: "WalletNotConfigured", mode: "live" })
    }).pipe(Effect.provide(running(path)))
  }).pipe(Effect.scoped)
)
