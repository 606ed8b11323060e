import { existsSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Cause, Duration, Effect, Exit, Option, Redacted, Schedule } from "effect"
import { walletContext } from "../../src/Auth/AccountsRepo.ts"
import { rotate, sealedTables } from "../../src/Control/rotateSecrets.ts"
import { AccountId, EndpointId } from "../../src/Domain/Ids.ts"
import { fingerprintOf, makeSecrets } from "../../src/Secrets.ts"
import { acquire } from "../../src/Sql/InstanceLock.ts"
import * as Sql from "../../src/Sql.ts"
import { Writer } from "../../src/Sql.ts"
import { contextOf, endpointContext, replaceSecret } from "../../src/Webhooks/SigningKeys.ts"
import { waitForLog } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testXpub } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { startDaemonHere, startTilld, tilld } from "../lib/tilld.ts"

const keyOf = (byte: number) => Redacted.make(new Uint8Array(32).fill(byte))
const [oldKey, newKey] = [keyOf(7), keyOf(8)]
const base64 = (key: Redacted.Redacted<Uint8Array>) => Buffer.from(Redacted.value(key)).toString("base64")
const account = AccountId.make("default")
const endpointAt = (i: number) => EndpointId.make(`wh_${String(i).padStart(22, "0")}`)

/** A database with this number of endpoints, and one of each other secret, all sealed with the old key. */
const sealedDatabase = (endpoints: number) =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.scoped(Effect.provide(Effect.void, Sql.layer(path)))
    const { seal } = makeSecrets(oldKey)
    const db = new Database(path)
    db.transaction(() => {
      db.prepare("INSERT INTO meta (key, value) VALUES ('master_key_fingerprint', ?)").run(fingerprintOf(oldKey))
      db.prepare("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Default', 0)").run()
      const endpoint = db.prepare(
        "INSERT INTO endpoints (id, account_id, mode, url, events, secret, created_at) VALUES (?, 'default', 'test', 'https://a.example/', '[]', ?, 0)"
      )
      for (let i = 0; i < endpoints; i++) {
        endpoint.run(endpointAt(i), seal(`whsec_endpoint ${i}`, endpointContext(endpointAt(i))))
      }
      const own = db.prepare("INSERT INTO default_secrets (account_id, mode, secret, created_at) VALUES (?, ?, ?, 0)")
      for (const mode of ["live", "test"] as const) {
        own.run(account, mode, seal(`whsec_own ${mode}`, contextOf({ account, mode }, "secret")))
      }
      db.prepare("INSERT INTO account_wallets (account_id, mode, fingerprint, xpub) VALUES (?, 'live', 'f', ?)").run(
        account,
        seal(testXpub, walletContext(account, "live"))
      )
    })()
    db.close()
    return path
  })

const query = <A>(path: string, sql: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => new Database(path)),
    (db) => Effect.sync(() => db.prepare(sql).all() as ReadonlyArray<A>),
    (db) => Effect.sync(() => db.close())
  )

interface Sealed {
  readonly id: EndpointId
  readonly mode: "live" | "test"
  readonly secret: Uint8Array
}

/** All secrets, opened with `key`; throws if it does not open one. */
const openedBy = (path: string, key: Redacted.Redacted<Uint8Array>) =>
  Effect.gen(function* () {
    const { open } = makeSecrets(key)
    const endpoints = yield* query<Sealed>(path, "SELECT id, secret FROM endpoints ORDER BY id")
    const own = yield* query<Sealed>(path, "SELECT mode, secret FROM default_secrets ORDER BY mode")
    const [wallet] = yield* query<Sealed>(path, "SELECT xpub AS secret FROM account_wallets")
    return [
      ...endpoints.map(({ id, secret }) => open(secret, endpointContext(id))),
      ...own.map(({ mode, secret }) => open(secret, contextOf({ account, mode }, "secret"))),
      open(wallet?.secret ?? new Uint8Array(), walletContext(account, "live"))
    ].map(Redacted.value)
  })

const secretsOf = (endpoints: number) => [
  ...Array.from({ length: endpoints }, (_, i) => `whsec_endpoint ${i}`),
  "whsec_own live",
  "whsec_own test",
  testXpub
]

