import { spawn } from "node:child_process"
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Fiber } from "effect"
import { listAccounts } from "../../src/Auth/accountOperations.ts"
import { listKeys } from "../../src/Auth/keyOperations.ts"
import { ask } from "../../src/commands/askDaemon.ts"
import { collected } from "../lib/logs.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testSettings, testXpub } from "../lib/settings.ts"
import { acceptedSockets } from "../lib/socket.ts"
import { execute, rows, temporaryFolder } from "../lib/store.ts"
import { PATH, root } from "../lib/tilld.ts"
import { accesses, askSample, besideDaemon, exchange, logged, nameOf, requestOf, samples } from "./world.ts"

/** A group without members, and a user who is in no other group. */
const readers = 54_321
const bob = { uid: 54_322, gid: readers }

/** Folders as the systemd unit makes them: the database's, for the daemon only, and a setgid folder of the group. */
const installation = Effect.map(temporaryFolder, (folder) => {
  chmodSync(folder, 0o755)
  const [own, shared] = [join(folder, "own"), join(folder, "run")]
  mkdirSync(own, { mode: 0o750 })
  mkdirSync(shared)
  if (process.getuid?.() === 0) chownSync(shared, 0, readers)
  chmodSync(shared, 0o2750)
  const readSocket = join(shared, "read.sock")
  return {
    folder,
    readSocket,
    settings: testSettings(join(own, "tilld.db"), { control: { readSocket }, alerts: { url: "http://127.0.0.1:1/" } })
  }
})

const changes = rows("SELECT * FROM api_keys, accounts, wallets, exceptions")

liveTest("only their owner and group can use the sockets; the read-only one has the group of its folder", function* () {
  const { folder, readSocket, settings } = yield* installation
  yield* besideDaemon(settings, function* () {
    const [own, shared] = [`${settings.database.path}.sock`, readSocket].map((path) => statSync(path))
    expect([own?.mode, shared?.mode].map((mode = 0) => mode & 0o777)).toEqual([0o660, 0o660])
    expect(own?.gid).toBe(process.getgid?.())
    expect(shared?.gid).toBe(statSync(join(folder, "run")).gid)
    expect(yield* logged).toEqual([])
  })
  expect(existsSync(readSocket)).toBe(false)
})

liveTest("every command that reads works at the read-only socket, all others are refused there", function* () {
  const { readSocket, settings } = yield* installation
  yield* besideDaemon(settings, function* () {
    const before = yield* changes
    for (const sample of samples) {
      const name = nameOf(sample)
      const answer = yield* Effect.either(askSample({ socket: readSocket }, sample))
      if (accesses.get(name) === "read") expect(answer._tag, name).toBe("Right")
      else {
        const message = expect.stringContaining(`${readSocket} takes commands that only read`)
        expect(answer, name).toMatchObject({ _tag: "Left", left: { _tag: "Forbidden", message } })
      }
    }
    expect(yield* logged).toEqual([])
    expect(yield* changes).toEqual(before)
  })
})

liveTest("pages are limited, so that a reader cannot load a whole table into the daemon's memory", function* () {
  const { readSocket, settings } = yield* installation
  const status = (name: string, input: object) =>
    Effect.map(exchange(readSocket, requestOf(name, input)), (answer) => answer.slice(9, 12))
  yield* besideDaemon(settings, function* () {
    for (const name of ["webhooks list", "payments list", "payments exceptions", "keys list"]) {
      expect(yield* status(name, { limit: 1000 }), name).toBe("200")
      expect(yield* status(name, { limit: 1001 }), name).toBe("400")
    }
    const events = Array.from({ length: 5000 }, () => "failed")
    expect(yield* status("webhooks list", { status: events })).toBe("400")
    expect(yield* status("audit", { limit: 1000 })).toBe("200")
    expect(yield* status("audit", { limit: 1001 })).toBe("400")
  })
})

it.scopedLive(
  "one reader at a time gets its response, and one that does not read it is soon cut off for the next",
  () => {
    const { lines, logger } = collected()
    return Effect.gen(function* () {
      const { readSocket, settings } = yield* installation
      yield* besideDaemon(settings, function* () {
        yield* execute(
          `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
             INSERT INTO audit (at, via, who, act, detail)
             SELECT i, 'socket', 'alice', 'test act', '{"of":"' || hex(zeroblob(450)) || '"}' FROM n`
        )
        const events: Array<string> = []
        const asking = (name: string, limit: number) => {
          const socket = connect(readSocket).setEncoding("utf8")
          socket.write(requestOf("audit", { limit }))
          const ended = Effect.async<void>((resume) => {
            socket.once("close", () => {
              events.push(name)
              resume(Effect.void)
            })
          })
          return { socket, ended }
        }
        const greedy = asking("greedy", 1_000)
        yield* Effect.async<void>((resume) => void greedy.socket.once("readable", () => resume(Effect.void)))
        // Of one that goes before its turn nothing is carried out: without its table that would be logged.
        yield* execute("DROP TABLE api_keys")
        const gone = connect(readSocket)
        gone.write(requestOf("keys list", {}))
        yield* ask(settings, listAccounts, {})
        gone.destroy()
        const next = asking("next", 1)
        next.socket.resume()
        const closed = yield* Effect.fork(next.ended)
        // More than what lies in the kernel's buffers is never read: the daemon hangs up, and what it had sent remains.
        // It has five seconds for that, not the thirty that the owner's commands have.
        const [waited] = yield* Effect.timed(Fiber.join(closed))
        expect(Duration.toSeconds(waited)).toBeLessThan(20)
        greedy.socket.resume()
        yield* greedy.ended
        expect(events).toEqual(["next", "greedy"])
        expect(greedy.socket.bytesRead).toBeLessThan(900_000)
        expect(lines.filter(({ level }) => level === "ERROR")).toEqual([])
      })
    }).pipe(Effect.provide(logger))
  }
)

