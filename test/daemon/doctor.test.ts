import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { request } from "undici"
import type { Finding } from "../../src/Doctor.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { provider } from "../Chains/httpNode.ts"
import { type Daemon, type Home, localChain, makeHome, serve } from "../lib/daemon.ts"
import { type FaultName, type FaultOptions, type FaultProxy, startFaultProxy } from "../lib/faultProxy.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { tilld } from "../lib/tilld.ts"

const secret = "s3cr3t-k3y-0123456789"

/** A daemon on a chain with two providers, each behind a proxy and with a key in its URL. */
class Shop extends Context.Tag("test/Shop")<
  Shop,
  {
    readonly chain: LocalChain
    readonly home: Home
    readonly daemon: Daemon
    readonly first: FaultProxy
    readonly second: FaultProxy
  }
>() {
  static readonly layer = Layer.scoped(
    Shop,
    Effect.gen(function* () {
      const chain = yield* localChain("base")
      yield* chain.mine(20, 2)
      const [first, second] = [yield* startFaultProxy(chain.url), yield* startFaultProxy(chain.url)]
      const urls = [first, second].map(({ url }) => `${url}/v2/${secret}`)
      const home = yield* makeHome({ chains: new Map([["base", chain]]), rpcUrls: new Map([["base", urls]]) })
      return { chain, home, daemon: yield* serve(home), first, second }
    })
  )
}

interface Result {
  readonly code: number | null
  readonly ok: boolean
  readonly findings: ReadonlyArray<Finding>
  readonly output: string
}

/** The doctor's findings about a configuration; never anything secret. */
const examine = (config: string) =>
  Effect.map(tilld(["doctor", "--json", "--config", config]), ({ code, stderr, stdout }): Result => {
    const output = stdout + stderr
    expect(output).not.toContain(secret)
    expect(output).not.toContain("xpub")
    return { code, output, ...JSON.parse(stdout) }
  })

const examineHome = Effect.flatMap(Shop, ({ home }) => examine(home.config))

/** The same configuration with something changed in it. */
const edited = (what: string | RegExp, by: string) =>
  Effect.map(Shop, ({ home }) => {
    const file = `${home.config}.edited.toml`
    const text = readFileSync(home.config, "utf8")
    expect(text).toMatch(what)
    writeFileSync(file, text.replace(what, by))
    return file
  })

const statusOf = ({ findings }: Result, name: string | RegExp) =>
  findings.filter((finding) => (typeof name === "string" ? finding.name === name : name.test(finding.name)))

const host = ({ url }: FaultProxy) => new URL(url).host

/** A provider in front of another one that refuses longer batches, in words that name no number. */
const takingAtMost = (most: number, url: string) =>
  provider((calls, response, _, isBatch) => {
    const error = { code: -32600, message: "upgrade your plan" }
    const asked = JSON.stringify(isBatch ? calls : calls[0])
    const text =
      isBatch && calls.length > most
        ? Promise.resolve(JSON.stringify({ jsonrpc: "2.0", id: null, error }))
        : request(url, { method: "POST", body: asked }).then(({ body }) => body.text())
    void text.then((answer) => response.setHeader("content-type", "application/json").end(answer))
  })

