import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { describe, expect } from "@effect/vitest"
import { adminOf } from "../lib/admin.ts"
import { type Answered, makeClient } from "../lib/api.ts"
import { homeOn, localChain, makeHome, serve } from "../lib/daemon.ts"
import { needs } from "../lib/needs.ts"
import { notifySocket } from "../lib/notifySocket.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { silentListener } from "../lib/silentListener.ts"
import { startTilld } from "../lib/tilld.ts"

/** The ports that a process listens on, by Linux. */
const listeningPorts = (pid: number): ReadonlyArray<number> => {
  const own = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`)))
  return ["tcp", "tcp6"].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === "0A" && own.has(`socket:[${inode}]`))
      .map(([, local = ""]) => Number.parseInt(local.split(":")[1] ?? "", 16))
  )
}

describe("the operator's listener", () => {
  liveTest("serves health and metrics and nothing else, and no metrics are elsewhere", function* () {
    const { chain, home } = yield* homeOn("base")
    const daemon = yield* serve(home, undefined, { TILLD_ADMIN__PORT: "0" })
    const admin = yield* adminOf(daemon)
    const error = ({ body, status }: Answered) => [status, body?.error.code]
    expect((yield* admin("GET", "/healthz")).body).toEqual({ alive: true })
    expect((yield* admin("GET", "/readyz")).body).toMatchObject({ chains: [{ chain: "base" }] })
    expect((yield* admin("HEAD", "/metrics")).status).toBe(200)
    for (const path of ["/", "/v1/payments", "/docs", "/openapi.json", "/metrics/", "/%6Detrics"]) {
      expect(error(yield* admin("GET", path, { key: daemon.key })), path).toEqual([404, "NOT_FOUND"])
    }
    const posted = yield* admin("POST", "/metrics", { json: {} })
    expect(error(posted)).toEqual([405, "METHOD_NOT_ALLOWED"])
    expect(posted.headers.allow).toBe("GET, HEAD")
    expect(posted.body.error.requestId).toBe(posted.headers["x-request-id"])

    const open = yield* makeClient(daemon.url)
    for (const key of [{}, { key: daemon.key }]) {
      expect(error(yield* open("GET", "/metrics", key))).toEqual([404, "NOT_FOUND"])
    }
    expect((yield* open("GET", "/healthz")).status).toBe(200)
    const operators = (yield* admin("GET", "/readyz")).body
    expect(operators.chains[0]).toMatchObject({ providers: [{ host: new URL(chain.url).host, healthy: true }] })
    expect(operators.dispatcher).toEqual({ due: 0, oldestDueMillis: 0 })
    const readiness = yield* open("GET", "/readyz")
    expect(Object.keys(readiness.body)).toEqual(["ready", "chains", "workers"])
    expect(readiness.body.chains).toEqual([{ chain: "base", mode: "test", ready: expect.any(Boolean) }])
    expect(readiness.body.workers).toEqual(
      [
        "addresses",
        "clock",
        "collecting",
        "conditions",
        "descriptors",
        "dispatcher",
        "expiry",
        "housekeeping",
        "invoices",
        "keys",
        "limits",
        "listener",
        "log",
        "matching",
        "prices",
        "refunds",
        "request log",
        "store",
        "store watch"
      ].map((name) => ({
        name,
        ready: true
      }))
    )
    expect(yield* daemon.end("SIGTERM")).toMatchObject({ code: 0 })
  })

  liveTest("does not exist unless it is configured", function* () {
    const chain = yield* localChain("base")
    const daemon = yield* serve(yield* makeHome({ chains: new Map([["base", chain]]) }))
    yield* daemon.hasRead(chain)
    expect(daemon.lines().filter((line) => line.includes("for the operator"))).toEqual([])
    if (existsSync("/proc/net/tcp")) expect(listeningPorts(daemon.pid)).toEqual([Number(new URL(daemon.url).port)])
  })
})

describe("the operator's listener and systemd", () => {
  needs("perl", "systemd-notify")

  liveTest(
    "whose port is taken is waited for, and the log names it; systemd hears of readiness once it is there",
    function* () {
      const taken = yield* silentListener()
      const { home } = yield* homeOn("base")
      const serviceManager = yield* notifySocket
      const env = { ...serviceManager.env, TILLD_ADMIN__PORT: String(taken.port) }
      const daemon = yield* startTilld(["serve", "--config", home.config], { env })
      yield* daemon.line(`Cannot listen on 127.0.0.1:${taken.port}: the port is taken`)
      expect(serviceManager.lines()).not.toContain("READY=1")
      yield* taken.close
      yield* daemon.line('"listening"')
      yield* serviceManager.line("READY=1")
    }
  )
})