liveTest("requests whose clients have gone keep no reader waiting, nor do bodies that never arrive", function* () {
  const { readSocket, settings } = yield* installation
  yield* besideDaemon(settings, function* () {
    const opened = (bytes: string) =>
      Effect.async<Socket>((resume) => {
        const socket = connect(readSocket).on("error", () => undefined)
        socket.write(bytes, () => resume(Effect.succeed(socket)))
      })
    // A body that does not come, requests on one connection, and requests that are left.
    yield* opened(requestOf("keys list", { limit: 10 }).slice(0, -3))
    yield* opened(requestOf("keys list", {}).repeat(2_000))
    for (let i = 0; i < 20; i++) (yield* opened(requestOf("keys list", {}))).destroy()
    const [waited, keys] = yield* Effect.timed(ask({ socket: readSocket }, listKeys, {}))
    expect(keys).toHaveLength(1)
    expect(Duration.toSeconds(waited)).toBeLessThan(4)
  })
})

const inChunks = "POST /keys/list HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"

it.scopedLive.each([
  ["a body in one-byte chunks", inChunks + "1\r\n \r\n".repeat(500_000), /^HTTP\/1.1 400 [^{]*.*small pieces/s],
  ["the same, of an allowed size", `${inChunks}${"1\r\n \r\n".repeat(600)}0\r\n\r\n`, /^HTTP\/1.1 400 .*small pieces/s],
  ["trailers", `${inChunks}0\r\n${"a:\r\n".repeat(500_000)}`, /^HTTP\/1.1 431 /],
  ["blank lines", "\r\n".repeat(1_000_000), /^HTTP\/1.1 431 /],
  ["requests on one connection", requestOf("keys list", {}).repeat(20_000), /^HTTP\/1.1 [24]00 ((?!HTTP\/1.1 200).)*$/s]
] as const)("what arrives at either socket is read no further than it may be used: %s", ([, said, answer]) =>
  Effect.gen(function* () {
    const { readSocket, settings } = yield* installation
    yield* besideDaemon(settings, function* () {
      for (const path of [readSocket, `${settings.database.path}.sock`]) {
        const accepted = yield* acceptedSockets
        expect(yield* exchange(path, said), path).toMatch(answer)
        expect(accepted.map(({ bytesRead }) => bytesRead < 512 * 1024)).toEqual([true])
      }
    })
  })
)

liveTest("a form of thousands of names, or of more bytes than a body may have, is refused", function* () {
  const { readSocket, settings } = yield* installation
  yield* besideDaemon(settings, function* () {
    const head = [
      "POST /keys/list HTTP/1.1",
      "Host: t",
      "Content-Type: application/x-www-form-urlencoded; charset=utf-8"
    ]
    const answerTo = (form: string) =>
      exchange(readSocket, [...head, `Content-Length: ${form.length}`, "", form].join("\r\n"))
    const names = Array.from({ length: 12_000 }, (_, i) => i.toString(36))
    expect(yield* answerTo(names.join("&"))).toContain("must have 100 fields at most")
    expect(yield* answerTo(`limit=1&after=${"x".repeat(70_000)}`)).toContain("PAYLOAD_TOO_LARGE")
  })
})

liveTest(
  "the read-only socket takes 64 connections, and a further one in place of the one that is idle longest",
  function* () {
    const { readSocket, settings } = yield* installation
    const opened = Effect.async<Socket>((resume) => {
      const socket = connect(readSocket)
      socket.once("connect", () => resume(Effect.succeed(socket)))
    })
    yield* besideDaemon(settings, function* () {
      const open = yield* Effect.replicateEffect(opened, 64)
      const ended: Array<number> = []
      for (const [i, socket] of open.entries()) socket.resume().once("close", () => ended.push(i))
      // None of them has to end by itself.
      expect(yield* ask({ socket: readSocket }, listKeys, {})).toHaveLength(1)
      expect(ended).toEqual([0])
      for (const socket of open) socket.destroy()
    })
  }
)

liveTest("a file at the path of the read-only socket is not removed, and the daemon works without it", function* () {
  const { readSocket, settings } = yield* installation
  writeFileSync(readSocket, "precious")
  yield* besideDaemon(settings, function* () {
    expect(yield* ask(settings, listKeys, {})).toHaveLength(1)
    const refused = yield* Effect.flip(ask({ socket: readSocket }, listKeys, {}))
    expect(refused).toMatchObject({ _tag: "DaemonAbsent" })
  })
  expect(readFileSync(readSocket, "utf8")).toBe("precious")
})

liveTest("a defect at the read-only socket is reported to the command, and the daemon continues", function* () {
  const { readSocket, settings } = yield* installation
  yield* besideDaemon(settings, function* () {
    yield* execute("DROP TABLE api_keys")
    const asked = yield* Effect.exit(ask({ socket: readSocket }, listKeys, {}))
    expect(Exit.isFailure(asked) && Cause.isDie(asked.cause)).toBe(true)
    // The next request gets a response.
    expect(yield* ask({ socket: readSocket }, listAccounts, {})).toHaveLength(1)
    expect(yield* ask(settings, listAccounts, {})).toHaveLength(1)
  })
})

it("the systemd unit may write to the folder of the read-only socket", () => {
  const [unit, folders] = ["tilld.service", "tilld.tmpfiles.conf"].map((name) =>
    readFileSync(join(root, "systemd", name), "utf8")
  )
  expect(folders).toMatch(/^d \/run\/tilld 2750 tilld tilld-read -$/m)
  expect(unit).toMatch(/^ReadWritePaths=-\/run\/tilld$/m)
  expect(readFileSync(join(root, "docs/access.md"), "utf8")).toContain('read_socket = "/run/tilld/read.sock"')
})

/** Runs the command as another user. */
const asBob = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>>) =>
  Effect.async<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>((resume) => {
    const child = spawn(process.execPath, [join(root, "dist/tilld.js"), ...args], {
      ...bob,
      cwd: "/",
      env: { PATH, HOME: "/", ...env }
    })
    const said = { stdout: "", stderr: "" }
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        said[name] += text
      })
    }
    child.on("close", (code) => resume(Effect.succeed({ code, ...said })))
  })

