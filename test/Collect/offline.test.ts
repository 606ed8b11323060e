import { createServer } from "node:net"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { listenHere } from "../lib/loopback.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { start } from "../lib/tilld.ts"

liveTest("a sealed process opens no socket, resolves no name, and starts nothing that could", function* () {
  let connections = 0
  const { port } = yield* listenHere(
    createServer((socket) => {
      connections += 1
      socket.on("error", () => undefined).end("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    })
  )
  const script = ["--import", "./scripts/typescript.mjs", "test/Collect/sealed.ts", `${port}`]
  const { code, stderr, stdout } = yield* Effect.flatMap(start(process.execPath, script), ({ ended }) => ended)
  expect(code, stderr).toBe(0)
  const { after, before } = JSON.parse(stdout) as Record<"before" | "after", Record<string, string>>

  // Each reached something before: a connection, a name server or its answer, a process.
  const sealed = "tilld opens no socket and resolves no name"
  expect(Object.values(before).filter((outcome) => outcome.includes(sealed))).toEqual([])
  for (const name of [
    "net.connect",
    "http.get",
    "fetch",
    "undici",
    "net.listen",
    "dgram.send",
    "dns.lookup",
    "spawn",
    "ChildProcess.spawn",
    "cluster.fork",
    "inspector.open",
    "Worker"
  ]) {
    expect(before[name], name).toBe("done")
  }
  expect(connections).toBe(5)
  expect(Object.keys(after)).toEqual(Object.keys(before))
  for (const [name, outcome] of Object.entries(after)) expect(outcome, name).toContain(sealed)
})
