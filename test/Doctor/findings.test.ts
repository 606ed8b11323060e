import { X509Certificate } from "node:crypto"
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { Usage } from "../../src/Auth/UsageRepo.ts"
import { examinePem, examinePublicUrl } from "../../src/Doctor/certificates.ts"
import { examineDaemon, examineDown, mayOpen, withoutAnswer } from "../../src/Doctor/daemon.ts"
import { type Finding, fail, type Status } from "../../src/Doctor/Finding.ts"
import { examineDisk, examineMasterKey } from "../../src/Doctor/machine.ts"
import { examinePermissions } from "../../src/Doctor/permissions.ts"
import type { StoreFacts } from "../../src/Doctor/storeFacts.ts"
import {
  examineBackup,
  examineEndpoints,
  examineExceptions,
  examineGrowth,
  examineQuotas,
  examineTimes,
  examineUse
} from "../../src/Doctor/storeFindings.ts"
import { examinePort } from "../../src/Doctor.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import { type Identity, makeAuthority } from "../../src/Sandbox/Authority.ts"
import { acquire } from "../../src/Sql/InstanceLock.ts"
import { startRawReceiver } from "../lib/rawReceiver.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"
import { silentListener } from "../lib/silentListener.ts"
import { temporaryDatabase, temporaryFolder } from "../lib/store.ts"

const day = 86_400_000
const hour = 3_600_000
const now = Date.UTC(2026, 0, 1)

const nothing: StoreFacts = {
  wallets: new Map(),
  token: "",
  keyFingerprint: undefined,
  accountWallets: [],
  proofs: new Map(),
  openNeeds: [],
  exceptions: [],
  usages: [],
  failing: [],
  events: { count: 0, recent: 0, oldest: null, newest: null }
}

const exceptions = [
  { kind: "late", count: 2, oldest: now - day },
  { kind: "overpaid", count: 1, oldest: now }
]
const failing = [
  { receiver: "wh_1", url: "https://shop.example/a?b", reason: "HTTP 500", waiting: 3, failed: 1, since: now }
]
const wallet = (next: number) => ({ ...nothing, wallets: new Map([["w", { next, paid: 2, gap: 7 }]]) })
const events = (over: Partial<StoreFacts["events"]>) => ({
  ...nothing,
  events: { count: 1000, recent: 70, oldest: now - 100 * day, newest: now, ...over }
})
/** The whole file grew by 1 MB a day where 7 % of it is of the last 7 days. */
const disk = (free: number) => ({ free, used: 100e6 })

const used = (stored: number, quota: number | undefined): Usage => ({
  ...{ account: AccountId.make("acct_1", true), stored, promised: 0, quota }
})

