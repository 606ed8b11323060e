/**
 * Puts a backup in the place of the database. Everything is checked on a copy beside it before the database is touched;
 * then one rename replaces it, and the former one is kept. The next start of the daemon cannot mistake the copy for the
 * newest database: its numbering has a token that is in no index mark, so that every wallet jumps.
 */
import { randomUUID } from "node:crypto"
import { chmodSync, chownSync, createWriteStream, rmSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { pipeline } from "node:stream/promises"
import Database from "better-sqlite3"
import { Clock, DateTime, Effect, Either, Redacted } from "effect"
import { modes } from "../Domain/Chain.ts"
import { iso } from "../lib/moment.ts"
import { cut } from "../lib/text.ts"
import * as AuditRepo from "../Operations/AuditRepo.ts"
import { detailText } from "../Operations/auditLog.ts"
import { blindJump, overtakenIn, readMark, unitFolder } from "../Payments/addresses/IndexMark.ts"
import * as WalletsRepo from "../Payments/addresses/WalletsRepo.ts"
import { allWalletUsers } from "../Payments/addresses/walletUsers.ts"
import { decimalsNow, type OpenNeed, selectOpenNeeds, unmetNeeds } from "../Payments/openNeeds.ts"
import { fingerprintOf, wrongMasterKey } from "../Secrets.ts"
import { hdWallet } from "../Settings/hdWallet.ts"
import { loadMasterKey } from "../Settings/masterKey.ts"
import { Settings, type SettingsShape, type SettingsSource } from "../Settings.ts"
import { fromDatabase } from "../Sql/Db.ts"
import { syncToDisk } from "../Sql/fileAccess.ts"
import { newestSchema } from "../Sql/schema.ts"
import { Reader, Tx } from "../Sql.ts"
import { type Checked, inChildProcess } from "./childProcess.ts"
import { differencesOf, openIn } from "./differences.ts"
import { contentOf } from "./encryption.ts"
import type { DatabaseFacts } from "./facts.ts"
import { BackupFailed, because, onDisk, PathRefused } from "./files.ts"
import { type InPlace, lookInPlace, objectionsOf, replaceDatabase } from "./inPlace.ts"
import { lastBackup, recordBackup } from "./lastBackup.ts"

/** Reasons to refuse the start: payments need something that the configuration lacks. */
const startRefusals = Effect.gen(function* () {
  const { chains } = yield* Settings
  const reader = yield* Reader
  return unmetNeeds(chains, yield* reader.all<OpenNeed>(selectOpenNeeds, [decimalsNow(chains)]))
})

/** The indexes that each wallet will skip. */
const skippedBy = Effect.gen(function* () {
  const { markFolder, path } = (yield* Settings).database
  const users = yield* allWalletUsers
  const others = overtakenIn([markFolder, unitFolder], path, {})
  return (yield* WalletsRepo.all(yield* Reader)).map(({ fingerprint, jump, next_index }) => {
    const usedBy = users.filter((user) => user.fingerprint === fingerprint).map(({ name }) => name)
    const beyond = usedBy.length === 0 ? 0 : (others.get(fingerprint)?.next ?? 0)
    return {
      wallet: fingerprint,
      /** The backup's next index, and the one after the next start. */
      from: next_index,
      next: Math.max(next_index + jump, beyond) + blindJump,
      /** Where it is empty, no start has the wallet's key: it skips nothing, and watches none of these addresses. */
      usedBy
    }
  })
})

export interface RestoreOptions {
  readonly file: string
  /** A file with age identities, for an encrypted backup. */
  readonly identity: string | undefined
  /** Replaces newer data, and takes a file without a seal or with other wallets. */
  readonly force: boolean
  readonly settings: SettingsShape
  /** May name the master key. */
  readonly env: SettingsSource["env"]
  /** Who restores, for the audit log. */
  readonly who: string
}

/** Only root and the folder's owner can create a database that the daemon can write. */
const refuseOtherUser = (path: string) =>
  Effect.suspend(() => {
    const owner = statSync(dirname(path)).uid
    const user = process.getuid?.()
    return user === 0 || user === owner
      ? Effect.void
      : new PathRefused({ message: `${dirname(path)} belongs to user ${owner}: restore as root or as that user` })
  })

/** A temporary file, removed when the scope closes, as are those of killed runs. */
const scratchFile = (path: string) => {
  const remove = () => {
    for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(path + suffix, { force: true })
  }
  return Effect.as(
    Effect.acquireRelease(onDisk(`${path} cannot be removed`, remove), () => Effect.sync(remove)),
    path
  )
}

const unchanged = (message: string) => new BackupFailed({ message: `${message}. Nothing was changed` })

/** Writes what the file has, decrypted, into the new file `copy`, and checks that. */
const receive = Effect.fnUntraced(function* (file: string, copy: string, identity: string | undefined) {
  const content = yield* contentOf(file, identity)
  yield* Effect.tryPromise({
    try: (signal) => pipeline(content, createWriteStream(copy, { flags: "wx", mode: 0o600, flush: true }), { signal }),
    catch: because(`${file} could not be read into ${copy}`)
  })
  const checked = yield* inChildProcess({ does: "check", file: copy }, `${file} is not a database of tilld`)
  if ("damage" in checked) {
    return yield* unchanged(`${file} is damaged (${cut(checked.damage.join("; "), 300)}): take another backup`)
  }
  const { schema, tilld } = checked.facts
  if (schema > newestSchema) {
    return yield* unchanged(
      `${file} was written by a newer tilld, ${tilld} (its schema is ${schema}, this version knows ${newestSchema}): install that version`
    )
  }
  if (checked.seal === undefined && (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    return yield* unchanged(
      `${file} lacks the changes in ${file}-wal: bring them in with sqlite3 ${file} 'PRAGMA wal_checkpoint(TRUNCATE)'`
    )
  }
  return checked
})

/** Whether the master key that is found here opens the backup's secrets. */
const checkMasterKey = Effect.fnUntraced(function* (
  { env, settings }: RestoreOptions,
  copy: string,
  { masterKey }: DatabaseFacts
) {
  if (masterKey === null) return "the backup has no secrets"
  const key = yield* Effect.either(loadMasterKey(settings.database.path, env))
  if (Either.isLeft(key)) {
    return `not checked, since there is none here (${key.left.message.split(":")[0]}): tilld needs the one with the fingerprint ${masterKey}`
  }
  const given = fingerprintOf(key.right)
  if (given === masterKey) return "it opens the backup's secrets"
  return yield* onCopy(copy, (db) => wrongMasterKey(db, masterKey, given))
})

const onCopy = <A, E, R>(
  copy: string,
  use: (db: ReturnType<typeof fromDatabase>, raw: Database.Database) => Effect.Effect<A, E, R>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Database(copy)),
    (raw) => use(fromDatabase(raw), raw),
    (raw) => Effect.sync(() => raw.close())
  )

/** The configuration's wallets that the backup does not know. */
const unknownWallets = ({ settings: { wallets } }: RestoreOptions, facts: DatabaseFacts): ReadonlyArray<string> =>
  facts.wallets.length === 0
    ? []
    : modes.flatMap((mode) => {
        const xpub = wallets[mode]
        const fingerprint = xpub === undefined ? undefined : hdWallet(Redacted.value(xpub)).fingerprint
        return fingerprint === undefined || facts.wallets.some(({ wallet }) => wallet === fingerprint)
          ? []
          : [
              `the backup does not know wallets.${mode} of the configuration (${fingerprint}): it is of another installation, or older than that wallet`
            ]
      })

const objections = (options: RestoreOptions, path: string, { facts, seal }: Checked, inPlace: InPlace) => [
  ...(seal === undefined
    ? [`${options.file} has no SHA-256: it was not made by tilld backup, or its end is missing`]
    : []),
  ...unknownWallets(options, facts),
  ...objectionsOf(inPlace, facts, path)
]

/**
 * Makes the copy ready to replace the database, in one transaction: the next start must not take it for the newest, and
 * every wallet jumps over what the database in place and the mark have handed out.
 */
const prepare = Effect.fnUntraced(function* (
  options: RestoreOptions,
  copy: string,
  facts: DatabaseFacts,
  inPlace: InPlace
) {
  const { file, settings, who } = options
  const now = yield* Clock.currentTimeMillis
  const mark = Either.getOrUndefined(Either.try(() => readMark(settings.database)))
  const known = inPlace.is === "database" ? inPlace.facts.wallets : []
  const handedOut = [
    ...known.map(({ jump, next, wallet }) => [wallet, next + jump] as const),
    ...Object.entries(mark?.wallets ?? {})
  ]
  const change = Effect.gen(function* () {
    yield* WalletsRepo.renewToken(`restored ${randomUUID()}`)
    for (const [wallet, next] of handedOut) yield* WalletsRepo.oweJumpTo(wallet, next)
    const detail = detailText({ file, newest: facts.newest === null ? undefined : iso(facts.newest) })
    yield* AuditRepo.insert({
      at: now,
      via: "direct",
      who,
      account: undefined,
      mode: undefined,
      act: "restore",
      detail
    })
  })
  return yield* onCopy(copy, (db, raw) =>
    Effect.gen(function* () {
      raw.pragma("journal_mode = DELETE")
      raw.pragma("synchronous = FULL")
      yield* db.run("BEGIN IMMEDIATE")
      yield* Effect.provideService(change, Tx, { ...db, afterCommit: () => undefined })
      yield* db.run("COMMIT")
      const next = yield* Effect.all({ wallets: skippedBy, refusals: startRefusals }).pipe(
        Effect.provide(Reader.context(db)),
        Effect.provideService(Settings, settings)
      )
      return { now, ...next, ...(yield* openIn(db, now, facts.newest)) }
    })
  )
})

/** Sets the copy's owner and mode to those that the database had, or should have. */
const dress = (copy: string, path: string) =>
  onDisk(`${copy} cannot get its owner and mode`, () => {
    const former = statSync(path, { throwIfNoEntry: false })
    chmodSync(copy, former === undefined ? 0o640 : former.mode & 0o777)
    const { gid, uid } = former ?? statSync(dirname(path))
    if (process.getuid?.() === 0) chownSync(copy, uid, gid)
    syncToDisk(copy)
  })

/** A good backup exists, even if the machine that made it is lost. */
const noteBackup = Effect.fnUntraced(function* (path: string, file: string, { seal }: Checked) {
  if (seal === undefined) return
  const madeAt = DateTime.unsafeMake(seal.madeAt)
  const last = yield* lastBackup(path)
  if (last !== undefined && DateTime.greaterThan(last.madeAt, madeAt)) return
  yield* Effect.ignore(recordBackup(path, { madeAt, file }))
})

/**
 * Restores a backup. The caller holds the instance lock. Fails with `PathRefused`, `AgeUnusable`, `WrongMasterKey` or
 * `BackupFailed`; then the database in place is unchanged.
 */
export const restore = Effect.fn("Backup.restore")(function* (options: RestoreOptions) {
  const { file, force, identity, settings } = options
  const { path } = settings.database
  yield* refuseOtherUser(path)
  const copy = yield* scratchFile(`${path}.restoring`)
  const checked = yield* receive(file, copy, identity)
  const { facts, seal } = checked
  const masterKey = yield* checkMasterKey(options, copy, facts)
  const inPlace = yield* lookInPlace(path)
  const against = objections(options, path, checked, inPlace)
  if (against.length > 0 && !force) {
    return yield* new BackupFailed({
      message: [
        ...against,
        "Nothing was changed. --force restores it all the same, and keeps the database in place beside"
      ].join(".\n")
    })
  }
  const isSame = inPlace.is === "database" && inPlace.facts.installation === facts.installation
  const differences = isSame ? yield* differencesOf(path, copy) : { lost: null, lostMoney: [] }
  const { now, ...found } = yield* prepare(options, copy, facts, inPlace)
  yield* dress(copy, path)
  const kept = `${path}.before-restore-${iso(now).replace(/[-:.]/g, "")}`
  yield* Effect.uninterruptible(replaceDatabase(inPlace, copy, path, kept))
  yield* noteBackup(path, file, checked)
  return {
    file,
    database: path,
    schema: facts.schema,
    migrates: facts.schema < newestSchema,
    /** Null where the file has no seal. */
    madeAt: seal?.madeAt ?? null,
    newest: facts.newest === null ? null : iso(facts.newest),
    /** Seconds between the newest change in the backup and now. */
    gapSeconds: facts.newest === null ? null : Math.round((now - facts.newest) / 1000),
    masterKey,
    overruled: against,
    kept: inPlace.is === "missing" ? null : kept,
    ...found,
    ...differences
  }
}, Effect.scoped)
export type Restored = Effect.Effect.Success<ReturnType<typeof restore>>
