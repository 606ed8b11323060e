import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { describe, expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect, Redacted } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { openIn } from "../../src/Backup/differences.ts"
import { lastBackup } from "../../src/Backup/lastBackup.ts"
import { renderRestored } from "../../src/commands/restore.ts"
import { markFile } from "../../src/Payments/addresses/IndexMark.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader } from "../../src/Sql.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { liveXpub, testChain } from "../lib/settings.ts"
import { change, type Installation, installation, paid, query, wallet } from "./backing.ts"

const payments = (path: string) =>
  Effect.map(query<{ n: number }>(path, "SELECT count(*) AS n FROM payments"), (rows) => rows[0]?.n)

describe("tilld restore", () => {
  liveTest("into a bare folder gives back every row, and lets every wallet jump at the next start", function* () {
    const { beside, backUp, folder, path, restore } = yield* installation
    yield* backUp("a.db")
    for (const name of beside()) if (name !== "master.key") rmSync(join(folder, "data", name))
    const restored = yield* restore("a.db")
    expect(restored).toMatchObject({
      kept: null,
      lost: null,
      masterKey: "it opens the backup's secrets",
      refusals: [],
      wallets: [{ wallet, from: 3, next: 1003, usedBy: ["the configuration (wallets.test)"] }],
      openPayments: 3,
      pastDuePayments: 3,
      oldestOpenPayment: "1970-01-01T00:00:00.000Z"
    })
    const report = renderRestored(restored)
    expect(report).toMatch(/\n\nStart tilld now\.$/)
    expect(report).not.toContain("NOT WATCHED")
    expect(beside()).toEqual(["master.key", "tilld.db", "tilld.db.last-backup"])
    expect((statSync(path).mode & 0o777).toString(8)).toBe("640")
    expect(yield* payments(path)).toBe(3)
    expect(yield* query(path, "SELECT token FROM numbering")).toEqual([{ token: expect.stringMatching(/^restored /) }])
    expect(yield* query(path, "SELECT act, who FROM audit")).toEqual([{ act: "restore", who: "somebody" }])
  })

  liveTest("replaces newer data with --force only: keeps it, jumps over it and counts the differences", function* () {
    const { backUp, path, restore } = yield* installation
    const key = (id: string) =>
      `INSERT INTO api_keys (id, account_id, mode, name, hash, last_four, permissions, created_at)
       VALUES ('${id}', 'default', 'test', 'shop', CAST('${id}' AS BLOB), 'abcd', '[]', 0)`
    yield* change(path, key("key_1"))
    yield* backUp("a.db")
    yield* change(
      path,
      key("key_2"),
      "UPDATE api_keys SET revoked_at = 9000 WHERE id = 'key_1'",
      ...[3, 4].flatMap((index) => paid(index)),
      "UPDATE payments SET status = 'detecting' WHERE id = 'pay_1'",
      "UPDATE payments SET received = '1500000' WHERE id = 'pay_4'",
      "UPDATE wallets SET jump = 7",
      `INSERT INTO audit (at, via, who, act, detail) VALUES (9000, 'direct', 'ann', 'keys revoke', '{"id":"key_1"}')`
    )
    chmodSync(path, 0o600)
    const before = readFileSync(path)
    const error = yield* Effect.flip(restore("a.db"))
    expect(error.message).toContain(`has handed out addresses of wallet ${wallet} up to 4, the backup up to 2`)
    expect(error.message).toContain(
      "has changes up to 1970-01-01T00:00:09.000Z, the backup up to 1970-01-01T00:00:02.000Z"
    )
    expect(readFileSync(path).equals(before)).toBe(true)

    const restored = yield* restore("a.db", { force: true })
    const nothing = Object.fromEntries(Object.keys(restored.lost ?? {}).map((what) => [what, 0]))
    expect(restored.lost).toEqual({ ...nothing, payments: 2, changedPayments: 1, keys: 1, revokedKeys: 1, acts: 1 })
    const report = renderRestored(restored)
    expect(report).toMatch(/\n2 +payments created.*\n1 +payments with another status/)
    expect(report).toMatch(/\n1 +API keys revoked: THEY WORK AGAIN/)
    expect(report).not.toMatch(/invoices created|\n0 /)
    expect(report).toMatch(
      /\nDecide on the money .*\n.*\nORDER .*\norder 4 +pay_4 +base.test +0x4 +1.500000 USDC\nThe acts: /
    )
    const [, file = "", sql = ""] = /sqlite3 (\S+) "(.*)"/.exec(report) ?? []
    expect(yield* query(file, sql)).toEqual([
      {
        "datetime(at / 1000, 'unixepoch')": "1970-01-01 00:00:09",
        who: "ann",
        act: "keys revoke",
        detail: '{"id":"key_1"}'
      }
    ])
    expect(restored.wallets).toMatchObject([{ from: 3, next: 1012 }])
    expect(yield* payments(path)).toBe(3)
    expect(yield* payments(restored.kept ?? "")).toBe(5)
    expect((statSync(path).mode & 0o777).toString(8)).toBe("600")
    expect(existsSync(`${path}-wal`)).toBe(false)

    // A second time nothing is newer.
    expect(yield* restore("a.db")).toMatchObject({ overruled: [], lost: { payments: 0 } })
    // The replaced database can be restored, too.
    const back = yield* restore(`data/${restored.kept?.split("/").at(-1)}`, { force: true })
    expect(back.overruled).toEqual([expect.stringContaining("has no SHA-256")])
    expect(yield* payments(path)).toBe(5)
  })

  liveTest("counts undone acts also where the backup has others of the same number", function* () {
    const { backUp, path, restore } = yield* installation
    const act = (sequence: number, at: number, name: string) =>
      `INSERT INTO audit (sequence, at, via, who, act, detail) VALUES (${sequence}, ${at}, 'direct', 'ann', '${name}', '{}')`
    yield* backUp("old.db")
    yield* change(path, act(1, 5_000, "keys create"), act(2, 6_000, "keys create"))
    yield* backUp("new.db")
    // The restore is act 1 there.
    yield* restore("old.db", { force: true })
    yield* change(path, act(2, 9_000, "keys revoke"))
    const { lost } = yield* restore("new.db", { force: true })
    // The restore and what came after it.
    expect(lost?.acts).toBe(2)
  })

  liveTest("notes the backup as the last good one, unless a later one is noted beside the database", function* () {
    const { backUp, path, restore } = yield* installation
    const noted = Effect.map(lastBackup(path), (last) => last?.file)
    const { file: first } = yield* backUp("a.db")
    const { file: second } = yield* backUp("b.db")
    const late = readFileSync(`${path}.last-backup`)
    yield* restore("a.db")
    expect(yield* noted).toBe(second)
    rmSync(`${path}.last-backup`)
    yield* restore("a.db")
    expect(yield* noted).toBe(first)
    writeFileSync(`${path}.last-backup`, late)
    yield* restore("b.db")
    expect(yield* noted).toBe(second)
  })

  /** Each damages a complete backup. */
  const spoiled: ReadonlyArray<
    readonly [what: string, spoil: (file: string, bytes: number) => void, why: string, isForced?: boolean]
  > = [
    ["empty", (file) => truncateSync(file, 0), "is not a database of tilld"],
    ["cut within the header", (file) => truncateSync(file, 90), "is not a database of tilld"],
    ["cut within the database", (file, bytes) => truncateSync(file, bytes - 1), "it is damaged"],
    ["cut to some pages", (file, bytes) => truncateSync(file, bytes - 8192), "is damaged"],
    ["cut behind the database", (file, bytes) => truncateSync(file, bytes), "has no SHA-256", true],
    ["cut within the SHA-256", (file, bytes) => truncateSync(file, bytes + 60), "has no SHA-256", true],
    ["lengthened", (file) => appendFileSync(file, "more"), "has no SHA-256", true],
    [
      "changed",
      (file, bytes) => writeFileSync(file, readFileSync(file).fill(1, bytes - 3, bytes)),
      "changed after it was made"
    ],
    [
      "of another time",
      (file, bytes) => writeFileSync(file, readFileSync(file).fill("9", bytes + 1, bytes + 2)),
      "changed"
    ],
    ["a text", (file) => writeFileSync(file, "payments\n".repeat(50)), "is not a database of tilld"]
  ]
  liveTest("changes nothing where the file is not a whole backup", function* () {
    const { backUp, beside, folder, path, restore } = yield* installation
    const { bytes, file } = yield* backUp("a.db")
    const before = [readFileSync(path), readFileSync(`${path}-wal`), beside()]
    for (const [what, spoil, why, isForced = false] of spoiled) {
      copyFileSync(file, join(folder, "b.db"))
      spoil(join(folder, "b.db"), bytes)
      expect((yield* Effect.flip(restore("b.db"))).message, what).toContain(why)
      if (!isForced) expect((yield* Effect.flip(restore("b.db", { force: true }))).message, what).toContain(why)
    }
    for (const [name, why] of [
      ["data", "not a regular file"],
      ["nothing", "cannot be read"],
      ["data/tilld.db-wal", "not a database"]
    ] as const) {
      expect((yield* Effect.flip(restore(name))).message, name).toContain(why)
    }
    expect([readFileSync(path), readFileSync(`${path}-wal`), beside()]).toEqual(before)
  })

  /** Each changes the installation after its backup was made, so that it is another one's. */
  const foreign: ReadonlyArray<
    readonly [what: string, alter: (here: Installation) => Effect.Effect<unknown>, why: string, tag: string]
  > = [
    [
      "sealed with another master key",
      ({ folder }) =>
        Effect.sync(() => writeFileSync(join(folder, "data/master.key"), Buffer.alloc(32, 5).toString("base64"))),
      "not the master key",
      "WrongMasterKey"
    ],
    [
      "of another installation",
      ({ path }) => change(path, "UPDATE numbering SET installation = 'other'"),
      "of another installation",
      "BackupFailed"
    ],
    [
      "without the configuration's wallet",
      ({ settings }) =>
        Effect.sync(() => Object.assign(settings, { wallets: { test: undefined, live: Redacted.make(liveXpub) } })),
      "does not know wallets.live",
      "BackupFailed"
    ]
  ]
  for (const [what, alter, why, tag] of foreign) {
    liveTest(`refuses a backup ${what}`, function* () {
      const here = yield* installation
      yield* here.backUp("a.db")
      yield* alter(here)
      const error = yield* Effect.flip(here.restore("a.db"))
      expect(error).toMatchObject({ _tag: tag, message: expect.stringContaining(why) })
      expect(yield* payments(here.path)).toBe(3)
    })
  }

  liveTest("refuses a copy of a database whose log lies beside it: it lacks what is only there", function* () {
    const { folder, path, restore } = yield* installation
    const other = new Database(path)
    other.exec("SELECT * FROM payments")
    yield* Effect.addFinalizer(() => Effect.sync(() => other.close()))
    yield* change(path, ...paid(3))
    for (const suffix of ["", "-wal"]) copyFileSync(path + suffix, join(folder, `copy.db${suffix}`))
    const error = yield* Effect.flip(Effect.asVoid(restore("copy.db", { force: true })))
    expect(error.message).toContain("copy.db lacks the changes in")
    expect(yield* payments(path)).toBe(4)
  })

  liveTest("lets wallets jump over the addresses that a lost database assigned according to its mark", function* () {
    const { backUp, path, restore, settings } = yield* installation
    yield* backUp("a.db")
    rmSync(path)
    mkdirSync(settings.database.markFolder, { recursive: true })
    writeFileSync(
      markFile(settings.database),
      JSON.stringify({ database: path, wallets: { [wallet]: 50 }, tokens: ["lost"] })
    )
    expect((yield* restore("a.db")).wallets).toMatchObject([{ wallet, from: 3, next: 1050 }])
    writeFileSync(
      markFile({ ...settings.database, path: "/former/tilld.db" }),
      JSON.stringify({ database: "/former/tilld.db", wallets: { [wallet]: 70 }, tokens: ["other"] })
    )
    expect((yield* restore("a.db")).wallets).toMatchObject([{ wallet, from: 3, next: 1070 }])
  })

  liveTest("takes what follows the database in a file without SHA-256 for no part of it", function* () {
    const { backUp, folder, path, restore } = yield* installation
    const { bytes, file } = yield* backUp("a.db")
    // As backups ended before.
    truncateSync(file, bytes)
    appendFileSync(file, `\n{"tilld":"0.1.0","schema":1,"bytes":${bytes}}\n`)
    expect((yield* Effect.flip(restore("a.db"))).message).toContain("has no SHA-256")
    expect(yield* restore("a.db", { force: true })).toMatchObject({ madeAt: null })
    expect(statSync(path).size % 4096).toBe(0)
    yield* change(path, ...Array.from({ length: 40 }, (_, index) => paid(3 + index)).flat())
    expect(yield* query(path, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }])
    yield* backUp("b.db")
    expect(yield* payments(join(folder, "b.db"))).toBe(43)
  })

  liveTest("refuses another copy that is cut within its last page, also with --force", function* () {
    const { folder, path, restore } = yield* installation
    yield* change(path, ...Array.from({ length: 40 }, (_, index) => paid(3 + index)).flat())
    yield* change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    const bytes = statSync(path).size
    copyFileSync(path, join(folder, "copy.db"))
    truncateSync(join(folder, "copy.db"), bytes - 1)
    expect((yield* Effect.flip(restore("copy.db", { force: true }))).message).toContain(
      `cut short: it has ${bytes - 1} of ${bytes} bytes`
    )
    expect(yield* payments(path)).toBe(43)
  })

  liveTest("refuses a newer schema by name", function* () {
    const { backUp, path, restore } = yield* installation
    yield* change(path, "INSERT INTO migrations (migration_id, name) VALUES (99, 'later')")
    yield* backUp("a.db")
    expect((yield* Effect.flip(restore("a.db", { force: true }))).message).toContain(
      `written by a newer tilld, ${packageJson.version} (its schema is 99`
    )
  })

  liveTest("changes nothing while another process reads the database, whose file lacks some commits", function* () {
    const { backUp, beside, path, restore } = yield* installation
    yield* backUp("a.db")
    const reader = new Database(path, { readonly: true })
    yield* Effect.addFinalizer(() => Effect.sync(() => reader.close()))
    reader.exec("BEGIN; SELECT * FROM payments")
    yield* change(path, ...paid(3))
    const before = [beside(), readFileSync(`${path}-wal`)]
    const error = yield* Effect.flip(Effect.asVoid(restore("a.db", { force: true })))
    expect(error.message).toMatch(/cannot be moved aside \(another process reads it: .*Nothing was changed$/)
    expect([beside(), readFileSync(`${path}-wal`)]).toEqual(before)
    expect(yield* payments(path)).toBe(4)
  })

  liveTest("keeps a damaged database with its log, and needs --force for it", function* () {
    const { backUp, path, restore } = yield* installation
    yield* backUp("a.db")
    const log = readFileSync(`${path}-wal`)
    writeFileSync(path, "not a database any more".repeat(100))
    expect((yield* Effect.flip(restore("a.db"))).message).toContain("cannot be read")
    const { kept, lost } = yield* restore("a.db", { force: true })
    expect(lost).toBeNull()
    expect(readFileSync(kept ?? "", "utf8")).toContain("not a database any more")
    expect(readFileSync(`${kept}-wal`).equals(log)).toBe(true)
    expect(yield* payments(path)).toBe(3)
  })
})