it.each<[string, () => Finding | ReadonlyArray<Finding>, ReadonlyArray<Status>, RegExp]>([
  ["no exception", () => examineExceptions(nothing), ["ok"], /none is open/],
  [
    "open exceptions",
    () => examineExceptions({ ...nothing, exceptions }),
    ["warn"],
    /2 late, 1 overpaid; the oldest since 2025-12-31T/
  ],
  ["an account without a quota", () => examineQuotas([used(9_000, undefined)]), [], /^$/],
  ["an account below its quota", () => examineQuotas([used(799, 1_000)]), [], /^$/],
  ["an account close to its quota", () => examineQuotas([used(800, 1_000)]), ["warn"], /acct_1 has used 80 %/],
  ["an account at its quota", () => examineQuotas([used(1_000, 1_000)]), ["fail"], /are refused with 507/],
  [
    "an account whose open payments may yet store four times its quota",
    () => examineQuotas([{ ...used(100, 1_000), promised: 3_900 }]),
    ["fail"],
    /by what its open payments may yet store/
  ],
  ["no failing endpoint", () => examineEndpoints(nothing), ["ok"], /no delivery waits/],
  [
    "a failing endpoint",
    () => examineEndpoints({ ...nothing, failing }),
    ["warn"],
    /wh_1 \(shop\.example: HTTP 500\): 3 deliveries wait .* 1 of/
  ],
  ["a wallet", () => examineUse(wallet(15)), ["ok"], /15 addresses given out .*, 2 paid, at most 7 unpaid/],
  ["a wallet that is used up", () => examineUse(wallet(2 ** 31 - 1)), ["warn"], /1\.0e\+2 %|100 %/],
  ["nothing to grow", () => examineGrowth(nothing, disk(1), now), [], /^$/],
  ["less than a day", () => examineGrowth(events({ oldest: now - hour }), disk(1), now), [], /^$/],
  [
    "a disk for years",
    () => examineGrowth(events({}), disk(1e12), now),
    ["ok"],
    /1\.0 MB a day; the disk lasts for years/
  ],
  ["a disk for weeks", () => examineGrowth(events({}), disk(20.5e6), now), ["warn"], /the disk lasts 20 days/],
  ["a disk for days", () => examineGrowth(events({}), disk(2.5e6), now), ["fail"], /the disk lasts 2 days/],
  ["a steady clock", () => examineTimes(events({ newest: now + 50_000 }), now, false), [], /^$/],
  [
    "a clock set back",
    () => examineTimes(events({ newest: now + hour }), now, false),
    ["fail"],
    /3600 s ahead of it: it was set back$/
  ],
  [
    "a clock that was ahead and is right again",
    () => examineTimes(events({ newest: now + hour }), now, true),
    ["warn"],
    /3600 s ahead of it: it was set back, and agrees with a chain's$/
  ],
  ["no backup", () => examineBackup(undefined, now), ["warn"], /none is recorded/],
  ["a backup", () => examineBackup(now - 25 * hour, now), ["ok"], /25\.0 hours old/],
  ["an old backup", () => examineBackup(now - 27 * hour, now), ["warn"], /27\.0 hours old/],
  ["no backup any more", () => examineBackup(now - 73 * hour, now), ["fail"], /73\.0 hours old/],
  ["a backup of a time to come", () => examineBackup(now + hour, now), ["warn"], /when this machine's clock was ahead/],
  ["a backup before a small step back", () => examineBackup(now + 1_000, now), ["ok"], /0\.0 hours old/]
])("%s", (_, examine, statuses, text) => {
  const findings = [examine()].flat()
  expect(findings.map(({ status }) => status)).toEqual(statuses)
  expect(findings.map(({ finding }) => finding).join("\n")).toMatch(text)
})

const health = { version: "1", pid: 7, uid: 0, markFolder: "", unready: [], troubled: [] }
const unready = (name: string) => ({ ...health, unready: [{ name, reason: "why" }] })

it("findings repeat the daemon's response, with a remedy where the response has none", () => {
  const said = (asked: Parameters<typeof examineDaemon>[0]) => examineDaemon(asked, "1")
  const runs = { status: "ok", name: "daemon", finding: "process 7 runs version 1" }
  expect(said({ silent: "EACCES" })).toEqual([{ status: "fail", name: "daemon", finding: "EACCES" }])
  expect(said(health)).toEqual([runs])
  expect(said({ ...health, version: "0" })).toMatchObject([
    { status: "warn", finding: expect.stringContaining("version 0, and") }
  ])
  const remedy = "journalctl -u tilld says more of it"
  expect(said(unready("base.test"))).toEqual([
    runs,
    { status: "fail", name: "daemon: base.test", finding: "why", remedy }
  ])
  expect(said(unready("store"))).toEqual([runs, { status: "fail", name: "daemon: store", finding: "why" }])
  const troubled = [
    { name: "log", reason: "2 lines are missing" },
    { name: "base.live", reason: "node-1 denies receipts. Remedy: check them" }
  ]
  expect(said({ ...health, troubled })).toMatchObject([
    runs,
    { status: "warn", name: "daemon: log", remedy: expect.stringMatching(/restart tilld$/) },
    { status: "warn", name: "daemon: base.live", finding: "node-1 denies receipts", remedy: "check them" }
  ])
})

clockTest("a size below a gigabyte is shown in megabytes", function* () {
  const path = yield* temporaryDatabase
  writeFileSync(path, Buffer.alloc(12_000_000))
  expect((yield* examineDisk(testSettings(path))).finding).toMatch(/; the database takes 12 MB$/)
})

it("the database is left alone while its daemon does not respond, or has lost its files", () => {
  expect(
    [undefined, health, unready("store"), { ...health, lostFiles: "its -wal was removed" }, { silent: "EACCES" }].map(
      mayOpen
    )
  ).toEqual([true, true, true, false, false])
})

clockTest("a daemon that is down is listed after its possible causes", function* () {
  const path = yield* temporaryDatabase
  const settings = testSettings(path)
  expect(examineDown(settings, [])).toMatchObject({ status: "warn", finding: "it has not run yet" })
  writeFileSync(path, "")
  expect(examineDown(settings, [])).toMatchObject({
    finding: "it is down",
    remedy: expect.stringMatching(/^systemctl start tilld; /)
  })
  expect(examineDown(settings, [fail("schema", "it is newer")]).remedy).toMatch(
    /^mend what is said above, then systemctl/
  )
})

clockTest("without a response, the lock says who works on the database", function* () {
  const path = yield* temporaryDatabase
  const closed = { silent: "it closed the connection", remedy: "its log" }
  // Left by a process that was killed; the number is another one's by now.
  writeFileSync(`${path}.pid`, `${process.ppid} serve\n`)
  expect(withoutAnswer(path, undefined)).toBeUndefined()
  expect(withoutAnswer(path, closed)).toEqual(closed)
  const during = (command: string, asked?: typeof closed) =>
    Effect.zipRight(
      acquire(path, command),
      Effect.sync(() => withoutAnswer(path, asked))
    ).pipe(Effect.scoped)
  expect(yield* during("serve")).toMatchObject({
    silent: expect.stringMatching(`^process ${process.pid} starts, or waits`)
  })
  expect(yield* during("serve", closed)).toEqual({
    silent: `process ${process.pid} runs: it closed the connection`,
    remedy: "its log"
  })
  expect(yield* during("rescan")).toMatchObject({
    silent: expect.stringMatching(`^process ${process.pid}, tilld rescan, works`)
  })
})

it.live("a port that something else listens on is named before the start that would wait for it", () =>
  Effect.gen(function* () {
    const { close, port } = yield* silentListener()
    const settings = testSettings("unused")
    const said = examinePort({ ...settings, server: { ...settings.server, host: "0.0.0.0", port } })
    expect(yield* said).toMatchObject([{ status: "fail", finding: `another process listens on 0.0.0.0:${port}` }])
    yield* close
    expect(yield* said).toEqual([])
  }).pipe(Effect.scoped)
)

clockTest("a database that was not read has no finding about its master key", function* () {
  const settings = testSettings(yield* temporaryDatabase)
  const source = { path: "", env: { TILLD_MASTER_KEY: Buffer.alloc(32, 1).toString("base64") } }
  const said = (facts?: StoreFacts, asked?: typeof health | { silent: string }) =>
    Effect.map(examineMasterKey(settings, source, asked, facts), (findings) =>
      findings.map(({ finding, status }) => `${status} ${finding}`)
    )
  expect(yield* said()).toEqual([expect.stringMatching(/^warn there is one; whether it opens .* is unknown/)])
  expect(yield* said(nothing)).toEqual(["ok there is one; the database has not been sealed yet"])
  expect(yield* said(undefined, { silent: "EACCES" })).toEqual([])
})

clockTest("the master key of a unit that is down is looked for where the unit has it from", function* () {
  const database = yield* temporaryDatabase
  const folder = yield* temporaryFolder
  const key = join(folder, "master-key")
  const saidOf = (facts: StoreFacts) =>
    Effect.map(
      examineMasterKey(testSettings(database), { path: join(folder, "tilld.toml"), env: {} }, undefined, facts),
      ([found]) => found
    )
  const said = saidOf(nothing)
  const finding = expect.stringContaining(`there is no ${key} for the unit`)
  expect(yield* said).toMatchObject({
    status: "warn",
    finding,
    remedy: expect.stringContaining(`openssl rand -base64 32 > ${key}`)
  })
  // What has been sealed is the reason why the daemon is down.
  expect(yield* saidOf({ ...nothing, keyFingerprint: "00" })).toMatchObject({ status: "fail", finding })
  writeFileSync(key, Buffer.alloc(32, 1).toString("base64"), { mode: 0o600 })
  expect(yield* said).toMatchObject({ status: "ok" })
  writeFileSync(key, "")
  expect(yield* said).toMatchObject({ status: "fail", finding: expect.stringContaining(key) })
})

liveTest("each certificate is judged by its dates", function* () {
  const authority = yield* makeAuthority
  const { certificate } = yield* authority.issue(["127.0.0.1"])
  const statuses = (pem: string, at: number) => examinePem("ca.pem", pem, at).map(({ status }) => status)
  const { validTo, validFrom } = new X509Certificate(certificate)
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)]
  expect(statuses(`${certificate}\n${certificate}`, to - 31 * day)).toEqual(["ok", "ok"])
  expect(statuses(certificate, to - day)).toEqual(["warn"])
  expect(statuses(certificate, to + 1000)).toEqual(["fail"])
  expect(statuses(certificate, from - 1000)).toEqual(["fail"])
  expect(statuses("no certificate", now)).toEqual(["fail"])
  expect(statuses("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", now)).toEqual(["fail"])
})

