import { Clock, Context, Effect, Layer } from "effect"
import { type Account, AccountExists, type AccountTerms, UnknownAccount, WalletInOtherMode } from "../Domain/Account.ts"
import type { Mode } from "../Domain/Chain.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { Reader, Tx, Writer } from "../Sql.ts"
import type { ListPage } from "./AccountsRepo.ts"
import * as Repo from "./AccountsRepo.ts"
import { defaultAccount } from "./UsageRepo.ts"

export { defaultAccount } from "./UsageRepo.ts"

export interface NewAccount {
  readonly id: AccountId
  readonly name: string
  /** Empty: it uses the wallets of the configuration. */
  readonly wallets: ReadonlyArray<Repo.AccountWallet>
}

const asConfigured: AccountTerms = { quotaBytes: undefined, perMinute: undefined, perHour: undefined }

const otherMode = (mode: Mode): Mode => (mode === "live" ? "test" : "live")

const insert = Effect.fn("Accounts.insert")(function* (account: NewAccount) {
  const tx = yield* Tx
  const createdAt = yield* Clock.currentTimeMillis
  if (yield* Repo.exists(tx, account.id)) return yield* AccountExists.of(account.id)
  const ownWallets = account.wallets.map(({ mode }) => mode)
  const stored: Account = { id: account.id, name: account.name, createdAt, ownWallets, terms: asConfigured }
  yield* Repo.insert(stored)
  for (const wallet of account.wallets) {
    if (yield* Repo.usesWallet(tx, wallet.fingerprint, otherMode(wallet.mode))) {
      return yield* WalletInOtherMode.of(wallet.mode)
    }
    yield* Repo.insertWallet(account.id, wallet)
  }
  return stored
})

const makeAccounts = Effect.gen(function* () {
  const reader = yield* Reader
  const writer = yield* Writer
  const isThere = yield* Repo.exists(reader, defaultAccount)
  if (!isThere) yield* writer.write(insert({ id: defaultAccount, name: "Default", wallets: [] }))
  // Of the few accounts that have limits of their own.
  const own = new Map((yield* Repo.withOwnLimits(reader)).map(({ id, terms }) => [id, terms]))
  const change = Effect.fn("Accounts.change")(function* (id: AccountId, change: Partial<AccountTerms>) {
    const tx = yield* Tx
    const account = yield* Repo.byId(tx, id)
    if (account === undefined) return yield* UnknownAccount.of(id)
    const changed: Account = { ...account, terms: { ...account.terms, ...change } }
    yield* Repo.change(changed)
    tx.afterCommit(() => void own.set(id, changed.terms))
    return changed
  })
  return {
    create: (account: NewAccount) => writer.write(insert(account)),
    /** Changes an account's limits; absent fields stay. In force once it returns. */
    change: (id: AccountId, terms: Partial<AccountTerms>) => writer.write(change(id, terms)),
    /** An account's own rate limits, synchronously: every request asks. */
    termsOf: (id: AccountId): AccountTerms => own.get(id) ?? asConfigured,
    /** A page of all accounts, oldest first. */
    list: (page: ListPage) => Repo.list(reader, page),
    exists: (id: string) => Repo.exists(reader, id)
  }
}).pipe(Effect.catchTag("WalletInOtherMode", Effect.die))

/** The owners of keys, payments and webhooks. The account `default` is created at the first start. */
export class Accounts extends Context.Tag("tilld/Auth/Accounts")<
  Accounts,
  Effect.Effect.Success<typeof makeAccounts>
>() {
  static readonly layer = Layer.effect(Accounts, makeAccounts)
}
