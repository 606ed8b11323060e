import { randomBytes } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { CopierProgram } from "../../src/Backup/childProcess.ts"
import { restore } from "../../src/Backup/restore.ts"
import { type BackupOptions, backUp } from "../../src/Backup.ts"
import { fingerprintOf } from "../../src/Secrets.ts"
import { hdWallet } from "../../src/Settings/hdWallet.ts"
import { loadMasterKey } from "../../src/Settings/masterKey.ts"
import type { SettingsShape } from "../../src/Settings.ts"
import * as Sql from "../../src/Sql.ts"
import { built } from "../lib/processes.ts"
import { testSettings, testXpub } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"

/** The child process as it is shipped. */
export const asShipped = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, CopierProgram, pathToFileURL(built("chunks/copier.js")))

export const wallet = hdWallet(testXpub).fingerprint

/** Runs statements on the database itself. */
export const change = (path: string, ...statements: ReadonlyArray<string>) =>
  Effect.sync(() => {
    const database = new Database(path)
    for (const statement of statements) database.exec(statement)
    database.close()
  })

export const query = <Row>(path: string, sql: string) =>
  Effect.sync(() => {
    const database = new Database(path, { readonly: true })
    const found = database.prepare<[], Row>(sql).all()
    database.close()
    return found
  })

/** The statements of a payment as creation leaves it, with the wallet's next index after it. */
export const paid = (index: number, at = 1_000 * index) => [
  `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
     wallet_index, status, created_at, expires_at, metadata)
   VALUES ('pay_${index}', 'token ${index}', 'default', 'test', 'order ${index}', '100', 'USDC', 'base', '0x${index}',
     '${wallet}', ${index}, 'pending', ${at}, ${at + 3_600_000}, '{}')`,
  `UPDATE wallets SET next_index = ${index + 1}`
]

/** An installation with a database of three payments. */
export const installation = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const path = join(folder, "data", "tilld.db")
  mkdirSync(dirname(path))
  writeFileSync(join(dirname(path), "master.key"), randomBytes(32).toString("base64"), { mode: 0o600 })
  const key = yield* loadMasterKey(path, {})
  yield* Effect.scoped(Effect.provide(Effect.void, Sql.layer(path)))
  yield* change(
    path,
    `INSERT INTO meta VALUES ('master_key_fingerprint', '${fingerprintOf(key)}')`,
    "INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Shop', 0)",
    `INSERT INTO wallets (fingerprint, next_index) VALUES ('${wallet}', 0)`,
    ...[0, 1, 2].flatMap((index) => paid(index))
  )
  const settings = testSettings(path)
  const options: BackupOptions = {
    database: path,
    recipients: [],
    daemonRefuses: Effect.succeed(undefined)
  }
  return {
    folder,
    path,
    settings,
    options,
    /** Names beside the database. */
    beside: () => readdirSync(dirname(path)).sort(),
    exists: (name: string) => existsSync(join(folder, name)),
    backUp: (name: string, asked: Partial<BackupOptions> & { readonly force?: boolean } = {}) =>
      asShipped(backUp(name === "-" ? name : join(folder, name), asked.force ?? false, { ...options, ...asked })),
    restore: (
      file: string,
      asked: { readonly force?: boolean; readonly identity?: string; readonly over?: Partial<SettingsShape> } = {}
    ) =>
      asShipped(
        restore({
          file: join(folder, file),
          force: asked.force ?? false,
          identity: asked.identity,
          settings: { ...settings, ...asked.over },
          env: {},
          who: "somebody"
        })
      )
  }
})
export type Installation = Effect.Effect.Success<typeof installation>
