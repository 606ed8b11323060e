import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { createServer, type RequestListener } from "node:http"
import { join } from "node:path"
import { describe, expect } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { verifyWebhook } from "../../src/client/index.ts"
import { type Daemon, homeOn, serveHere } from "../lib/daemon.ts"
import { listenHere } from "../lib/loopback.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { startTilld, tilld } from "../lib/tilld.ts"

const shop = Effect.gen(function* () {
  const { home } = yield* homeOn("base")
  return { home, daemon: yield* serveHere(home) }
})

const order = { chain: "base", currency: "ETH", amount: "1" } as const

/** A server on this machine, until the scope ends; port 0: any free one. */
const listenOn = (listener: RequestListener, port = 0) =>
  Effect.map(listenHere(createServer(listener), port), ({ url }) => url)

interface Arrived {
  readonly body: string
  readonly headers: Readonly<Record<string, unknown>>
}

/** What a developer runs on his machine; it answers with this status. */
const developer = (status: number, port?: number) =>
  Effect.gen(function* () {
    const arrived = yield* Queue.unbounded<Arrived>()
    const url = yield* listenOn((request, response) => {
      let body = ""
      request.setEncoding("utf8").on("data", (piece: string) => {
        body += piece
      })
      request.on("end", () => {
        arrived.unsafeOffer({ body, headers: request.headers })
        response.writeHead(status).end("not read by anybody")
      })
    }, port)
    return { url: `${url}/hook?from=tilld`, next: Queue.take(arrived), waiting: Queue.size(arrived) }
  })

const listenTo = (daemon: Pick<Daemon, "url" | "key">, forwardTo: string, ...more: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const args = ["listen", "--forward-to", forwardTo, "--api-url", daemon.url, "--json", ...more]
    const running = yield* startTilld(args, { env: { TILLD_API_KEY: daemon.key } })
    const { secret } = JSON.parse(yield* running.line('"secret"'))
    return {
      ...running,
      secret: String(secret),
      eventOf: (id: string) => Effect.map(running.line(id), (line) => JSON.parse(line))
    }
  })

