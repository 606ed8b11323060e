import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect, Exit, Layer } from "effect"
import * as fc from "fast-check"
import * as UsageRepo from "../../src/Auth/UsageRepo.ts"
import { Accounts, defaultAccount } from "../../src/Auth.ts"
import * as AuditRepo from "../../src/Operations/AuditRepo.ts"
import { type Actor, audited, detailText } from "../../src/Operations/auditLog.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader, Tx } from "../../src/Sql.ts"
import { execute, inTransaction, rows, temporaryDatabase, type Yielded } from "../lib/store.ts"

const alice: Actor = { via: "socket", who: "alice" }
const key: Actor = { via: "api", who: "key_1", owner: { account: defaultAccount, mode: "test" } }
const act = { act: "test act", detail: { of: "this" } }

const insert = Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO meta (key, value) VALUES ('a', '')"))
const look = inTransaction(Effect.flatMap(Tx, (tx) => tx.all("SELECT 1")))
const note = (value: string) => execute("INSERT INTO meta (key, value) VALUES (?, '')", [value])

const logged = Effect.flatMap(Reader, (reader) => AuditRepo.list(reader, { since: 0, before: undefined, limit: 1000 }))
const noted = rows("SELECT key FROM meta WHERE key IN ('a', 'b')")

/** A test with its own store, which gets the path of the file. */
const onStore = <Eff extends Yielded, A>(test: (path: string) => Generator<Eff, A, never>) =>
  Effect.flatMap(temporaryDatabase, (path) =>
    Effect.provide(
      Effect.gen(() => test(path)),
      Accounts.layer.pipe(Layer.provideMerge(Sql.layer(path)))
    )
  )

it.scopedLive("an act and its row are committed together, or neither is", () =>
  onStore(function* () {
    yield* audited(alice, act, () => note("a"))
    const [row, ...others] = yield* logged
    expect(others).toEqual([])
    expect(row).toMatchObject({ via: "socket", who: "alice", act: "test act", detail: '{"of":"this"}' })
    expect(row?.account).toBeUndefined()

    // The log accepts no rows: an act that cannot be recorded is not executed.
    yield* execute("CREATE TRIGGER audit_is_full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END")
    expect(Exit.isFailure(yield* Effect.exit(audited(alice, act, () => note("b"))))).toBe(true)
    expect(yield* noted).toEqual([{ key: "a" }])
  })
)

it.scopedLive("an act that fails after it has written leaves neither changes nor a row", () =>
  onStore(function* () {
    const work = inTransaction(Effect.zipRight(insert, Effect.fail("refused" as const)))
    expect(yield* Effect.flip(audited(alice, act, () => work))).toBe("refused")
    expect(yield* logged).toEqual([])
    expect(yield* noted).toEqual([])
  })
)

it.scopedLive("an act has one row, however often it commits, even if it commits nothing", () =>
  onStore(function* () {
    const between = yield* audited(alice, act, () => Effect.zipRight(note("a"), Effect.zipLeft(logged, note("b"))))
    expect(between).toHaveLength(1)
    expect(yield* logged).toHaveLength(1)
    yield* audited(alice, act, () => rows("SELECT 1"))
    yield* audited(alice, act, () => look)
    expect(yield* logged).toHaveLength(3)
    // An act that read and then refused has done nothing.
    yield* Effect.flip(audited(alice, act, () => Effect.zipRight(look, Effect.fail("refused"))))
    expect(yield* logged).toHaveLength(3)
    // An act that sends something has its row first, whatever the result.
    yield* Effect.flip(audited(alice, { ...act, first: true }, () => Effect.fail("refused")))
    expect(yield* logged).toHaveLength(4)
    // The next act of the fiber is not affected.
    yield* execute("DELETE FROM meta WHERE key = 'a'")
    expect(yield* logged).toHaveLength(4)
  })
)

it.scopedLive("an act that runs again, since its group was rolled back for another command, has its row", () =>
  onStore(function* () {
    // It fails after it has written, in the same group.
    const refused = Effect.flip(inTransaction(Effect.zipRight(insert, Effect.fail("refused"))))
    yield* Effect.all([audited(alice, act, () => note("b")), refused], { concurrency: "unbounded" })
    expect(yield* noted).toEqual([{ key: "b" }])
    expect(yield* logged).toHaveLength(1)
  })
)

