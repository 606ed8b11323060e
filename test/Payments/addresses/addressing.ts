import { copyFileSync, rmSync } from "node:fs"
import { Effect, Layer, Redacted } from "effect"
import { insertWallet, walletContext } from "../../../src/Auth/AccountsRepo.ts"
import { AddressHistory, type HistoryFinding } from "../../../src/Chains/balances/AddressHistory.ts"
import { WatchedAddresses } from "../../../src/Chains/ledger/WatchedAddresses.ts"
import type { Owner } from "../../../src/Domain/Account.ts"
import type { Mode } from "../../../src/Domain/Chain.ts"
import { AccountId } from "../../../src/Domain/Ids.ts"
import { Addresses } from "../../../src/Payments/addresses/Addresses.ts"
import { markFile } from "../../../src/Payments/addresses/IndexMark.ts"
import { Secrets } from "../../../src/Secrets.ts"
import { hdWallet } from "../../../src/Settings/hdWallet.ts"
import { MasterKey } from "../../../src/Settings.ts"
import * as Sql from "../../../src/Sql.ts"
import { Reader, Tx, Writer } from "../../../src/Sql.ts"
import { testSettingsLayer, testXpub } from "../../lib/settings.ts"
import { temporaryDatabase } from "../../lib/store.ts"

export const wallet = hdWallet(testXpub)
export const owner: Owner = { account: AccountId.make("default"), mode: "test" }

/**
 * A run of the daemon's address part on the database at `path`; `vet` is what the chains know of addresses. Its mark has a
 * folder of its own, unless one is given.
 */
export const runningWith = (path: string, vet: AddressHistory["Type"]["vet"], markFolder = `${path}.marks`) =>
  Addresses.layer.pipe(
    Layer.provide(Layer.succeed(AddressHistory, { vet })),
    Layer.provideMerge(Layer.merge(Secrets.layer, WatchedAddresses.layer)),
    Layer.provideMerge(Sql.layer(path)),
    Layer.provide(Layer.succeed(MasterKey, Redacted.make(new Uint8Array(32).fill(7)))),
    Layer.provide(testSettingsLayer(path, { database: { path, markFolder } }))
  )

/** Addresses that two providers of a chain know. */
export const byTwo = (addresses: ReadonlyArray<string>): HistoryFinding => ({
  chain: "base",
  addresses,
  isConfirmed: true
})

/** The same. `used` are addresses that the chains know. */
export const running = (path: string, used: ReadonlyArray<string> = [], markFolder?: string) =>
  runningWith(
    path,
    (_mode, addresses, found) =>
      Effect.sync(() => {
        found(byTwo(addresses.filter((address) => used.includes(address))))
        return []
      }),
    markFolder
  )

export const takeFor = (who: Owner) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const addresses = yield* Addresses
    return yield* writer.write(addresses.take(who))
  })
export const take = takeFor(owner)
export const takeMany = (n: number) => Effect.replicateEffect(take, n, { concurrency: "unbounded" })

/** A database of which three addresses have been taken. */
export const threeTaken = Effect.tap(temporaryDatabase, (path) => Effect.provide(takeMany(3), running(path)))

export const shop: Owner = { account: AccountId.make("shop"), mode: "test" }
/** Another account, with a wallet of its own. */
export const addShop = (xpub: string, mode: Mode = "test") =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const secrets = yield* Secrets
    yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run("INSERT INTO accounts (id, name, created_at) VALUES ('shop', 'Shop', 0)")
        const sealed = secrets.seal(xpub, walletContext(shop.account, mode))
        yield* insertWallet(shop.account, { mode, fingerprint: hdWallet(xpub).fingerprint, sealed })
      })
    )
  })

/** Where the mark of the database at `path` is. */
export const markOf = (path: string) => markFile({ path, markFolder: `${path}.marks` })

/** The expected rows of skipped addresses. */
export const skipped = (from: number, to: number, of = wallet, mode: Mode = "test") =>
  Array.from({ length: to - from }, (_, i) => ({ address: of.address(from + i), mode, wallet_index: from + i }))

/** Puts back the copy of the database that was made with `copyFileSync(path, `${path}.backup`)`. */
export const restore = (path: string) => {
  copyFileSync(`${path}.backup`, path)
  for (const left of ["-wal", "-shm"]) rmSync(`${path}${left}`, { force: true })
}

/** The stored skipped addresses, and whether each is watched. */
export const gap = Effect.gen(function* () {
  const reader = yield* Reader
  const matchSet = yield* WatchedAddresses
  const rows = yield* reader.all<{ address: string; mode: string; wallet_index: number }>(
    "SELECT address, mode, wallet_index FROM gap_addresses ORDER BY wallet_index"
  )
  return { rows, watched: rows.filter(({ address }) => matchSet.has("test", address)).length }
})

/** The index of the next address of that run, the rows of what it skipped, and how many of them it watches. */
export const nextOf = (run: ReturnType<typeof running>) =>
  Effect.map(Effect.provide(Effect.zip(take, gap), run), ([{ index }, found]) => ({ index, ...found }))