describe("tilld listen", () => {
  liveTest("sends what a webhook would send, signed, and prints the status", function* () {
    const { daemon } = yield* shop
    const { next, url } = yield* developer(418)
    const listening = yield* listenTo(daemon, url)
    yield* listening.line("tilld: listening, from the start")
    const { id } = yield* daemon.create(order)
    const { body, headers } = yield* next
    const event = yield* Effect.promise(() =>
      verifyWebhook(body, String(headers["x-service-signature"]), listening.secret)
    )
    expect(event).toMatchObject({ event: "payment.created", data: { id } })
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "user-agent": expect.stringMatching(/^tilld\/\d/),
      "webhook-id": event.id
    })
    expect(headers["webhook-signature"]).toMatch(/^v1,/)
    expect(yield* listening.eventOf(id)).toEqual({
      time: expect.stringMatching(/Z$/),
      event: "payment.created",
      id: event.id,
      payment: id,
      status: 418,
      durationMillis: expect.any(Number)
    })
    const price = { amount: "1.00", currency: "USD" }
    const { body: invoice } = yield* daemon.call<{ id: string }>("POST", "/v1/invoices", { price })
    const told = yield* listening.eventOf(invoice.id)
    expect(told).toMatchObject({ event: "invoice.created", invoice: invoice.id, status: 418 })
    const { code, stderr } = yield* listening.end("SIGINT")
    expect(code).toBe(0)
    expect(stderr).toContain(`tilld: to continue where this ended: --after ${told.id}`)
  })

  liveTest("continues at its position when the daemon comes back, and in another session", function* () {
    const { daemon, home } = yield* shop
    const { next, url, waiting } = yield* developer(200)
    const ids: Array<string> = []
    const create = (on: Daemon) => Effect.map(on.create(order), ({ id }) => void ids.push(id))
    const listening = yield* listenTo(daemon, url)
    yield* listening.line("tilld: listening, from the start")
    yield* create(daemon)
    const { id: first } = yield* listening.eventOf(ids[0] ?? "")
    expect((yield* daemon.end("SIGTERM")).code).toBe(0)
    yield* listening.line("connecting again")
    const back = yield* serveHere(home, daemon.key, { TILLD_SERVER__PORT: new URL(daemon.url).port })
    yield* Effect.replicateEffect(create(back), 3)
    yield* listening.line(`tilld: listening, after ${first}`)
    yield* create(back)
    const { id: last } = yield* listening.eventOf(ids.at(-1) ?? "")
    expect((yield* listening.end("SIGTERM")).stderr).toContain(`--after ${last}`)

    yield* create(back)
    const resumed = yield* listenTo(back, url, "--after", last)
    yield* create(back)
    yield* resumed.eventOf(ids.at(-1) ?? "")
    const sent = yield* Effect.replicateEffect(next, ids.length)
    expect(sent.map(({ body }) => JSON.parse(body).data.id)).toEqual(ids)
    expect(yield* waiting).toBe(0)
  })

  liveTest(
    "outlives a receiver that is down or answers 500, and leaves out kinds that were not asked for",
    function* () {
      const { daemon } = yield* shop
      const { url } = yield* developer(500)
      const nobody = yield* Effect.scoped(developer(200))
      const failing = yield* listenTo(daemon, url)
      const down = yield* listenTo(daemon, nobody.url)
      const picky = yield* listenTo(daemon, url, "--events", "payment.confirmed")
      for (const each of [failing, down, picky]) yield* each.line("tilld: listening")
      for (let i = 0; i < 2; i++) {
        const { id } = yield* daemon.create(order)
        expect(yield* failing.eventOf(id)).toMatchObject({ status: 500 })
        expect(yield* down.eventOf(id)).toMatchObject({ error: "ECONNREFUSED" })
      }
      // It comes up again, and gets what comes then.
      const up = yield* developer(200, Number(new URL(nobody.url).port))
      const { id } = yield* daemon.create(order)
      expect(yield* down.eventOf(id)).toMatchObject({ status: 200 })
      expect(JSON.parse((yield* up.next).body).data.id).toBe(id)
      const { stderr, stdout } = yield* picky.end("SIGINT")
      expect(stdout.trim().split("\n")).toHaveLength(1)
      // It has also seen the events that it left out.
      const { id: event } = yield* failing.eventOf(id)
      expect(stderr).toContain(`--after ${event}`)
    }
  )

  liveTest("says when events after its position were deleted", function* () {
    const { daemon } = yield* shop
    const { url } = yield* developer(200)
    const { id } = yield* daemon.create(order)
    const forgotten = `evt_${"x".repeat(22)}`
    const listening = yield* listenTo(daemon, url, "--after", forgotten)
    yield* listening.line(`tilld: ${forgotten} is no longer stored: some events may be missing`)
    expect(yield* listening.eventOf(id)).toMatchObject({ status: 200 })
  })

  liveTest("says where to continue also when it ends because the server refuses", function* () {
    const event = `evt_${"x".repeat(22)}`
    let asked = 0
    const url = yield* listenOn((_, response) => {
      if (asked++ > 0) return response.writeHead(403).end('{"error":{"message":"The key was revoked."}}')
      return response.writeHead(200, { "content-type": "text/event-stream" }).end(`id: ${event}\n\n`)
    })
    const args = ["listen", "--forward-to", "http://127.0.0.1:1", "--api-url", url]
    const { code, stderr } = yield* tilld(args, { env: { TILLD_API_KEY: `svc_test_${"a".repeat(49)}` } })
    expect(code).toBe(1)
    expect(stderr).toContain("403: The key was revoked.")
    expect(stderr).toContain(`tilld: to continue where this ended: --after ${event}`)
  })

  liveTest("signs with one secret in all sessions of a user, or with that of a file", function* () {
    const folder = yield* temporaryFolder
    const { url } = yield* developer(200)
    const env = { TILLD_API_KEY: `svc_test_${"a".repeat(49)}`, XDG_CONFIG_HOME: folder }
    const args = ["listen", "--forward-to", url, "--api-url", "http://127.0.0.1:1", "--json"]
    const secretOf = (more: ReadonlyArray<string> = [], input = "") =>
      Effect.gen(function* () {
        const running = yield* startTilld([...args, ...more], { env, input })
        const { secret } = JSON.parse(yield* running.line('"secret"'))
        yield* running.end("SIGINT")
        return String(secret)
      })
    const kept = join(folder, "tilld/listen.secret")
    const first = yield* secretOf()
    expect([readFileSync(kept, "utf8"), statSync(kept).mode & 0o777]).toEqual([`${first}\n`, 0o600])
    expect(first).toMatch(/^whsec_[\w+/]{43}=$/)
    expect(yield* secretOf()).toBe(first)

    const own = join(folder, "shop/secret")
    const made = yield* secretOf(["--secret", own])
    expect([made === first, statSync(own).mode & 0o777]).toEqual([false, 0o600])
    expect(yield* secretOf(["--secret", own])).toBe(made)
    expect(yield* secretOf(["--secret", "-"], "whsec_0123456789abcdef\n")).toBe("whsec_0123456789abcdef")

    const refused = (secret: string) => tilld([...args, "--secret", secret], { env })
    const inline = yield* refused("whsec_0123456789abcdef")
    expect(inline).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("takes a file") })
    chmodSync(own, 0o644)
    const open = yield* refused(own)
    expect(open).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(`chmod 600 ${own}`) })
    writeFileSync(kept, "whsec_short")
    const short = yield* refused(kept)
    expect(short).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(`in ${kept} must be whsec_`) })
    const folderless = yield* refused("/dev/null/secret")
    expect(folderless).toMatchObject({ code: 2, stderr: expect.stringContaining("name another file with --secret") })
  })

  liveTest("ends at once on Ctrl-C, also while no one answers", function* () {
    const asked = yield* Queue.unbounded<void>()
    const url = yield* listenOn(() => void asked.unsafeOffer(undefined))
    const listening = yield* listenTo({ url, key: `svc_test_${"a".repeat(49)}` }, "http://127.0.0.1:1")
    yield* Queue.take(asked)
    expect((yield* listening.end("SIGINT")).code).toBe(0)
  })

  liveTest("ends with 1 where it cannot listen ever, and with 2 where the command line is wrong", function* () {
    const { daemon } = yield* shop
    const elsewhere = yield* listenOn((_, response) => response.end("<html>A page</html>"))
    const listen = (args: ReadonlyArray<string>, key?: string) =>
      Effect.map(
        tilld(["listen", ...args], key === undefined ? {} : { env: { TILLD_API_KEY: key } }),
        ({ code, stderr }) => [code, stderr]
      )
    const to = ["--forward-to", "http://127.0.0.1:1", "--api-url"]
    const says = (text: string) => expect.stringContaining(text)
    const cases = [
      [[...to, daemon.url], `svc_test_${"a".repeat(49)}`, 1, "401: The API key is invalid"],
      [[...to, `${daemon.url}/api`], daemon.key, 1, "404: There is nothing at this path."],
      [[...to, elsewhere], daemon.key, 1, "not with a stream of events: is it a tilld?"],
      [[...to, daemon.url], undefined, 2, "TILLD_API_KEY is not set"],
      [[...to, daemon.url], "secret", 2, "TILLD_API_KEY is no API key"],
      [[...to, "localhost:8080"], daemon.key, 2, "--api-url must be an http or https URL"],
      [["--forward-to", "localhost:3000"], daemon.key, 2, "--forward-to must be an http or https URL"],
      [["--forward-to", "http://localhost", "--events", "paid"], daemon.key, 2, '"paid" is none of'],
      [["--forward-to", "http://localhost", "--after", "5"], daemon.key, 2, "--after must be the id of an event"]
    ] as const
    for (const [args, key, code, message] of cases) expect(yield* listen(args, key)).toEqual([code, says(message)])
  })
})
