import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect } from "@effect/vitest"
import { Array as Arr, Effect, Random, Schedule } from "effect"
import type { InvoiceObject } from "../../src/Domain/Invoice.ts"
import { beginPayment, isRefused, untilRefused } from "../lib/inFlight.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { type RunOptions, root, start, startTilld } from "../lib/tilld.ts"

/** Listens on a port until the scope ends; false where someone else does. */
const listenOn = (port: number) =>
  Effect.suspend(() => {
    const server = createServer()
    const listening = Effect.async<boolean>((resume) => {
      server.once("error", () => resume(Effect.succeed(false)))
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed(true)))
    })
    return Effect.acquireRelease(listening, () => Effect.sync(() => server.close()))
  })

/** Ports in a row that no one listens on, below those that the system gives out by itself. */
const freePorts = (count: number): Effect.Effect<ReadonlyArray<number>> =>
  Effect.gen(function* () {
    const first = yield* Random.nextIntBetween(20_000, 32_000)
    const ports = Arr.makeBy(count, (i) => first + i)
    const free = yield* Effect.scoped(Effect.forEach(ports, listenOn, { concurrency: 1 }))
    return free.includes(false) ? yield* freePorts(count) : ports
  })

const isFree = (port: number) => isRefused(`http://127.0.0.1:${port}`)

/** A folder with the sandbox's own configuration, on other ports: the API's, then the chains'. */
const installation = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const ports = yield* freePorts(6)
  const usual = ["8080", "8545", "8546", "8547", "8548", "8549"]
  const text = readFileSync(join(root, "config/sandbox.toml"), "utf8").replaceAll(/\b8(?:080|54[5-9])\b/g, (port) =>
    String(ports[usual.indexOf(port)])
  )
  mkdirSync(join(folder, "config"))
  writeFileSync(join(folder, "config/sandbox.toml"), text)
  const sandbox = (args: ReadonlyArray<string> = [], options: RunOptions = {}) =>
    Effect.tap(startTilld(["sandbox", ...args], { cwd: folder, ...options }), ({ end }) =>
      // Killed, as others are at the end of a test, it would leave its chains.
      Effect.addFinalizer(() => end("SIGTERM"))
    )
  /** Starts it, and waits until it has said all that it has to say. */
  const up = Effect.tap(sandbox(), ({ line }) => line("Ctrl-C stops everything"))
  const nothingRuns = Effect.gen(function* () {
    const free = yield* Effect.forEach(ports, isFree, { concurrency: "unbounded" })
    expect(free).toEqual(ports.map(() => true))
    const left = readdirSync(join(folder, ".sandbox"))
    expect(left.filter((name) => /\.(?:pid|sock)$/.test(name))).toEqual([])
  })
  return { folder, ports, sandbox, up, nothingRuns }
})

const curl = fileURLToPath(new URL("../lib/curl.mjs", import.meta.url))

/** Runs what the sandbox has printed in a shell, in the folder that it was started in. */
const shellIn = (cwd: string) => (commands: string) =>
  Effect.gen(function* () {
    const standIn = `command -v curl >/dev/null || curl() { '${process.execPath}' '${curl}' "$@"; }`
    const { ended } = yield* start("sh", ["-c", `${standIn}\n${commands}`], { cwd })
    const { code, stderr, stdout } = yield* ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    return stdout
  }).pipe(Effect.scoped)

interface List {
  readonly data: ReadonlyArray<InvoiceObject>
}

/** The processes of the chains at these ports. */
const chainsAt = (ports: ReadonlyArray<number>): ReadonlyArray<number> =>
  readdirSync("/proc").flatMap((pid) => {
    const cmdline = `/proc/${pid}/cmdline`
    const [program = "", ...args] = existsSync(cmdline) ? readFileSync(cmdline, "utf8").split("\0") : []
    const port = args[args.indexOf("--port") + 1]
    return program.endsWith("/anvil") && ports.includes(Number(port)) ? [Number(pid)] : []
  })

/** Whether a process runs. One that has ended and that its parent has not waited for keeps its number. */
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const status = `/proc/${pid}/status`
  return !existsSync(status) || !/^State:\s+Z/m.test(readFileSync(status, "utf8"))
}