const rotating = (path: string, from: Redacted.Redacted<Uint8Array>, to: Redacted.Redacted<Uint8Array>) =>
  Effect.scoped(Effect.provide(rotate(from, to), Sql.layer(path)))

liveTest("all secrets are sealed again and open only with the new key; the old key has its own error", function* () {
  const path = yield* sealedDatabase(1_203)
  expect(yield* rotating(path, oldKey, newKey)).toEqual({
    rotated: true,
    secrets: 1_206,
    fingerprint: fingerprintOf(newKey)
  })
  expect(yield* openedBy(path, newKey)).toEqual(secretsOf(1_203))
  // A repeated rotation, as after a lost result.
  expect(yield* rotating(path, oldKey, newKey)).toMatchObject({ rotated: false, secrets: 0 })
  const wrong = yield* Effect.flip(rotating(path, oldKey, keyOf(9)))
  expect(wrong).toMatchObject({ _tag: "WrongMasterKey", message: expect.stringContaining("the former master key") })
})

liveTest("one value that does not open stops the rotation before any change", function* () {
  const path = yield* sealedDatabase(600)
  yield* query(path, "UPDATE account_wallets SET xpub = zeroblob(60) RETURNING 1")
  const refused = yield* Effect.flip(rotating(path, oldKey, newKey))
  expect(refused).toMatchObject({
    _tag: "RotationRefused",
    message: expect.stringContaining("account_wallets.xpub/default/live")
  })
  const [row] = yield* query<{ value: string }>(path, "SELECT value FROM meta WHERE key = 'master_key_fingerprint'")
  expect(row?.value).toBe(fingerprintOf(oldKey))
  const { open } = makeSecrets(oldKey)
  const sealed = yield* query<Sealed>(path, "SELECT id, secret FROM endpoints")
  for (const { id, secret } of sealed) expect(() => open(secret, endpointContext(id))).not.toThrow()
})

liveTest("a rotation that cannot store the new key's fingerprint seals nothing again", function* () {
  const path = yield* sealedDatabase(3)
  const trigger = new Database(path)
  for (const event of ["INSERT", "UPDATE"]) {
    trigger.exec(`CREATE TRIGGER fails_at_${event} BEFORE ${event} ON meta WHEN NEW.key = 'master_key_fingerprint'
      BEGIN SELECT RAISE(ABORT, 'the store fails'); END`)
  }
  trigger.close()
  const ended = yield* Effect.exit(rotating(path, oldKey, newKey))
  expect(Exit.isFailure(ended) && Cause.pretty(ended.cause)).toContain("the store fails")
  expect(yield* openedBy(path, oldKey)).toEqual(secretsOf(3))
})

liveTest("a former secret copied to the column of the current one does not open", function* () {
  const path = yield* sealedDatabase(0)
  const owner = { account, mode: "live" } as const
  const secrets = makeSecrets(oldKey)
  const replaced = Effect.flatMap(Writer, ({ write }) =>
    write(replaceSecret(secrets, owner, { overlap: Duration.hours(1) }, 1))
  )
  const opened = yield* Effect.scoped(Effect.provide(replaced, Sql.layer(path)))
  expect(Option.map(Option.fromNullable(opened.previous), ({ secret }) => Redacted.value(secret))).toEqual(
    Option.some("whsec_own live")
  )
  // Both are sealed again, each for its own column.
  expect((yield* rotating(path, oldKey, newKey)).secrets).toBe(4)
  yield* query(path, "UPDATE default_secrets SET secret = previous_secret WHERE mode = 'live' RETURNING 1")
  expect(yield* Effect.flip(rotating(path, newKey, oldKey))).toMatchObject({
    message: expect.stringContaining("default_secrets.secret/default/live")
  })
})

liveTest("the rotation knows every sealed column of the schema", function* () {
  const path = yield* sealedDatabase(0)
  const blobs = yield* query<{ place: string }>(
    path,
    `SELECT t.name || '.' || c.name AS place FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
     WHERE t.type = 'table' AND c.type = 'BLOB'`
  )
  // Hashes with their salts, public keys, and pictures that every customer sees.
  const unsealed = /^(?:idempotent_responses\.body_hash|shop_images\.bytes|\w+\.(?:hash|salt|public_key))$/
  const sealed = blobs.map(({ place }) => place).filter((place) => !unsealed.test(place))
  expect(new Set(sealed.map((place) => place.split(".")[0]))).toEqual(new Set(sealedTables.map(({ table }) => table)))
})