const changes = {
  update: "UPDATE audit SET who = 'mallory'",
  "update of nothing it would notice": "UPDATE audit SET sequence = sequence",
  delete: "DELETE FROM audit",
  "insert or replace":
    "INSERT OR REPLACE INTO audit (sequence, at, via, who, act, detail) VALUES (1, 0, 'direct', 'mallory', 'nothing', '{}')",
  upsert:
    "INSERT INTO audit (sequence, at, via, who, act, detail) VALUES (1, 0, 'direct', 'mallory', 'nothing', '{}') ON CONFLICT DO UPDATE SET who = 'mallory'"
}

it.scopedLive("no row can be changed or removed, neither in the database nor in a backup", () =>
  onStore(function* (path) {
    yield* audited(alice, act, () => note("a"))
    const [row] = yield* logged
    for (const [name, sql] of Object.entries(changes)) {
      const refused = yield* Effect.exit(execute(sql))
      expect(Exit.isFailure(refused) && String(refused.cause), name).toContain("the audit log is append-only")
    }
    expect(yield* logged).toEqual([row])

    const live = new Database(path, { readonly: true })
    yield* Effect.promise(() => live.backup(`${path}.backup`))
    live.close()
    const backup = new Database(`${path}.backup`)
    expect(backup.prepare("SELECT who, act FROM audit").all()).toEqual([{ who: "alice", act: "test act" }])
    for (const [name, sql] of Object.entries(changes)) {
      expect(() => backup.exec(sql), name).toThrow("append-only")
    }
    backup.close()
  })
)

it.scopedLive("every row is stored with a limited size, whatever its detail is", () =>
  onStore(function* () {
    const value = fc.oneof(
      fc.string({ unit: "binary", maxLength: 3_000 }),
      fc.integer(),
      fc.array(fc.string({ unit: "binary", maxLength: 300 }), { maxLength: 40 })
    )
    const details = fc.sample(fc.array(value, { maxLength: 20 }), 300)
    for (const values of details) {
      const detail = Object.fromEntries(values.map((each, i) => [`field${i}`, each]))
      const text = detailText(detail)
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_000)
      const [[name, kept] = ["", ""]] = Object.entries(JSON.parse(text))
      if (typeof kept === "string") expect(String(detail[name]).startsWith(kept.slice(0, -1))).toBe(true)
      yield* audited({ ...alice, who: String(values[0] ?? "") }, { act: "test act", detail }, () => Effect.void)
    }
    expect(detailText({ list: Array.from({ length: 40 }, (_, i) => `exc_${i}`) })).toContain("and 32 more")
    expect(detailText(Object.fromEntries([1, 2, 3, 4].map((i) => [`f${i}`, "€".repeat(100)])))).toContain(
      '"leftOut":true'
    )
  })
)

it.scopedLive("rows of an account's keys and people count towards its quota, rows of operators do not", () =>
  onStore(function* () {
    const stored = Effect.flatMap(Reader, (reader) =>
      Effect.map(UsageRepo.of(reader, defaultAccount, 1e9), (usage) => usage.stored)
    )
    yield* audited(alice, act, () => note("a"))
    expect(yield* stored).toBe(0)
    // Acts on its people have no mode.
    yield* audited({ via: "portal", who: "per_1 Ann", owner: { account: defaultAccount } }, act, () => Effect.void)
    const one = yield* stored
    yield* audited(key, act, () => Effect.void)
    for (const bytes of [one, (yield* stored) - one]) {
      expect(bytes).toBeGreaterThan(90)
      expect(bytes).toBeLessThan(200)
    }
    expect((yield* logged)[0]).toMatchObject({ via: "api", who: "key_1", account: "default", mode: "test" })
  })
)

it.scopedLive("a page continues before the previous one, even if acts have the same time", () =>
  onStore(function* () {
    const reader = yield* Reader
    const insert = (at: number) =>
      `INSERT INTO audit (at, via, who, act, detail) VALUES (${at}, 'direct', 'alice', 'test act', '{}')`
    for (const at of [5, 5, 7, 5, 9]) yield* execute(insert(at))
    const ids = (since: number, before: number | undefined, limit: number) =>
      Effect.map(AuditRepo.list(reader, { since, before, limit }), (all) => all.map(({ sequence }) => sequence))
    expect(yield* ids(0, undefined, 10)).toEqual([5, 3, 4, 2, 1])
    expect(yield* ids(0, undefined, 2)).toEqual([5, 3])
    expect(yield* ids(0, 3, 2)).toEqual([4, 2])
    expect(yield* ids(0, 2, 2)).toEqual([1])
    expect(yield* ids(6, undefined, 10)).toEqual([5, 3])
    expect(yield* ids(0, 99, 10)).toEqual([])
  })
)
