import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { constants } from "node:os"
import { dirname, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { request } from "undici"
import { localChain, makeHome, serve } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { type Running, root, start, startTilld, tilld } from "../lib/tilld.ts"

// Node opens its inspector at SIGUSR1: a port of 127.0.0.1 at which every local user reads the master key in memory.

const opened = "Debugger listening"
const refused = "tilld: Node's inspector is open, and whoever reaches it reads every key"

/** The flag of Node 22.14 and later, where this Node has it. */
const fromTheStart = process.allowedNodeEnvironmentFlags.has("--disable-sigusr1") ? ["--disable-sigusr1"] : []

const makeOne = Effect.flatMap(localChain("base"), (chain) => makeHome({ chains: new Map([["base", chain]]) }))

/** Sockets of a process that listen for TCP connections. */
const listening = (pid: number): number => {
  const tables = ["tcp", "tcp6"].flatMap((table) => readFileSync(`/proc/${pid}/net/${table}`, "utf8").split("\n"))
  const inodes = tables
    .map((line) => line.trim().split(/\s+/))
    .filter((words) => words[3] === "0A")
    .map((words) => `socket:[${words[9]}]`)
  const files = readdirSync(`/proc/${pid}/fd`).map((fd) => join(`/proc/${pid}/fd`, fd))
  // One that was closed meanwhile is none.
  return files.filter((file) => existsSync(file) && inodes.includes(readlinkSync(file))).length
}

/** Whether the process takes SIGUSR1, so that it no longer ends by it. */
const takesSignal = ({ pid }: Running) =>
  Effect.sync(() => {
    const [, caught = "0"] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? []
    return ((BigInt(`0x${caught}`) >> BigInt(constants.signals.SIGUSR1 - 1)) & 1n) === 1n
  })

describe("SIGUSR1", () => {
  liveTest("opens no inspector of a daemon that serves, however often it comes", function* () {
    const daemon = yield* serve(yield* makeOne)
    const before = listening(daemon.pid)
    for (let i = 0; i < 20; i++) {
      yield* daemon.signal("SIGUSR1")
      const alive = yield* Effect.promise(() => request(`${daemon.url}/healthz`))
      yield* Effect.promise(() => alive.body.dump())
      expect(alive.statusCode).toBe(200)
    }
    expect(listening(daemon.pid)).toBe(before)
    const { code, stderr } = yield* daemon.end("SIGTERM")
    expect(code).toBe(0)
    expect(stderr).not.toContain(opened)
  })

  liveTest("that comes before tilld runs lets no daemon serve with an open inspector", function* () {
    const { config } = yield* makeOne
    const daemon = yield* startTilld(["serve", "--config", config])
    // Node takes it first, to open its inspector, and tilld after it.
    yield* Effect.repeat(takesSignal(daemon), { until: (takes) => takes })
    const signals = Effect.forever(Effect.zipLeft(daemon.signal("SIGUSR1"), Effect.sleep("1 millis")))
    const serves = Effect.as(daemon.line('"listening"'), true)
    const ends = Effect.as(daemon.ended, false)
    const isServing = yield* Effect.raceFirst(signals, Effect.raceFirst(ends, serves))
    const { code, stderr } = yield* daemon.end("SIGTERM")
    expect({ code, opened: stderr.includes(opened), refused: stderr.includes(refused) }).toEqual(
      isServing ? { code: 0, opened: false, refused: false } : { code: 1, opened: true, refused: true }
    )
  })

  liveTest("is taken by the process that copies the database, too", function* () {
    const { config, folder } = yield* makeOne
    const daemon = yield* startTilld(["serve", "--config", config])
    yield* daemon.line('"listening"')
    const report = `process.on("exit", () => process.send && console.error("copied", process.listenerCount("SIGUSR1"), ...process.execArgv))`
    const { stderr } = yield* tilld(["backup", join(folder, "copy.db"), "--config", config], {
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(report)}` }
    })
    // Also by a command, which does not run with the flag itself.
    expect(stderr).toContain(`${["copied 1", ...fromTheStart].join(" ")}\n`)
  })
})

it.scopedLive.each(["serve", "keys", "--version"])("tilld %s does not run with an open inspector", (command) =>
  Effect.map(tilld([command], { env: { NODE_OPTIONS: "--inspect=127.0.0.1:0" } }), (ended) =>
    expect(ended).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining(refused) })
  )
)

liveTest("a daemon that a release starts has Node leave SIGUSR1 alone, where it can", function* () {
  const folder = yield* temporaryFolder
  const place = (path: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    return join(folder, path)
  }
  cpSync(join(root, "scripts/release/tilld"), place("current/bin/tilld"))
  symlinkSync(join(folder, "current/bin/tilld"), place("bin/tilld"))
  const program = place("current/dist/tilld.js")
  writeFileSync(
    program,
    "console.log(JSON.stringify([process.env.MALLOC_MMAP_THRESHOLD_, process.execArgv, ...process.argv.slice(1)]))"
  )
  const saidBy = (...words: ReadonlyArray<string>) =>
    Effect.map(
      Effect.flatMap(start(join(folder, "bin/tilld"), words), ({ ended }) => ended),
      ({ stdout }) => JSON.parse(stdout)
    )
  const always = ["--max-semi-space-size=4", "--no-parallel-scavenge"]
  expect(yield* saidBy("serve", "of two words")).toEqual([
    "65536",
    [...fromTheStart, ...always],
    program,
    "serve",
    "of two words"
  ])
  // Asking Node takes as long as a start of Node: a daemon alone, which runs for months, is worth that.
  expect(yield* saidBy("keys")).toEqual(["65536", always, program, "keys"])
})
