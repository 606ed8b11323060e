import { chmodSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { loadMasterKey, readNewMasterKey } from "../../src/Settings/masterKey.ts"
import { makeMasterKeyFile } from "../../src/Settings.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"

const keyOf = (byte: number) => Buffer.alloc(32, byte).toString("base64")

const firstByte = (database: string, env: Readonly<Record<string, string>>) =>
  Effect.map(loadMasterKey(database, env), (key) => Redacted.value(key)[0])

liveTest("the master key is the credential's, else the environment's, else that beside the database", function* () {
  const folder = yield* temporaryFolder
  const database = join(folder, "tilld.db")
  const none = yield* Effect.flip(loadMasterKey(database, {}))
  expect(none.message).toMatch(/master-key.*TILLD_MASTER_KEY.*master\.key.*openssl rand -base64 32/s)

  writeFileSync(join(folder, "master.key"), `${keyOf(3)}\n`, { mode: 0o600 })
  expect(yield* firstByte(database, {})).toBe(3)
  // A directory of credentials without ours.
  expect(yield* firstByte(database, { CREDENTIALS_DIRECTORY: folder })).toBe(3)
  expect(yield* firstByte(database, { TILLD_MASTER_KEY: keyOf(2) })).toBe(2)
  writeFileSync(join(folder, "master-key"), keyOf(1))
  expect(yield* firstByte(database, { CREDENTIALS_DIRECTORY: folder, TILLD_MASTER_KEY: keyOf(2) })).toBe(1)
  writeFileSync(join(folder, "master-key"), "")
  const broken = yield* Effect.flip(loadMasterKey(database, { CREDENTIALS_DIRECTORY: folder }))
  expect(broken.message).toContain("takes from /etc/tilld/master-key by default")
})

const asks = "must be 32 bytes in base64.*openssl"
it.effect.each([
  ["hex", "ab".repeat(32), asks],
  ["16 bytes", Buffer.alloc(16).toString("base64"), asks],
  ["base64 with extra characters", `${keyOf(1)}!`, asks],
  ["base64url", Buffer.alloc(32, 255).toString("base64url"), asks],
  ["nothing", "", asks],
  ["zeros", keyOf(0), "is all zeros.*openssl"]
])("%s is not a master key, and is not shown", ([, text, why]) =>
  Effect.gen(function* () {
    const { message } = yield* Effect.flip(loadMasterKey("/nowhere/tilld.db", { TILLD_MASTER_KEY: text }))
    expect(message).toMatch(new RegExp(`TILLD_MASTER_KEY ${why}`))
    if (text !== "") expect(message).not.toContain(text)
  })
)

it.scoped.each([0o644, 0o640, 0o604, 0o660])(
  "a key file of mode %o, which others can read, is refused, and so is a link",
  (mode) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const file = join(folder, "master.key")
      writeFileSync(file, keyOf(3))
      chmodSync(file, mode)
      const { message } = yield* Effect.flip(loadMasterKey(join(folder, "tilld.db"), {}))
      expect(message).toContain(`chmod 600 ${file}`)
      chmodSync(file, 0o400)
      expect(yield* firstByte(join(folder, "tilld.db"), {})).toBe(3)
      renameSync(file, `${file}.elsewhere`)
      symlinkSync(`${file}.elsewhere`, file)
      expect((yield* Effect.flip(loadMasterKey(join(folder, "tilld.db"), {}))).message).toContain(`${file} is a link`)
    })
)

liveTest("the sandbox's key is created once, readable only by its owner", function* () {
  const folder = yield* temporaryFolder
  const database = join(folder, "tilld.db")
  yield* makeMasterKeyFile(database)
  const made = readFileSync(join(folder, "master.key"), "utf8")
  expect(statSync(join(folder, "master.key")).mode & 0o777).toBe(0o600)
  yield* makeMasterKeyFile(database)
  expect(readFileSync(join(folder, "master.key"), "utf8")).toBe(made)
  expect(Buffer.from(Redacted.value(yield* loadMasterKey(database, {}))).toString("base64")).toBe(made.trim())
})

liveTest("a new master key file that others can read is refused, unless it is a systemd credential", function* () {
  const folder = yield* temporaryFolder
  const file = join(folder, "new-master-key")
  writeFileSync(file, keyOf(4))
  chmodSync(file, 0o644)
  const { message } = yield* Effect.flip(readNewMasterKey(file, {}))
  expect(message).toContain(`chmod 600 ${file}, and make another one`)
  expect(Redacted.value(yield* readNewMasterKey(undefined, { CREDENTIALS_DIRECTORY: folder }))[0]).toBe(4)
  chmodSync(file, 0o600)
  expect(Redacted.value(yield* readNewMasterKey(file, {}))[0]).toBe(4)
})
