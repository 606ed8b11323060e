// Tries whatever opens a socket, resolves a name, or starts something that could, before and after the process is sealed.
// Prints for each what it ended with. Started by offline.test.ts.
import { ChildProcess, execFile, spawn } from "node:child_process"
import cluster from "node:cluster"
import { createSocket } from "node:dgram"
import dns, { lookup } from "node:dns"
import { resolve4 } from "node:dns/promises"
import { get } from "node:http"
import inspector from "node:inspector"
import { connect, createServer } from "node:net"
import { connect as connectTls } from "node:tls"
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import { Client } from "undici"
import { goOffline } from "../../src/Collect/offline.ts"

const port = Number(process.argv[2])
const url = `http://127.0.0.1:${port}/`

/** Settles with the first event of these, or with what was thrown. */
const until = (emitter: { on: (name: string, listener: (value: unknown) => void) => unknown }, done: string) =>
  new Promise((resolve, reject) => {
    emitter.on(done, resolve)
    emitter.on("error", reject)
  })

const called = (call: (done: (error: unknown) => void) => void) =>
  new Promise<void>((resolve, reject) => call((error) => (error ? reject(error) : resolve())))

const tries: Readonly<Record<string, () => Promise<unknown>>> = {
  "net.connect": () => until(connect(port, "127.0.0.1"), "connect"),
  "net.connect to a path": () => until(connect(`/proc/${process.pid}/none.sock`), "connect"),
  "tls.connect": () => until(connectTls(port, "127.0.0.1"), "secureConnect"),
  "http.get": () => until(get(url), "response"),
  // @effect-diagnostics-next-line globalFetch:off
  fetch: () => fetch(url),
  undici: () => new Client(url).request({ path: "/", method: "GET" }),
  "net.listen": () => until(createServer().listen(0, "127.0.0.1"), "listening"),
  "dgram.send": () => called((done) => createSocket("udp4").send("x", port, "127.0.0.1", done)),
  "dgram.bind": () => until(createSocket("udp4").bind(0, "127.0.0.1"), "listening"),
  "dns.lookup": () => called((done) => lookup("localhost", done)),
  "dns.promises.lookup": () => dns.promises.lookup("localhost"),
  "dns.promises.resolve4": () => resolve4("localhost"),
  "dns.Resolver": () => called((done) => new dns.Resolver().resolve4("localhost", done)),
  spawn: () => until(spawn("true"), "exit"),
  "ChildProcess.spawn": () => {
    const child = Reflect.construct(ChildProcess, []) as ChildProcess & { spawn: (options: object) => void }
    child.spawn({ file: "true", args: ["true"], stdio: "ignore" })
    return until(child, "exit")
  },
  "cluster.fork": async () => {
    cluster.setupPrimary({ exec: "/dev/null" })
    const worker = cluster.fork()
    await until(worker, "online")
    worker.process.kill()
  },
  "inspector.open": async () => {
    inspector.open(0, "127.0.0.1")
    inspector.close()
  },
  execFile: () => called((done) => execFile("true", done)),
  Worker: () => until(new Worker("", { eval: true }), "exit")
}

const attempt = async (name: string): Promise<readonly [string, string]> => {
  try {
    await tries[name]?.()
    return [name, "done"]
  } catch (cause) {
    const { cause: inner, message } = cause as Error
    return [name, inner instanceof Error ? inner.message : message]
  }
}

const all = async () => {
  const found: Record<string, string> = {}
  for (const name of Object.keys(tries)) Object.assign(found, Object.fromEntries([await attempt(name)]))
  return found
}

const before = await all()
await Effect.runPromise(goOffline)
const after = await all()
process.stdout.write(JSON.stringify({ before, after }), () => process.exit(0))