describe("the sandbox", () => {
  liveTest(
    "runs once, and prints commands that work as they stand: an invoice is made, and paid once something is chosen",
    function* () {
      const { folder, ports, sandbox, up } = yield* installation
      const { lines, pid } = yield* up
      const second = yield* (yield* sandbox()).ended
      expect(second).toMatchObject({ code: 2, stdout: "" })
      expect(second.stderr).toContain(`tilld sandbox, process ${pid}`)

      const shell = shellIn(folder)
      const printed = lines().join("\n")
      expect(printed).toMatch(/test key +svc_test_\w+/)
      for (const port of ports) expect(printed).toContain(`http://127.0.0.1:${port}`)

      const [create = "", pay = "", list = ""] = printed
        .split("\n\n")
        .filter((block) => /^ +(?:curl|node) /.test(block))
      const made: InvoiceObject = JSON.parse(yield* shell(create))
      expect(made).toMatchObject({ status: "open", merchantRef: "order-1", payments: [] })
      yield* shell(`curl -sS ${made.checkoutUrl}/choose -d choice=USDC-base`)
      const sent = yield* shell(pay.replace("inv_…", made.id))
      expect(sent).toContain("To expect: payment.detecting, then payment.confirmed and invoice.paid after 3 blocks.")
      const paid = yield* shell(list).pipe(
        Effect.map((text): List => JSON.parse(text)),
        Effect.flatMap(({ data }) => Arr.findFirst(data, ({ status }) => status === "paid")),
        Effect.retry(Schedule.spaced("200 millis"))
      )
      expect(sent).toContain(` USDC on base to ${paid.payments[0]?.address}, in ${paid.payments[0]?.txHash}\n`)
    }
  )

  for (const store of [[], ["--postgres"]]) {
    liveTest(
      `shows the whole job with --demo ${store}, and is a success once both payments are confirmed`,
      function* () {
        const { folder, nothingRuns, sandbox } = yield* installation
        const { code, stdout } = yield* (yield* sandbox(["--demo", ...store])).ended
        expect(code).toBe(0)
        const webhooks = stdout.split("\n").filter((line) => line.startsWith("webhook "))
        for (const kind of ["created", "detecting", "confirmed"]) {
          const verified = webhooks.filter((line) => line.includes(`payment.${kind} `) && line.includes("verified"))
          expect(verified, kind).toHaveLength(2)
        }
        yield* nothingRuns
        expect(existsSync(join(folder, ".sandbox/tilld.db"))).toBe(store.length === 0)
      }
    )
  }

  liveTest(
    "is not a success with --demo when it is stopped before it is done, and leaves nothing running",
    function* () {
      const { nothingRuns, sandbox } = yield* installation
      const demo = yield* sandbox(["--demo"])
      yield* demo.line("Starting five local chains")
      expect(yield* demo.end("SIGTERM")).toMatchObject({ code: 1, signal: null })
      yield* nothingRuns
    }
  )

  liveTest("fails loudly with --demo when a chain dies under it, and leaves nothing running", function* () {
    const { nothingRuns, ports, sandbox } = yield* installation
    const demo = yield* sandbox(["--demo"])
    yield* demo.line("paid ")
    const [chain] = chainsAt(ports)
    if (chain !== undefined) process.kill(chain, "SIGKILL")
    const { code, stderr } = yield* demo.ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/The local chain \w+ ended \(exit code 137/)
    yield* nothingRuns
  })
})

