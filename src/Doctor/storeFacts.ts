import { constants, copyFileSync, existsSync, mkdtempSync, rmSync, statfsSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { Either } from "effect"
import { cut } from "../lib/text.ts"
import * as Marks from "../Payments/addresses/IndexMark.ts"
import { selectProofs } from "../Payments/addresses/walletProof.ts"
import { configuredWallets } from "../Payments/addresses/walletUsers.ts"
import { decimalsNow, type OpenNeed, selectOpenNeeds } from "../Payments/openNeeds.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"
import { codeOf } from "../Sql/Db.ts"
import { filesOf, refusedAccess } from "../Sql/fileAccess.ts"
import { hasFormerLog, mustNotOpen } from "../Sql/logOwner.ts"
import { nativeProblem } from "../Sql/nativeParts.ts"
import { newestSchema } from "../Sql/schema.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"

/** The wallets of a database. */
interface StoredWallets {
  /** The next index of each, with a pending jump, by fingerprint. */
  readonly nexts: Marks.Mark["wallets"]
  /** Fingerprints of those that accounts have brought. */
  readonly ofAccounts: ReadonlyArray<string>
}

/** The wallets in use that another database on this machine has used further: by its mark in `markFolder`. */
export const overtakenWallets = (
  { database: { path }, wallets }: SettingsShape,
  markFolder: string,
  { nexts, ofAccounts }: StoredWallets
): ReadonlyArray<Marks.OtherUse> => {
  const folders = [markFolder, Marks.unitFolder]
  const used = new Set([...configuredWallets(wallets).map(({ fingerprint }) => fingerprint), ...ofAccounts])
  const overtaken = Marks.overtakenIn(folders, path, Marks.furthestOf([nexts, Marks.furthestIn(folders, path)]))
  return [...overtaken.values()].filter(({ wallet }) => used.has(wallet))
}

/** The index at which the next start goes on. */
export const nextAfter = ({ next }: Marks.OtherUse): number => next + Marks.blindJump

export const otherDatabase = (use: Marks.OtherUse): Finding =>
  warn(
    "address numbering",
    `${use.database} has handed out addresses of wallet ${use.wallet} up to index ${use.next - 1}: the next start goes on at ${nextAfter(use)}`,
    "point database.path back, if this is not meant"
  )

/** Bytes that stay free beside a copy. */
const reserve = 500_000_000

const size = (path: string): number => (existsSync(path) ? statSync(path).size : 0)

/** One finding for a file that SQLite cannot read. */
const unreadable = (path: string, error: unknown): Finding => {
  const code = codeOf(error)
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code)) {
    return fail(name, `${path} is damaged, or no SQLite database (${error})`, restoreBackup)
  }
  const native = nativeProblem(error)
  if (native !== undefined) return fail(name, native)
  const refused = refusedAccess(filesOf(path))
  return fail(
    name,
    refused ?? `${path} cannot be read: ${error}`,
    "run this as tilld's user or root, and check the file"
  )
}

const restoreBackup = "stop tilld, keep a copy of the files, and restore the last backup"

const using = <A>(file: string, use: (database: Database.Database) => A): A => {
  const database = new Database(file, { readonly: true, timeout: 5_000 })
  try {
    return use(database)
  } finally {
    database.close()
  }
}

/**
 * Reads a database without a change to any of its files. While a daemon has it open, a reading connection beside it
 * only takes the locks that never hold up a writer. Where `-wal` or `-shm` is missing SQLite would create it, as the
 * user who runs this, and a daemon of another user could not open it: so beside a daemon nothing is opened then, and
 * without one a copy is read, in a folder that only this user may enter.
 */