liveTest("the report names the wallets that no start watches, and ends with why the next start fails", function* () {
  const { backUp, restore } = yield* installation
  yield* backUp("a.db")
  const over = { wallets: { live: undefined, test: Redacted.make(liveXpub) } }
  const unwatched = renderRestored(yield* restore("a.db", { force: true, over }))
  expect(unwatched).toContain(`NOT WATCHED: the skipped addresses of ${wallet}, whose extended public key`)
  expect(unwatched).toContain("Configure that key for the next start")
  const restored = yield* restore("a.db", { over: { chains: [testChain({ chain: "polygon" })] } })
  expect(restored.refusals).toMatchObject([{ at: "chains.base.test", need: "3 open payments need this chain" }])
  const report = renderRestored(restored)
  expect(report).not.toContain("Start tilld now")
  expect(report).toMatch(
    /\n\ntilld does not start with this configuration.*\n {2}chains\.base\.test: 3 open payments need this chain: put it back .*--chain base --mode test\n.*config check.*$/
  )
})

const hour = 3_600_000
const day = 24 * hour

liveTest("the last day of a backup is that of its newest payment, however old the backup is", function* () {
  const { path } = yield* installation
  const newest = 5 * day
  yield* change(path, ...paid(3, newest - day + 1), ...paid(4, newest))
  const open = (now: number, since: number | null) =>
    Effect.provide(
      Effect.flatMap(Reader, (reader) => openIn(reader, now, since)),
      Sql.layer(path)
    )
  const { openPayments, pastDuePayments, paymentsInLastDay } = yield* open(30 * day, newest)
  expect(paymentsInLastDay).toBe(2)
  expect([openPayments, pastDuePayments]).toEqual([5, 5])
  expect(yield* open(newest, newest)).toMatchObject({ openPayments: 5, pastDuePayments: 4 })
  expect((yield* open(newest + hour, null)).paymentsInLastDay).toBe(1)
})
