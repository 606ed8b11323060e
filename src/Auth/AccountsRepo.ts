import { Effect } from "effect"
import type { Account, AccountTerms } from "../Domain/Account.ts"
import type { Mode } from "../Domain/Chain.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { allRows, anyRow, type Db, execute, oneRow } from "../Sql.ts"

/** A page of a list in order of creation. */
export interface ListPage {
  /** The id of the row before its first one; undefined for the first page. */
  readonly after?: string | undefined
  /** Maximum number of rows. */
  readonly limit: number
}

/** The condition for the rows of a table behind the one with an id, with its parameters. */
export const behind = (
  table: "accounts" | "api_keys" | "people",
  { after }: ListPage
): readonly [sql: string, params: Array<string>] =>
  after === undefined
    ? ["TRUE", []]
    : [`(created_at, id) > (SELECT created_at, id FROM ${table} WHERE id = ?)`, [after]]

/** A wallet that belongs to an account, instead of the configuration's. */
export interface AccountWallet {
  readonly mode: Mode
  /** As `hdWallet` gives it. */
  readonly fingerprint: string
  /** The extended public key, sealed in the context `walletContext`. */
  readonly sealed: Uint8Array
}

/** The sealing context of an account's extended public key. */
export const walletContext = (account: AccountId, mode: Mode) => `account_wallets.xpub/${account}/${mode}`

export const insert = ({ createdAt, id, name }: Account) =>
  execute("INSERT INTO accounts (id, name, created_at) VALUES (?, ?, ?)", [id, name, createdAt])

export const insertWallet = (account: AccountId, { fingerprint, mode, sealed }: AccountWallet) =>
  execute("INSERT INTO account_wallets (account_id, mode, fingerprint, xpub) VALUES (?, ?, ?, ?)", [
    ...[account, mode, fingerprint],
    sealed
  ])

export const exists = (db: Db, id: string) => anyRow(db, "SELECT 1 FROM accounts WHERE id = ?", [id])

/** Whether there are others than the default account. */
export const areSeveral = (db: Db) => anyRow(db, "SELECT 1 FROM accounts LIMIT 1 OFFSET 1")

/** Whether any account uses this wallet in `mode`. */
export const usesWallet = (db: Db, fingerprint: string, mode: Mode) =>
  anyRow(db, "SELECT 1 FROM account_wallets WHERE fingerprint = ? AND mode = ?", [fingerprint, mode])

/** The account's own wallets; empty when it uses the configuration's. */
export const walletsOf = (db: Db, account: AccountId) =>
  db.all<AccountWallet>("SELECT mode, fingerprint, xpub AS sealed FROM account_wallets WHERE account_id = ?", [account])

/** All wallets of accounts, with their accounts. */
export const walletUsers = (db: Db) =>
  db.all<{ account: string; mode: Mode; fingerprint: string }>(
    "SELECT account_id AS account, mode, fingerprint FROM account_wallets ORDER BY account_id, mode"
  )

/** An account that uses the wallet, with its sealed key; undefined when no account does. */
export const walletBy = (db: Db, fingerprint: string) =>
  db.get<Pick<AccountWallet, "mode" | "sealed"> & { readonly account: AccountId }>(
    "SELECT account_id AS account, mode, xpub AS sealed FROM account_wallets WHERE fingerprint = ? LIMIT 1",
    [fingerprint]
  )

interface Row extends Omit<Account, "ownWallets" | "terms">, AccountTerms {
  /** Comma-separated. */
  readonly modes: string | undefined
}

const columns = `id, name, created_at AS createdAt,
  (SELECT group_concat(mode) FROM account_wallets WHERE account_id = id) AS modes,
  quota_bytes AS quotaBytes, per_minute AS perMinute, per_hour AS perHour`

const toAccount = ({ modes, perHour, perMinute, quotaBytes, ...account }: Row): Account => ({
  ...account,
  ownWallets: (modes?.split(",") ?? []) as ReadonlyArray<Mode>,
  terms: { quotaBytes, perMinute, perHour }
})

/** A page of all accounts, oldest first. */
export const list = (db: Db, page: ListPage) => {
  const [isBehind, params] = behind("accounts", page)
  return Effect.map(
    allRows<Row>(db, `SELECT ${columns} FROM accounts WHERE ${isBehind} ORDER BY created_at, id LIMIT ?`, [
      ...params,
      page.limit
    ]),
    (rows) => rows.map(toAccount)
  )
}

export const byId = (db: Db, id: string) =>
  Effect.map(oneRow<Row>(db, `SELECT ${columns} FROM accounts WHERE id = ?`, [id]), (row) => row && toAccount(row))

/** Stores an account's limits. */
export const change = ({ id, terms: { perHour, perMinute, quotaBytes } }: Account) =>
  execute("UPDATE accounts SET quota_bytes = ?, per_minute = ?, per_hour = ? WHERE id = ?", [
    ...[quotaBytes ?? null, perMinute ?? null, perHour ?? null],
    id
  ])

/** The accounts that have rate limits of their own. */
export const withOwnLimits = (db: Db) =>
  Effect.map(
    allRows<Row>(db, `SELECT ${columns} FROM accounts WHERE per_minute IS NOT NULL OR per_hour IS NOT NULL`),
    (rows) => rows.map(toAccount)
  )