describe("the end of a sandbox", () => {
  liveTest("by Ctrl-C, pressed twice, ends all that it started, and is a success", function* () {
    const { nothingRuns, ports, up } = yield* installation
    const sandbox = yield* up
    const url = `http://127.0.0.1:${ports[0]}`
    const [key = ""] = /svc_test_\w+/.exec(sandbox.lines().join("\n")) ?? []
    // It ends when this is answered, and not before.
    const order = { chain: "base", currency: "ETH", amount: "1", merchantRef: "last" } as const
    const payment = yield* beginPayment({ url, key }, order)
    yield* sandbox.signal("SIGINT")
    yield* untilRefused(url)
    yield* sandbox.signal("SIGINT")
    expect(yield* payment.finish).toMatchObject({ status: 201 })
    const ended = yield* sandbox.ended
    expect(ended).toMatchObject({ code: 0, signal: null })
    // What it is at while it starts, chain by chain, and nothing else.
    const progress = ended.stderr.trimEnd().split("\n")
    expect([progress[0], progress.at(-1)]).toEqual([
      expect.stringMatching(/^Starting five local chains/),
      "Starting the daemon."
    ])
    expect(progress.slice(1, -1)).toEqual([1, 2, 3, 4, 5].map((n) => expect.stringMatching(`is up .${n} of 5.$`)))
    expect(ended.stdout).not.toContain("Starting")
    yield* nothingRuns
  })

  liveTest("by a closed terminal is a Ctrl-C", function* () {
    const { nothingRuns, up } = yield* installation
    const sandbox = yield* up
    expect(yield* sandbox.end("SIGHUP")).toMatchObject({ code: 0, signal: null })
    yield* nothingRuns
  })

  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    liveTest(`by ${signal} to npm ends the daemon and the chains that npm run sandbox started`, function* () {
      const { folder, nothingRuns, ports } = yield* installation
      const env = {
        TILLD_CONFIG: join(folder, "config/sandbox.toml"),
        HOME: folder,
        npm_config_update_notifier: "false"
      }
      const npm = yield* start("npm", ["run", "sandbox"], { env })
      yield* npm.line("Ctrl-C stops everything")
      const daemon = Number(readFileSync(join(folder, ".sandbox/tilld.db.pid"), "utf8").split(" ")[0])
      const pids = [daemon, ...chainsAt(ports)]
      const running = Effect.sync(() => pids.filter(isAlive))
      expect(yield* running).toHaveLength(6)
      yield* Effect.addFinalizer(() => Effect.map(running, (left) => left.map((pid) => process.kill(pid, "SIGKILL"))))
      yield* npm.signal(signal)
      yield* running.pipe(
        Effect.repeat({ schedule: Schedule.spaced("100 millis"), until: (left) => left.length === 0 })
      )
      yield* npm.ended
      yield* nothingRuns
    })
  }

  liveTest("by SIGKILL ends its chains too, so that the next one starts", function* () {
    const { nothingRuns, ports, up } = yield* installation
    const killed = yield* up
    expect(chainsAt(ports)).toHaveLength(5)
    yield* killed.end("SIGKILL")
    yield* Effect.repeat(
      Effect.sync(() => chainsAt(ports)),
      {
        schedule: Schedule.spaced("20 millis"),
        until: (left) => left.length === 0
      }
    )
    expect(yield* (yield* up).end("SIGTERM")).toMatchObject({ code: 0, signal: null })
    yield* nothingRuns
  })
})

describe("a sandbox that cannot start", () => {
  for (const [what, index] of [
    ["the API", 0],
    ["a chain", 3]
  ] as const) {
    liveTest(`since the port of ${what} is taken exits 2, names the port, and leaves nothing running`, function* () {
      const { ports, sandbox } = yield* installation
      const port = ports[index] ?? 0
      yield* listenOn(port)
      const { code, stderr } = yield* (yield* sandbox()).ended
      expect(code).toBe(2)
      expect(stderr).toMatch(new RegExp(`\\b${port}\\b`))
      const others = ports.filter((other) => other !== port)
      expect(yield* Effect.forEach(others, isFree, { concurrency: 1 })).toEqual(others.map(() => true))
    })
  }

  liveTest("since Anvil is not installed exits 2 with the command that installs it", function* () {
    const { folder, sandbox } = yield* installation
    // The program as `npm install --omit=dev` leaves it.
    cpSync(join(root, "dist"), join(folder, "dist"), { recursive: true })
    mkdirSync(join(folder, "node_modules"))
    for (const name of ["better-sqlite3", "secp256k1"]) {
      symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name))
    }
    const { code, stderr } = yield* (yield* sandbox([], { binary: join(folder, "dist/tilld.js") })).ended
    expect(code).toBe(2)
    expect(stderr).toContain("npm install --include=dev")
  })

  liveTest("since the database is not a sandbox's exits 2 and deletes nothing", function* () {
    const { folder, sandbox } = yield* installation
    const config = join(folder, "config/sandbox.toml")
    writeFileSync(config, readFileSync(config, "utf8").replace(".sandbox/tilld.db", "shop/tilld.db"))
    mkdirSync(join(folder, "shop"))
    writeFileSync(join(folder, "shop/tilld.db"), "money")
    const { code, stderr } = yield* (yield* sandbox()).ended
    expect(code).toBe(2)
    expect(stderr).toContain("config/sandbox.toml is not a sandbox's configuration")
    expect(readFileSync(join(folder, "shop/tilld.db"), "utf8")).toBe("money")
    expect(existsSync(join(folder, ".sandbox"))).toBe(false)
  })
})
