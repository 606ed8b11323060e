import { X509Certificate } from "node:crypto"
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { examinePem } from "../../src/Doctor/certificates.ts"
import { type DaemonStatus, examineDaemon, examineDown, mayOpen, withoutAnswer } from "../../src/Doctor/daemon.ts"
import { type Finding, fail, type Status } from "../../src/Doctor/Finding.ts"
import { examineClock, examineMasterKey, examineReplaced } from "../../src/Doctor/machine.ts"
import { examinePermissions } from "../../src/Doctor/permissions.ts"
import type { Seen } from "../../src/Doctor/providers.ts"
import type { StoreFacts } from "../../src/Doctor/storeFacts.ts"
import { examineUse } from "../../src/Doctor/storeFindings.ts"
import { examinePort } from "../../src/Doctor.ts"
import { makeAuthority } from "../../src/Sandbox/Authority.ts"
import { acquire } from "../../src/Sql/InstanceLock.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { testChain, testSettings } from "../lib/settings.ts"
import { silentListener } from "../lib/silentListener.ts"
import { temporaryDatabase, temporaryFolder } from "../lib/store.ts"

const day = 86_400_000
const now = Date.UTC(2026, 0, 1)

const nothing: StoreFacts = {
  wallets: new Map(),
  token: "",
  keyFingerprint: undefined,
  accountWallets: [],
  proofs: new Map(),
  openNeeds: []
}

const wallet = (next: number) => ({ ...nothing, wallets: new Map([["w", { next, paid: 2, gap: 7 }]]) })
/** A chain whose head was so far ahead of the clock. */
const seenAhead = (headAheadSeconds: number) => [testChain({ mode: "live" }), { headAheadSeconds } as Seen] as const

it.each<[string, () => Finding | ReadonlyArray<Finding>, ReadonlyArray<Status>, RegExp]>([
  ["a wallet", () => examineUse(wallet(15)), ["ok"], /15 addresses given out .*, 2 paid, at most 7 unpaid/],
  ["a wallet that is used up", () => examineUse(wallet(2 ** 31 - 1)), ["warn"], /1\.0e\+2 %|100 %/],
  ["no chain to compare the clock with", () => examineClock([]), [], /^$/],
  ["a clock that is right", () => examineClock([seenAhead(30)]), ["ok"], /^it agrees/],
  ["a clock that is behind a chain's", () => examineClock([seenAhead(31)]), ["fail"], /31 seconds behind base\.live/]
])("%s", (_, examine, statuses, text) => {
  const findings = [examine()].flat()
  expect(findings.map(({ status }) => status)).toEqual(statuses)
  expect(findings.map(({ finding }) => finding).join("\n")).toMatch(text)
})

const health: DaemonStatus = {
  ...{ version: "1", pid: 7, uid: 0, startedAt: "", markFolder: "", lostFiles: undefined },
  ...{ salesRefused: [], moneyMissed: [], conditions: [] }
}

it("findings repeat the daemon's response, with a remedy where the response has none", () => {
  const said = (asked: Parameters<typeof examineDaemon>[0]) => examineDaemon(asked, "1")
  const runs = { status: "ok", name: "daemon", finding: "process 7 runs version 1" }
  expect(said({ silent: "EACCES" })).toEqual([{ status: "fail", name: "daemon", finding: "EACCES" }])
  expect(said(health)).toEqual([runs])
  expect(said({ ...health, version: "0" })).toMatchObject([
    { status: "warn", finding: expect.stringContaining("version 0, and") }
  ])
  const condition = { summary: "it is wrong", remedy: "mend it", since: "" }
  const conditions = [
    { ...condition, key: "chain_not_read", subject: "base.live", severity: "page" },
    { ...condition, key: "backup_old", subject: "", severity: "ticket" }
  ] as const
  expect(said({ ...health, conditions })).toEqual([
    runs,
    { status: "fail", name: "chain_not_read base.live", finding: "it is wrong", remedy: "mend it" },
    { status: "warn", name: "backup_old", finding: "it is wrong", remedy: "mend it" }
  ])
})

clockTest("databases that were kept when a restore replaced them are named", function* () {
  const path = yield* temporaryDatabase
  const settings = testSettings(path)
  // A copy that a migration made, and of another database.
  for (const other of [`${path}.before-2`, `${dirname(path)}/other.db.before-restore-2`]) writeFileSync(other, "")
  expect(yield* examineReplaced(settings)).toEqual([])
  writeFileSync(`${path}.before-restore-20260101T000000000Z`, "")
  expect(yield* examineReplaced(settings)).toMatchObject([
    { status: "warn", finding: expect.stringContaining(".before-restore-20260101T000000000Z") }
  ])
})

it("the database is left alone while its daemon does not respond, or has lost its files", () => {
  expect(
    [undefined, health, { ...health, lostFiles: "its -wal was removed" }, { silent: "EACCES" }].map(mayOpen)
  ).toEqual([true, true, false, false])
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
  const said = (facts?: StoreFacts, asked?: DaemonStatus | { silent: string }) =>
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
