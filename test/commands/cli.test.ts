import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { liveTest } from "../lib/scopedTest.ts"
import { liveXpub, testXpub } from "../lib/settings.ts"
import { tilld as run } from "../lib/tilld.ts"
import { besideDaemon, configuration, installation } from "./installation.ts"

const xprv =
  "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi"
liveTest("the path of the database is relative to the configuration, whatever the working folder", function* () {
  const { folder, tilld } = yield* besideDaemon
  const elsewhere = join(folder, "elsewhere")
  mkdirSync(elsewhere)
  const create = ["keys", "create", "--mode", "test", "--name", "shop"]
  const at = (config: string, args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
    run([...args, "--config", config], { cwd: elsewhere, env })
  expect(yield* at("../tilld.toml", create)).toMatchObject({ code: 0 })
  expect(JSON.parse((yield* tilld(["keys", "list", "--json"])).stdout)).toHaveLength(1)
  expect(JSON.parse((yield* at(join(folder, "tilld.toml"), ["keys", "list", "--json"])).stdout)).toHaveLength(1)

  // A path in the environment is one from where tilld is started, as that of --config.
  const own = yield* at("../tilld.toml", create, { TILLD_DATABASE__PATH: "own.db" })
  expect(own.stderr).toContain(`none listens at ${join(elsewhere, "own.db.sock")}`)
  expect(readdirSync(elsewhere)).toEqual([])
})

liveTest("without a daemon a command says how to start it, with exit code 2, and leaves nothing", function* () {
  const { database, folder, tilld } = yield* installation
  const commands: ReadonlyArray<ReadonlyArray<string>> = [
    ["keys", "create", "--mode", "test", "--name", "shop"],
    ["accounts", "create", "--name", "Shop", "--shared-wallet"],
    ["payments", "list"],
    ["payments", "abandon", "--chain", "base", "--mode", "test"],
    ["keys", "list"],
    ["keys", "revoke", "key_none"],
    ["accounts", "list"],
    ["webhooks", "list"],
    ["webhooks", "secret", "--mode", "test"],
    ["webhooks", "test", "wh_none"],
    ["claim", "--chain", "base", "--mode", "test", `0x${"1".repeat(64)}`],
    ["rescan", "--chain", "base", "--mode", "test", "--from", "1"],
    ["sweep", "plan", "--chain", "base", "--mode", "test", "--refund", "all", "--output", join(folder, "plan")]
  ]
  for (const command of commands) {
    const { code, stderr, stdout } = yield* tilld(command)
    expect([code, stdout], command.join(" ")).toEqual([2, ""])
    expect(stderr, command.join(" ")).toBe(
      `tilld: This command needs a running daemon, and none listens at ${database}.sock: start it with: systemctl start tilld (or tilld serve)\n`
    )
  }
  expect(readdirSync(folder, { recursive: true })).toEqual(["data", "tilld.toml"])
})

liveTest("an account gets its own wallet, by standard input", function* () {
  const { tilld } = yield* besideDaemon
  const own = yield* tilld(["accounts", "create", "--name", "Shop", "--live-xpub", "-", "--json"], {}, `${liveXpub}\n`)
  expect(own).toMatchObject({ code: 0, stderr: "" })
  expect(JSON.parse(own.stdout)).toMatchObject({ name: "Shop", wallets: ["live"] })
  const shared = yield* tilld(["accounts", "create", "--name", "Other", "--shared-wallet"])
  expect(shared.stdout).toMatch(/^acct_[\w-]{22}\n$/)
  const list = yield* tilld(["accounts", "list", "--json"])
  expect(JSON.parse(list.stdout).map(({ wallets }: { wallets: unknown }) => wallets)).toEqual([
    "shared",
    ["live"],
    "shared"
  ])
  const secret = yield* tilld(["webhooks", "secret", "--mode", "test", "--account", shared.stdout.trim(), "--json"])
  expect(JSON.parse(secret.stdout)).toEqual({ secret: expect.stringMatching(/^whsec_/) })
})

liveTest("an account's quota and limits are changed, each alone, and reset to the configuration", function* () {
  const { tilld } = yield* besideDaemon
  const changed = (...options: ReadonlyArray<string>) =>
    Effect.map(tilld(["accounts", "change", "default", "--json", ...options]), ({ code, stderr, stdout }) => {
      expect([code, stderr]).toEqual([0, ""])
      const { perHour, perMinute, quotaBytes } = JSON.parse(stdout)
      return [quotaBytes, perMinute, perHour]
    })
  expect(yield* changed("--quota", "1.5GB")).toEqual([1_500_000_000, 1_000, 10_000])
  expect(yield* changed("--per-minute", "50", "--per-hour", "70")).toEqual([1_500_000_000, 50, 70])
  expect(yield* changed("--per-minute", "default", "--quota", "none")).toEqual([undefined, 1_000, 70])
  const [listed] = JSON.parse((yield* tilld(["accounts", "list", "--json"])).stdout)
  expect(listed).toMatchObject({ id: "default", usedBytes: expect.any(Number), perMinute: 1_000, perHour: 70 })
  expect((yield* tilld(["accounts", "list"])).stdout).toMatch(/USED/i)
  const refused = yield* tilld(["accounts", "change", "default", "--per-minute", "0"])
  const said = "--per-minute must be a whole number from 1 to 1000000, or default"
  expect(refused).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(said) })
  const unknown = yield* tilld(["accounts", "change", "acct_0123456789012345678901", "--quota", "5GB"])
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("acct_0123456789012345678901") })
})