/** A configuration that every user may read. */
const configOf = (folder: string, database: string, readSocket: string): string => {
  const config = join(folder, "tilld.toml")
  writeFileSync(
    config,
    `[server]\npublic_url = "https://pay.example.com"\n[database]\npath = "${database}"\n
     [wallets]\ntest = "${testXpub}"\n[control]\nread_socket = "${readSocket}"\n
     [chains.base.test]\nrpc_urls = ["http://127.0.0.1:1"]\n`
  )
  return config
}

// Only root can run a process as another user.
it.scopedLive.skipIf(process.getuid?.() !== 0)("a user of the read-only group can read, and nothing else", () =>
  Effect.gen(function* () {
    const { folder, readSocket, settings } = yield* installation
    const config = configOf(folder, settings.database.path, readSocket)
    yield* besideDaemon(settings, function* () {
      // With TILLD_SOCKET, or with a configuration that the user may read.
      for (const env of [{ TILLD_SOCKET: readSocket }, { TILLD_CONFIG: config }]) {
        const read = yield* asBob(["keys", "list", "--json"], env)
        expect(read).toMatchObject({ code: 0, stderr: "" })
        expect(JSON.parse(read.stdout)).toMatchObject([{ id: "key_1" }])
        for (const args of [
          ["webhooks", "secret", "--mode", "test"],
          ["rescan", "--chain", "base", "--mode", "test", "--from", "1"]
        ]) {
          const refused = yield* asBob(args, env)
          expect(refused, args.join(" ")).toMatchObject({ code: 2, stdout: "" })
          expect(refused.stderr, args.join(" ")).toMatch(/^tilld: Not allowed: .*read\.sock .*only read.*group/)
        }
      }
      const own = yield* asBob(["keys", "list"], { TILLD_SOCKET: `${settings.database.path}.sock` })
      expect(own).toMatchObject({ code: 2, stdout: "" })
      expect(own.stderr).toContain("EACCES")
      expect(yield* logged).toEqual([])
    })
  })
)

it.scopedLive.skipIf(process.getuid?.() !== 0)(
  "a user whom the daemon's socket excludes is told so, where none listens at the read-only one",
  () =>
    Effect.gen(function* () {
      const { folder, readSocket, settings } = yield* installation
      const config = configOf(folder, settings.database.path, readSocket)
      yield* besideDaemon({ ...settings, control: { readSocket: "" } }, function* () {
        const refused = yield* asBob(["keys", "list"], { TILLD_CONFIG: config })
        expect(refused).toMatchObject({ code: 2, stdout: "" })
        expect(refused.stderr).toMatch(/control socket .*tilld\.db\.sock answers EACCES/)
      })
    })
)