liveSuite(Shop.layer, "doctor", (test) => {
  /** What it says while the first provider does this. */
  const during = (fault: FaultName, options?: Partial<FaultOptions>) =>
    Effect.gen(function* () {
      const { first } = yield* Shop
      yield* first.set(fault, options)
      return yield* Effect.ensuring(examineHome, first.set())
    })

  test("finds nothing that keeps a daemon from its work, beside it", function* () {
    const { chain, daemon, first, home, second } = yield* Shop
    yield* daemon.hasRead(chain)
    // As for root, to whom the unit gives no key.
    renameSync(`${home.folder}/master.key`, `${home.folder}/elsewhere`)
    const result = yield* examineHome
    renameSync(`${home.folder}/elsewhere`, `${home.folder}/master.key`)
    expect(result, result.output).toMatchObject({
      code: 0,
      ok: true,
      summary: { problems: 0, checks: result.findings.length }
    })
    expect(statusOf(result, /^daemon/)).toEqual([
      { status: "ok", name: "daemon", finding: expect.stringContaining(`process ${daemon.pid} runs version`) }
    ])
    const names = result.findings.map(({ name }) => name)
    for (const proxy of [first, second]) {
      for (const what of ["", " capabilities", " state", " logs"]) {
        expect(names).toContain(`base.test ${host(proxy)}${what}`)
      }
    }
    for (const what of [
      "base.test USDC",
      "base.test cost",
      "test wallet on base.test",
      "database",
      "schema",
      "address numbering"
    ]) {
      expect(names).toContain(what)
    }
    expect(statusOf(result, "master key")).toEqual([
      { status: "ok", name: "master key", finding: expect.stringContaining("the daemon runs with the one") }
    ])
    const capabilities = statusOf(result, /capabilities$/).map(({ finding }) => finding)
    expect(capabilities[0]).toMatch(/^state override yes, Multicall3 yes, traces .*, eth_simulateV1 (yes|no)$/)
  })

  test("knows a daemon whose files were removed with its socket and lock, and suggests neither ending it nor restoring", function* () {
    const { daemon, home } = yield* Shop
    const files = readdirSync(home.folder).filter((name) => name.startsWith("tilld.db"))
    const away = join(home.folder, "away")
    mkdirSync(away)
    const move = (from: string, to: string) =>
      Effect.sync(() => {
        for (const file of files) renameSync(join(from, file), join(to, file))
      })
    yield* move(home.folder, away)
    const asked = tilld(["doctor", "--config", home.config], {
      env: { TILLD_SERVER__PORT: new URL(daemon.url).port }
    })
    const { code, stdout } = yield* Effect.ensuring(asked, move(away, home.folder))
    expect(code).toBe(1)
    const [, first, ...others] = stdout.split("\n")
    expect(first).toMatch(
      /^FAIL {2}daemon: a tilld listens on .* only this process has it\. Remedy: put the same files/
    )
    expect(first).toContain("copy the database and its -wal out of /proc/PID/fd before tilld is stopped")
    expect(others.join("\n")).not.toMatch(/^FAIL|end it|tilld restore/m)
  })

  test("has a line for each in words, with the remedy", function* () {
    const { first, home } = yield* Shop
    yield* first.set("wrongChain")
    const { code, stderr, stdout } = yield* Effect.ensuring(tilld(["doctor", "--config", home.config]), first.set())
    expect(code).toBe(1)
    expect(stderr).toBe("tilld: one check failed\n")
    const [summary, line, ...others] = stdout.trimEnd().split("\n")
    expect(summary).toMatch(new RegExp(`^1 problem, \\d+ warnings?, ${others.length + 1} checks$`))
    expect(line).toBe(
      `FAIL  base.test ${host(first)}: ${host(first)} serves chain 1337, and chains.base.test is chain 31341: nothing is read from it. Remedy: check rpc_urls and chain_id of chains.base.test.`
    )
  })

  test("fails for a provider that does not respond, and looks through the other one", function* () {
    const { first } = yield* Shop
    for (const fault of ["drop", "hang", "tooManyRequests", "truncatedJson"] as const) {
      const result = yield* during(fault)
      expect(result, fault).toMatchObject({ code: 1, ok: false })
      expect(statusOf(result, `base.test ${host(first)}`), fault).toMatchObject([{ status: "fail" }])
      expect(statusOf(result, "base.test USDC"), fault).toMatchObject([{ status: "ok" }])
    }
  })

  test("warns of a provider with little state, or a short range of logs", function* () {
    const { first } = yield* Shop
    const pruned = statusOf(yield* during("prunedState"), `base.test ${host(first)} state`)
    expect(pruned).toMatchObject([
      { status: "warn", finding: "state of 0 blocks back, and not 10 blocks back (state)" }
    ])
    const short = statusOf(
      yield* during("rangeLimit", { blocks: 5, words: "quicknode" }),
      `base.test ${host(first)} logs`
    )
    expect(short).toMatchObject([{ status: "warn", finding: expect.stringContaining("it names 5 as its limit") }])
  })

  test("says which batches and block ranges a provider takes, and what that costs", function* () {
    const chain = yield* localChain("base")
    yield* chain.mine(1_100)
    const longRange = "catching up after an interruption takes very long: use a provider with a wider range"
    const logs = (most: number) => `logs of ${most} blocks in one call, and not of ${most * 10} `
    for (const [most, range, expected] of [
      [
        1,
        50,
        [
          ["warn", `${logs(10)}(range); it names 50 as its limit`, longRange],
          // A look and a read every tenth of a second, of two calls each.
          [
            "warn",
            "it takes no batches: up to 1,728,000 requests more a day, one for each call, while payments are open",
            "use one that takes batches, or raise poll_interval"
          ]
        ]
      ],
      [
        5,
        100,
        [
          ["ok", `${logs(100)}(range); it names 100 as its limit`, undefined],
          ["ok", "it takes 3 calls in a batch: long reads take more requests", undefined]
        ]
      ]
    ] as const) {
      const limited = yield* startFaultProxy(chain.url)
      yield* limited.set("rangeLimit", { blocks: range, words: "drpc" })
      const { url } = yield* takingAtMost(most, limited.url)
      const home = yield* makeHome({ chains: new Map([["base", chain]]), rpcUrls: new Map([["base", [url]]]) })
      const found = statusOf(yield* examine(home.config), / (logs|batches)$/)
      expect(found.map(({ finding, remedy, status }) => [status, finding, remedy])).toEqual(expected)
    }
  })

  test("compares each token with its contract", function* () {
    const decimals = yield* examine(yield* edited("decimals = 6", "decimals = 18"))
    expect(statusOf(decimals, "base.test USDC")).toMatchObject([
      { status: "fail", finding: "it has 6 decimals, and 18 are configured" }
    ])
    const nowhere = `address = "0x${"4".repeat(40)}"`
    const missing = yield* examine(yield* edited(/address = "0x[0-9a-fA-F]{40}"/, nowhere))
    expect(missing.code).toBe(1)
    expect(statusOf(missing, "base.test USDC")).toMatchObject([
      { status: "fail", finding: `there is no contract at 0x${"4".repeat(40)}` }
    ])
  })

  test("warns of a wallet whose next addresses are known to a chain", function* () {
    const { chain, home } = yield* Shop
    for (const index of [7, 150, 340]) yield* chain.payNative({ to: home.address(index), amount: 1n })
    yield* chain.mine()
    const found = statusOf(yield* examineHome, "test wallet on base.test")
    const finding = expect.stringMatching(/to 540 have a history: 7, 150, 340; the last is 340$/)
    expect(found).toMatchObject([{ status: "warn", finding }])
  })

  test("names every problem of a configuration that cannot be used", function* () {
    const result = yield* examine(yield* edited("confirmations = 3", "confirmations = 0"))
    expect(result).toMatchObject({ code: 1, ok: false })
    expect(result.findings).toMatchObject([
      { status: "fail", name: "configuration", finding: expect.stringContaining("chains.base.test.confirmations") }
    ])
  })

  test("works where no daemon has ever run, and reports a wrong master key", function* () {
    const { chain } = yield* Shop
    const home = yield* makeHome({ chains: new Map([["base", chain]]) })
    const fresh = yield* examine(home.config)
    expect(fresh.code).toBe(0)
    expect(statusOf(fresh, "database")).toMatchObject([
      { status: "warn", finding: `${home.database} is not there yet` }
    ])
    for (const name of ["master key", "disk"]) {
      expect(statusOf(fresh, name)).toMatchObject([{ status: "ok" }])
    }
    expect(statusOf(fresh, "address numbering")).toMatchObject([
      { status: "ok", finding: "it begins with the first start" }
    ])

    const daemon = yield* serve(home)
    yield* daemon.end("SIGTERM")
    writeFileSync(`${home.folder}/master.key`, Buffer.alloc(32, 1).toString("base64"), { mode: 0o600 })
    const files = readdirSync(home.folder).toSorted()
    const swapped = yield* examine(home.config)
    expect(readdirSync(home.folder).toSorted()).toEqual(files)
    expect(statusOf(swapped, "daemon")).toMatchObject([{ status: "fail", finding: "it is down" }])
    expect(statusOf(swapped, "database")).toMatchObject([{ status: "ok" }])
    expect(statusOf(swapped, "master key")).toMatchObject([{ status: "fail" }])
    chmodSync(`${home.folder}/master.key`, 0o640)
    expect(statusOf(yield* examine(home.config), "master key")).toMatchObject([
      { status: "fail", finding: expect.stringContaining("can be read by others than its owner: chmod 600") }
    ])
  })
})
