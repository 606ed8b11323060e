import { Clock, Context, Effect, Layer } from "effect"
import type { Account } from "../Domain/Account.ts"
import { WalletInOtherMode } from "../Domain/AccountErrors.ts"
import type { Mode } from "../Domain/Chain.ts"
import { AccountId } from "../Domain/Ids.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import * as Repo from "./AccountsRepo.ts"
import type { ListPage } from "./listPage.ts"

export interface NewAccount {
  readonly id: AccountId
  readonly name: string
  /** Empty: it uses the wallets of the configuration. */
  readonly wallets: ReadonlyArray<Repo.AccountWallet>
}

/** The account that always exists. */
export const defaultAccount = AccountId.make("default")

const otherMode = (mode: Mode): Mode => (mode === "live" ? "test" : "live")

const insert = Effect.fn("Accounts.insert")(function* (account: NewAccount) {
  const tx = yield* Tx
  const createdAt = yield* Clock.currentTimeMillis
  const stored = { id: account.id, name: account.name, createdAt, ownWallets: account.wallets.map(({ mode }) => mode) }
  yield* Repo.insert(stored)
  for (const wallet of account.wallets) {
    if (yield* Repo.usesWallet(tx, wallet.fingerprint, otherMode(wallet.mode))) {
      return yield* WalletInOtherMode.of(wallet.mode)
    }
    yield* Repo.insertWallet(account.id, wallet)
  }
  return stored satisfies Account
})

/** The owners of keys, payments and webhooks. The account `default` is created at the first start. */
export class Accounts extends Context.Tag("tilld/Auth/Accounts")<
  Accounts,
  {
    readonly create: (account: NewAccount) => Effect.Effect<Account, WalletInOtherMode | StoreUnavailable>
    /** A page of all accounts, oldest first. */
    readonly list: (page: ListPage) => Effect.Effect<ReadonlyArray<Account>, StoreUnavailable>
    readonly exists: (id: string) => Effect.Effect<boolean, StoreUnavailable>
  }
>() {
  static readonly layer = Layer.effect(
    Accounts,
    Effect.gen(function* () {
      const reader = yield* Reader
      const writer = yield* Writer
      const isThere = yield* Repo.exists(reader, defaultAccount)
      if (!isThere) yield* writer.write(insert({ id: defaultAccount, name: "Default", wallets: [] }))
      return {
        create: (account: NewAccount) => writer.write(insert(account)),
        list: (page: ListPage) => Repo.list(reader, page),
        exists: (id: string) => Repo.exists(reader, id)
      }
    }).pipe(Effect.catchTag("WalletInOtherMode", Effect.die))
  )
}