liveTest("an extended public key is not for arguments, which every user of the machine sees", function* () {
  const { folder, tilld } = yield* besideDaemon
  const create = (place: string) => tilld(["accounts", "create", "--name", "Shop", "--live-xpub", place])
  const inline = yield* create(liveXpub)
  expect(inline).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("takes a file") })
  expect(inline.stderr).not.toContain(liveXpub)
  const file = join(folder, "shop.xpub")
  expect(yield* create(file)).toMatchObject({ code: 2, stderr: expect.stringContaining(`${file} cannot be read`) })
  writeFileSync(file, "no key")
  expect(yield* create(file)).toMatchObject({ code: 2, stderr: expect.stringContaining("must be the extended") })
  writeFileSync(file, `${liveXpub}\n`)
  expect(yield* create(file)).toMatchObject({ code: 0 })
})

liveTest("a webhook secret is rotated, with an overlap of a day unless another is given", function* () {
  const { tilld } = yield* besideDaemon
  const command = ["webhooks", "secret", "--mode", "test"]
  const first = (yield* tilld(command)).stdout.trim()
  expect(first).toMatch(/^whsec_\S{44}$/)
  const started = yield* Clock.currentTimeMillis
  const rotated = yield* tilld([...command, "--rotate", "--json"])
  expect(rotated).toMatchObject({ code: 0, stderr: "" })
  const { secret, previous } = JSON.parse(rotated.stdout)
  expect([previous.secret, secret === first]).toEqual([first, false])
  const overlap = Date.parse(previous.until) - started
  expect(overlap).toBeGreaterThanOrEqual(86_400_000)
  expect(overlap).toBeLessThan(86_400_000 + 60_000)

  expect(JSON.parse((yield* tilld([...command, "--json"])).stdout)).toEqual({ secret, previous })
  const shown = yield* tilld(command)
  expect(shown).toMatchObject({ stdout: `${secret}\n`, stderr: expect.stringContaining(`Until ${previous.until} `) })
  const again = yield* tilld([...command, "--rotate"])
  expect(again).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(previous.until) })
  const atOnce = yield* tilld([...command, "--rotate", "--overlap", "0s", "--json"])
  expect(JSON.parse(atOnce.stdout)).toEqual({ secret: expect.stringMatching(/^whsec_/) })

  expect(yield* tilld([...command, "--overlap", "1h"])).toMatchObject({ code: 2, stdout: "" })
})

liveTest("a private key is refused and not shown", function* () {
  const { folder, tilld } = yield* installation
  const given = yield* tilld(["accounts", "create", "--name", "Shop", "--test-xpub", xprv])
  writeFileSync(join(folder, "bad.toml"), configuration.replace(testXpub, xprv))
  const configured = yield* tilld(["config", "check", "--config", join(folder, "bad.toml")])
  for (const { code, stderr, stdout } of [given, configured]) {
    expect(code).toBe(2)
    expect(stderr).toContain("extended private key")
    expect(stderr + stdout).not.toContain(xprv.slice(0, 20))
  }
})