/** An installation with the database; commands get the old key by default. */
const installation = (endpoints: number) =>
  Effect.gen(function* () {
    const path = yield* sealedDatabase(endpoints)
    const folder = dirname(path)
    const config = join(folder, "tilld.toml")
    const keyFile = join(folder, "new-master-key")
    writeFileSync(
      config,
      `[server]\nport = 0\npublic_url = "http://127.0.0.1"\n[database]\npath = "${path}"\n[wallets]\ntest = "${testXpub}"
[chains.base.test]\nrpc_urls = ["http://127.0.0.1:1"]\n`
    )
    writeFileSync(keyFile, `${base64(newKey)}\n`, { mode: 0o600 })
    const env = (key: string) => ({ TILLD_CONFIG: config, TILLD_MASTER_KEY: key })
    const run = (args: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}, input?: string) =>
      tilld(args, { env: { ...env(base64(oldKey)), ...more }, ...(input === undefined ? {} : { input }) })
    return { path, folder, keyFile, env, run }
  })

liveTest("tilld secrets rotate takes the new key from a file, standard input or a credential", function* () {
  const { env, folder, keyFile, path, run } = yield* installation(3)
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* acquire(path, "serve")
      const busy = yield* run(["secrets", "rotate", "--new-key", keyFile])
      expect(busy).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("tilld serve, process") })
    })
  )
  for (const [args, input, said] of [
    [[], undefined, "--new-key"],
    [["--new-key", "-"], "short\n", "openssl rand -base64 32"]
  ] as const) {
    const refused = yield* run(["secrets", "rotate", ...args], {}, input)
    expect(refused).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(said) })
  }
  expect(yield* openedBy(path, oldKey)).toEqual(secretsOf(3))

  const receiver = { TILLD_ALERTS__URL: "https://alerts.example/" }
  const done = yield* run(["secrets", "rotate", "--new-key", "-"], receiver, `${base64(newKey)}\n`)
  expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining("tilld alerts secret prints it") })
  expect(done.stdout).toContain(`6 secrets are sealed with the new master key, fingerprint ${fingerprintOf(newKey)}`)
  const again = yield* run(["secrets", "rotate"], { CREDENTIALS_DIRECTORY: folder })
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("already") })

  const secret = ["webhooks", "secret", "--mode", "test"]
  const former = yield* run(["serve"])
  expect(former).toMatchObject({ code: 2, stderr: expect.stringContaining("the former master key") })
  const daemon = yield* startDaemonHere(join(folder, "tilld.toml"), env(base64(newKey)))
  yield* waitForLog(daemon, "listening")
  expect(yield* run(secret)).toMatchObject({ code: 0, stdout: "whsec_own test\n" })
  for (const { stderr, stdout } of [done, again, former]) {
    for (const key of [oldKey, newKey]) expect(stdout + stderr).not.toContain(base64(key))
  }
})

liveTest("after a kill at any moment the whole database opens with exactly one of the two keys", function* () {
  const { env, keyFile, path } = yield* installation(5_000)
  let current = oldKey
  let next = newKey
  for (const delay of [5, 60, 150, 300]) {
    writeFileSync(keyFile, base64(next), { mode: 0o600 })
    const running = yield* startTilld(["secrets", "rotate", "--new-key", keyFile], { env: env(base64(current)) })
    // It holds the lock from here on; the moment of the kill is random.
    const began = Effect.sync(() => existsSync(`${path}.pid`))
    yield* Effect.repeat(began, { until: (there) => there, schedule: Schedule.spaced("2 millis") }).pipe(
      Effect.raceFirst(running.ended)
    )
    yield* Effect.sleep(delay)
    yield* running.end("SIGKILL")
    const [row] = yield* query<{ value: string }>(path, "SELECT value FROM meta WHERE key = 'master_key_fingerprint'")
    const key = row?.value === fingerprintOf(next) ? next : current
    expect(row?.value).toBe(fingerprintOf(key))
    expect(yield* openedBy(path, key)).toEqual(secretsOf(5_000))
    if (key === next) [current, next] = [next, current]
  }
})