const readDatabase = <A>(path: string, isOpen: boolean, use: (database: Database.Database) => A): A | Finding => {
  if (isOpen) {
    const missing = ["-wal", "-shm"].map((suffix) => path + suffix).filter((file) => !existsSync(file))
    if (missing.length > 0) {
      const finding = `${missing.join(" and ")} was removed while the daemon has it open: the database was not examined`
      return fail(name, finding, "look at its log before you restart it")
    }
    const owners = new Set(["", "-wal", "-shm"].map((suffix) => statSync(path + suffix).uid))
    // As root, SQLite gives -wal and -shm to the owner of the database.
    if (process.getuid?.() !== 0 || owners.size === 1) return using(path, use)
    const finding = `${path}, its -wal and its -shm belong to different users: the database was not examined`
    return fail(name, finding, "let all belong to the daemon's user")
  }
  const folder = mkdtempSync(join(tmpdir(), "tilld-doctor-"))
  try {
    const { bavail, bsize } = statfsSync(folder)
    if (size(path) + size(`${path}-wal`) + reserve > bavail * bsize) {
      return fail(name, `a copy of it to examine does not fit into ${tmpdir()}`, "start tilld, or name another TMPDIR")
    }
    for (const suffix of ["", "-wal"].filter((each) => existsSync(path + each))) {
      copyFileSync(path + suffix, join(folder, `copy.db${suffix}`), constants.COPYFILE_FICLONE)
    }
    return using(join(folder, "copy.db"), use)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The facts that the doctor reads from the database. Times are Unix milliseconds. */
export interface StoreFacts {
  /** Each wallet by fingerprint: its next index with a pending jump, and its paid indexes. */
  readonly wallets: ReadonlyMap<string, WalletUse>
  /** Fingerprints of the wallets that accounts have brought. */
  readonly accountWallets: ReadonlyArray<string>
  /** By fingerprint, the day of the newest proof that the seed of a wallet is held. */
  readonly proofs: ReadonlyMap<string, string>
  /** Numbering token of the daemon's last start; empty before the first. */
  readonly token: string
  /** Fingerprint of the master key that sealed the database; undefined where nothing is sealed yet. */
  readonly keyFingerprint: string | undefined
  readonly openNeeds: ReadonlyArray<OpenNeed>
}

interface WalletUse {
  readonly next: number
  readonly paid: number
  /** The longest run of indexes without money, between paid ones or behind the last. */
  readonly gap: number
}

/** The findings on the database; no facts where it is damaged or of another version. */
interface StoreLook {
  readonly findings: ReadonlyArray<Finding>
  readonly facts: StoreFacts | undefined
}

const name = "database"

/** For a database that the first start will create. */
const noFacts: StoreFacts = {
  wallets: new Map(),
  accountWallets: [],
  proofs: new Map(),
  token: "",
  keyFingerprint: undefined,
  openNeeds: []
}

const paidIndexes = `
  SELECT wallet, count(*) AS paid, max(wallet_index) AS last, max(wallet_index - before - 1) AS gap FROM (
    SELECT wallet, wallet_index, lag(wallet_index, 1, -1) OVER (PARTITION BY wallet ORDER BY wallet_index) AS before
    FROM payments WHERE EXISTS (SELECT 1 FROM receipts WHERE payment_id = payments.id AND canonical = 1))
  GROUP BY wallet`

/** The wallets of the database. */
const storedWallets = (database: Database.Database): StoredWallets => {
  const rows = database.prepare("SELECT fingerprint, next_index + jump AS next FROM wallets").all() as ReadonlyArray<{
    readonly fingerprint: string
    readonly next: number
  }>
  const own = database.prepare("SELECT DISTINCT fingerprint FROM account_wallets").pluck().all()
  return {
    nexts: Object.fromEntries(rows.map(({ fingerprint, next }) => [fingerprint, next])),
    ofAccounts: own as ReadonlyArray<string>
  }
}

const factsOf = (database: Database.Database, chains: ReadonlyArray<ChainSettings>): StoreFacts => {
  const all = <Row>(sql: string, ...params: ReadonlyArray<number | string>) =>
    database.prepare(sql).all(...params) as ReadonlyArray<Row>
  const paid = new Map(
    all<{ wallet: string; paid: number; last: number; gap: number }>(paidIndexes).map((row) => [row.wallet, row])
  )
  const { nexts, ofAccounts } = storedWallets(database)
  const wallets = Object.entries(nexts).map(([fingerprint, next]) => {
    const used = paid.get(fingerprint) ?? { paid: 0, last: -1, gap: 0 }
    return [fingerprint, { next, paid: used.paid, gap: Math.max(used.gap, next - 1 - used.last) }] as const
  })
  const [numbering] = all<{ token: string }>("SELECT token FROM numbering")
  const [key] = all<{ value: string }>("SELECT value FROM meta WHERE key = 'master_key_fingerprint'")
  return {
    wallets: new Map(wallets),
    accountWallets: ofAccounts,
    proofs: new Map(all<{ wallet: string; day: string }>(selectProofs).map(({ day, wallet }) => [wallet, day])),
    token: numbering?.token ?? "",
    keyFingerprint: key?.value,
    openNeeds: all(selectOpenNeeds, decimalsNow(chains))
  }
}

/** The newest migration; undefined where tilld has never written the file. */
const schemaOf = (database: Database.Database): number | undefined => {
  const tables = database.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'migrations'").get() as {
    n: number
  }
  if (tables.n === 0) return undefined
  return (
    (database.prepare("SELECT max(migration_id) AS id FROM migrations").get() as { id: number | null }).id ?? undefined
  )
}

const lookInto = (path: string, database: Database.Database, chains: ReadonlyArray<ChainSettings>): StoreLook => {
  const only = (finding: Finding): StoreLook => ({ findings: [finding], facts: undefined })
  const damage = (database.pragma("quick_check(5)") as ReadonlyArray<{ quick_check: string }>)
    .map((row) => row.quick_check)
    .filter((line) => line !== "ok")
  if (damage.length > 0)
    return only(fail(name, `${path} is damaged: ${cut(damage.join("; ").replaceAll("\n", "; "), 300)}`, restoreBackup))
  const schema = schemaOf(database)
  if (schema === undefined) return only(fail(name, `${path} is not a database of tilld`, "correct database.path"))
  if (schema > newestSchema) {
    const finding = `a newer tilld wrote it: its schema is ${schema}, and this version knows ${newestSchema}`
    return only(fail("schema", finding, "install that version, or restore a backup from before it"))
  }
  const orphans = database.pragma("foreign_key_check") as ReadonlyArray<{ table: string }>
  return {
    findings: [
      ok(name, "quick_check finds no damage"),
      ok(
        "schema",
        schema === newestSchema ? `${schema}, the newest` : `${schema}: the next start brings it to ${newestSchema}`
      ),
      ...(orphans.length === 0
        ? []
        : [fail(name, `${orphans.length} rows refer to missing rows, such as in ${orphans[0]?.table}`, restoreBackup)])
    ],
    facts: factsOf(database, chains)
  }
}

/** Whether there is a database. An interrupted start leaves an empty file. */
const isThere = (path: string): boolean => existsSync(path) && statSync(path).size > 0

const reading = <A>(path: string, isOpen: boolean, use: (database: Database.Database) => A): A | Finding =>
  Either.try(() => {
    const foreign = mustNotOpen(path) ?? (isOpen ? undefined : hasFormerLog(path))
    return foreign === undefined ? readDatabase(path, isOpen, use) : fail(name, foreign)
  }).pipe(Either.getOrElse((error) => unreadable(path, error)))

/**
 * Reads the database file, whole and in this process, so that a running daemon is not held up. A file that cannot be read is
 * one finding.
 *
 * @param isOpen whether a daemon has it open
 * @param loss the error of a lost database, see `lossOf`
 */
export const lookAtStore = (
  path: string,
  isOpen: boolean,
  chains: ReadonlyArray<ChainSettings>,
  loss?: string
): StoreLook => {
  if (loss !== undefined) {
    return { findings: [fail(name, loss, "tilld restore FILE with the newest backup")], facts: undefined }
  }
  const missing = Marks.missingFolder(path)
  if (missing !== undefined) {
    const judge = missing.isUnits ? warn : fail
    return { findings: [judge(name, missing.finding, missing.remedy)], facts: noFacts }
  }
  if (!isThere(path)) {
    const finding = warn(name, `${path} is not there yet`, "tilld serve makes it at its first start")
    return { findings: [finding], facts: noFacts }
  }
  const look = reading(path, isOpen, (database) => lookInto(path, database, chains))
  return "findings" in look ? look : { findings: [look], facts: undefined }
}

/** The facts that the next start compares with the configuration. */
interface StartFacts {
  readonly openNeeds: ReadonlyArray<OpenNeed>
  readonly wallets: StoredWallets
}

/** The same, read alone; a finding where the database cannot be read. */
export const readStartFacts = (
  path: string,
  isOpen: boolean,
  chains: ReadonlyArray<ChainSettings>
): StartFacts | Finding =>
  isThere(path)
    ? reading(path, isOpen, (database) => ({
        openNeeds: database.prepare(selectOpenNeeds).all(decimalsNow(chains)) as ReadonlyArray<OpenNeed>,
        wallets: storedWallets(database)
      }))
    : { openNeeds: [], wallets: { nexts: {}, ofAccounts: [] } }