liveTest("config check names every problem, also as JSON", function* () {
  const { folder, tilld } = yield* installation
  expect(yield* run(["config", "check"], { cwd: folder, env: { TILLD_CONFIG: "tilld.toml" } })).toMatchObject({
    code: 0,
    stdout: "tilld.toml is valid. Chains: base.test\nStill the example's: server.public_url\n",
    stderr: ""
  })
  expect(yield* tilld(["config", "check"], { TILLD_SERVER__PUBLIC_URL: "https://pay.shop.net" })).toMatchObject({
    stdout: `${join(folder, "tilld.toml")} is valid. Chains: base.test\n`
  })
  const badFile = join(folder, "bad.toml")
  writeFileSync(badFile, `${configuration}confirmations = 0\nsped = 1\n`)
  const bad = yield* tilld(["config", "check", "--config", badFile, "--json"], { TILLD_SERVER__PORT: "x" })
  expect(bad.code).toBe(2)
  expect(JSON.parse(bad.stdout)).toMatchObject({
    valid: false,
    file: badFile,
    problems: [{ at: "TILLD_SERVER__PORT" }, { at: "chains.base.test.sped" }, { at: "chains.base.test.confirmations" }]
  })
  const none = yield* tilld(["keys", "list"], { TILLD_CONFIG: "none.toml" })
  expect(none).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("no file none.toml") })
  const empty = yield* tilld(["keys", "list"], { TILLD_CONFIG: "" })
  expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining("no file config/tilld.toml") })
})

liveTest("bad usage is reported on standard error, with exit code 2", function* () {
  const { tilld } = yield* installation
  const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, said: string]> = [
    [["keys", "create", "--name", "x"], "--mode"],
    [["keys", "create", "--mode", "prod", "--name", "x"], "--mode must be live or test"],
    [
      ["keys", "create", "--mode", "test", "--name", "x", "--permissions", "payments:reed"],
      "did you mean payments:read"
    ],
    [["keys", "create", "--mode", "test", "--name", "x", "--expires", "soon"], "duration"],
    [["keys", "create", "--mode", "test", "--name", "x", "--nonsense"], "--nonsense"],
    [["keys", "list", "more"], "more"],
    [["keys", "list", "--wizard"], "--wizard is not known here"],
    [["webhooks", "redeliver", "dlv_1", "--status", "failing"], "An ID names one delivery: leave out --status"],
    [["accounts", "create", "--name", "x"], "Give either the shared wallet"],
    [["nonsense"], "tilld has no command nonsense. It has accounts, "],
    [["key"], "did you mean keys?"],
    [["keys", "lst"], "tilld keys has no command lst: did you mean list? It has change, create, list, revoke, roll\n"],
    [["sandbox", "pya"], "tilld sandbox has no command pya"],
    [["keys", "list", "--limit", "x"], "--limit must be a whole number from 1 to 1000"],
    [["payments", "show"], "<PAYMENT> is missing"],
    // Where to look.
    [["payments", "pay"], "See tilld payments --help\n"],
    [["payments", "accept"], "See tilld payments accept --help\n"],
    [["pay"], "See tilld --help\n"]
  ]
  const results = yield* Effect.forEach(wrong, ([args]) => tilld(args), { concurrency: 2 })
  for (const [i, { code, stderr, stdout }] of results.entries()) {
    const [args, said] = wrong[i] ?? [[], ""]
    expect(code, args.join(" ")).toBe(2)
    expect(stdout, args.join(" ")).toBe("")
    expect(stderr, args.join(" ")).toContain(said)
  }
})

liveTest("help and version go to standard output, without colours where there is no terminal", function* () {
  const { tilld } = yield* installation
  const help = yield* tilld(["keys", "create", "--help"])
  expect(help).toMatchObject({ code: 0, stderr: "" })
  for (const option of ["--config", "--json", "--mode", "--permissions"]) expect(help.stdout).toContain(option)
  expect(help.stdout).not.toContain("\u001b")
  expect((yield* tilld(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\s*$/)
})

liveTest("a wrong or a missing master key is exit code 2, with the remedy", function* () {
  const { start, tilld } = yield* installation
  expect(yield* tilld(["serve"], { TILLD_MASTER_KEY: "short" })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("openssl rand -base64 32")
  })
  const daemon = yield* start()
  yield* daemon.end("SIGTERM")
  const other = yield* tilld(["serve"], { TILLD_MASTER_KEY: Buffer.alloc(32, 8).toString("base64") })
  expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("not the master key") })
})