clockTest("the certificate that payers meet is judged by its dates, its name and its authority", function* () {
  const { issue } = yield* makeAuthority
  const mine = yield* issue(["127.0.0.1"])
  const at = (identity: Identity) => startRawReceiver(identity, () => undefined)
  const { port } = yield* at(mine)
  const others = yield* at(yield* issue(["shop.example"]))
  const end = Date.parse(new X509Certificate(mine.certificate).validTo)
  const settings = testSettings("unused")
  const said = (publicUrl: string) =>
    Effect.map(examinePublicUrl({ ...settings, server: { ...settings.server, publicUrl } }), (findings) =>
      findings.map(({ finding, status }) => `${status} ${finding}`)
    )
  const url = `https://127.0.0.1:${port}`
  yield* TestClock.setTime(end - 8 * day)
  expect(yield* said(url)).toEqual([expect.stringMatching(/^warn .* this machine does not trust \(UNABLE_TO/)])
  expect(yield* said(`https://127.0.0.1:${others.port}`)).toEqual([
    `fail https://127.0.0.1:${others.port} shows one of another name: DNS:shop.example`
  ])
  yield* TestClock.setTime(end - 6.5 * day)
  expect(yield* said(url)).toEqual([expect.stringMatching(/^warn .*, for 6 days$/)])
  yield* TestClock.setTime(end + 1000)
  expect(yield* said(url)).toEqual([expect.stringMatching(/^fail .* shows one that expired on /)])
  expect(yield* said("https://127.0.0.1:1")).toEqual([
    expect.stringMatching(/^warn .*shows none.*: connect ECONNREFUSED/)
  ])
  expect(yield* said("http://127.0.0.1:1")).toEqual([])
})

describe("permissions", () => {
  const own = process.getuid?.() ?? 0
  const home = Effect.gen(function* () {
    const folder = join(yield* temporaryFolder, "state")
    const path = join(folder, "tilld.db")
    mkdirSync(folder, { mode: 0o750 })
    const configuration = join(folder, "tilld.toml")
    for (const file of [path, configuration]) writeFileSync(file, "", { mode: 0o640 })
    writeFileSync(join(folder, "master.key"), "", { mode: 0o600 })
    const settings = testSettings(path, { database: { path, markFolder: join(folder, "none") } })
    const source = { path: configuration, env: {} }
    return { folder, examine: (user?: number) => examinePermissions(source, settings, user) }
  })

  it.scoped("are fine as created", () =>
    Effect.map(home, ({ examine }) => {
      expect(examine()).toMatchObject([{ status: "ok", finding: expect.stringMatching(/^4 files/) }])
    })
  )

  it.scoped.each<[string, number, string]>([
    ["tilld.db", 0o644, "chmod o-rwx"],
    ["tilld.toml", 0o644, "chmod o-rwx"],
    ["master.key", 0o640, "chmod go-rwx"],
    ["master-key", 0o644, "chmod go-rwx"],
    [".", 0o755, "chmod o-rwx"]
  ])("of %s as %d are too wide", ([name, mode, remedy]) =>
    Effect.map(home, ({ examine, folder }) => {
      // The credential is there only for a unit.
      if (name === "master-key") writeFileSync(join(folder, name), "")
      chmodSync(join(folder, name), mode)
      expect(examine()).toMatchObject([{ status: "warn", remedy: `${remedy} ${join(folder, name)}` }])
    })
  )

  it.scoped("of another user than the daemon's are a failure each, but for the configuration", () =>
    Effect.map(home, ({ examine }) => {
      const failures = examine(own + 1).filter(({ remedy }) => remedy?.startsWith("chown "))
      expect(failures.map(({ status }) => status)).toEqual(["fail", "fail", "fail"])
    })
  )

  // Root may use every file, so the files are another user's, whom only root can make their owner.
  for (const [name, mode, remedy] of [
    ["tilld.db", 0o440, "chmod u.rwX"],
    ["tilld.toml", 0o600, "chgrp"],
    [".", 0o600, "chgrp"],
    ["..", 0o700, "chgrp"]
  ] as const) {
    it.scoped.skipIf(own !== 0)(`of ${name} as ${mode.toString(8)} keep the daemon's user out`, () =>
      Effect.map(home, ({ examine, folder }) => {
        const user = 54_321
        chmodSync(dirname(folder), 0o755)
        for (const file of ["", "tilld.db", "master.key"]) chownSync(join(folder, file), user, user)
        expect(examine(user).map(({ finding }) => finding)).toEqual(["4 files and folders belong to whom they should"])
        chmodSync(join(folder, name), mode)
        expect(examine(user)[0]).toMatchObject({ status: "fail", remedy: expect.stringMatching(`^${remedy} `) })
      })
    )
  }
})
