import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import type { IncomingHttpHeaders } from "node:http"
import { request } from "node:https"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { request as send } from "undici"
import { createKey } from "../../src/Auth/keyOperations.ts"
import { Invocation } from "../../src/Control/Invocation.ts"
import { ask } from "../../src/commands/askDaemon.ts"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { serveHttp } from "../../src/Http/listener.ts"
import { standbyRespond } from "../../src/Http/standby.ts"
import { makeAuthority } from "../../src/Sandbox/Authority.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { homeOn, serve } from "../lib/daemon.ts"
import { freePort } from "../lib/loopback.ts"
import { needs } from "../lib/needs.ts"
import { proxies, proxyName } from "../lib/proxies.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { root, start } from "../lib/tilld.ts"

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface Asked {
  readonly from?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Ends the answer once it has this. */
  readonly until?: string
}

/** A daemon behind the proxy; `call` asks through it, from another address of this machine than the proxy's own. */
const behind = Effect.fnUntraced(function* (program: keyof typeof proxies, standby?: string) {
  const { home } = yield* homeOn("polygon")
  const daemon = yield* serve(home, undefined, { TILLD_SERVER__TRUSTED_PROXIES: '["127.0.0.1/32"]' })
  const folder = yield* temporaryFolder
  const authority = yield* makeAuthority
  const identity = yield* authority.issue([proxyName])
  writeFileSync(join(folder, "certificate.pem"), identity.certificate)
  writeFileSync(join(folder, "key.pem"), identity.key)
  mkdirSync(join(folder, "home"))
  const [port, plain] = [yield* freePort, yield* freePort]
  const other = standby === undefined ? {} : { standby }
  const args = proxies[program].args({ folder, tilld: new URL(daemon.url).host, port, plain, ...other })
  const running = yield* start(program, args, { cwd: folder, env: { HOME: join(folder, "home") } })
  yield* running.line(proxies[program].started)
  const call = (method: string, path: string, { body, from = "127.0.0.2", headers, until }: Asked = {}) =>
    Effect.async<Answer>((resume) => {
      const asked = request(
        {
          ...{
            host: "127.0.0.1",
            port,
            servername: proxyName,
            ca: authority.certificate,
            localAddress: from,
            agent: false
          },
          ...{ method, path, headers: { host: proxyName, ...headers } }
        },
        (response) => {
          let text = ""
          const answer = () =>
            resume(Effect.succeed({ status: response.statusCode ?? 0, headers: response.headers, text }))
          response.setEncoding("utf8").on("data", (piece: string) => {
            text += piece
            if (until !== undefined && text.includes(until)) answer()
          })
          response.on("end", answer).on("error", () => undefined)
        }
      )
      asked.on("error", (error) => resume(Effect.die(error))).end(body)
      return Effect.sync(() => asked.destroy())
    })
  const post = { "content-type": "application/json" }
  const create = (merchantRef: string, key: string, asked: Asked = {}, metadata = {}) =>
    call("POST", "/v1/payments", {
      ...asked,
      headers: { ...post, "x-api-key": key, ...asked.headers },
      body: JSON.stringify({ chain: "polygon", currency: "USDC", amount: "1000", merchantRef, metadata })
    })
  return { call, create, daemon, folder, running, plain: `http://127.0.0.1:${plain}` }
})

describe.each(["nginx", "caddy"] as const)("%s in front of tilld, with the file of config/proxy", (program) => {
  needs(program)

  it("is what the package has", () => {
    const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    expect(files).toContain("config/proxy")
  })

  liveTest("passes on the API and its streams, and who asks, and refuses what is too large", function* () {
    const { call, create, daemon, running } = yield* behind(program)
    const made = yield* create("first", daemon.key)
    expect(made).toMatchObject({ status: 201, headers: { "strict-transport-security": "max-age=31536000" } })
    const { checkoutUrl, id } = JSON.parse(made.text) as PaymentObject

    const { key } = yield* ask({ socket: `${daemon.home.database}.sock` }, createKey, {
      ...{ mode: "test", name: "from one address", ips: ["127.0.0.2/32"] }
    }).pipe(Effect.provideService(Invocation, { env: {}, user: "suite" }))
    expect((yield* create("second", key)).status).toBe(201)
    const forged = yield* create("third", key, { from: "127.0.0.3", headers: { "x-forwarded-for": "127.0.0.2" } })
    expect(forged.status).toBe(403)

    // The key is not refused, so that it is the body that is.
    const large = yield* create("large", daemon.key, {}, { text: "x".repeat(65 * 1024) })
    expect(large.status).toBe(413)
    expect((yield* create("small", daemon.key, {}, { text: "x".repeat(400) })).status).toBe(201)

    // Each message comes while its stream goes on.
    const events = (until: string, from = {}) =>
      call("GET", "/v1/events/stream?events=payment.created", { headers: { "x-api-key": daemon.key, ...from }, until })
    const opened = yield* events("\n\n")
    expect(opened).toMatchObject({ status: 200, headers: { "content-type": "text/event-stream" } })
    const [, position = ""] = /^id: (\S+)\n\n$/.exec(opened.text) ?? []
    yield* create("streamed", daemon.key)
    expect((yield* events("streamed", { "last-event-id": position })).text).toMatch(/event: payment.created\n/)
    const { pathname } = new URL(checkoutUrl)
    expect(yield* call("GET", `${pathname}/events`, { until: "\n\n" })).toMatchObject({ status: 200 })
    expect((yield* call("GET", pathname)).text).toContain("</html>")

    expect((yield* call("GET", "/metrics")).status).toBe(404)
    expect((yield* call("GET", "/healthz")).status).toBe(200)
    expect((yield* daemon.payment({ id })).status).toBe("pending")

    // What the proxy says of a request that it cannot pass on has no key.
    yield* daemon.end("SIGTERM")
    expect((yield* create("nobody", daemon.key)).status).toBe(502)
    yield* running.line(/refused/)
    expect(running.lines().filter((line) => line.includes(daemon.key))).toEqual([])
  })
})

describe.each(["nginx", "caddy"] as const)("%s in front of two nodes", (program) => {
  needs(program)

  liveTest("asks the one that works, whether the other one waits or is gone", function* () {
    const waiting = { host: "127.0.0.1", port: yield* freePort }
    const scope = yield* Scope.make()
    yield* serveHttp(
      standbyRespond(() => "standby; active is one"),
      waiting
    ).pipe(Scope.extend(scope), Effect.provide(Workers.layer))
    const { create, daemon } = yield* behind(program, `127.0.0.1:${waiting.port}`)
    const statusOf = (n: number) => Effect.map(create(`order ${n}`, daemon.key), ({ status }) => status)
    const orders = (from: number) =>
      Effect.forEach(
        Array.from({ length: 10 }, (_, i) => from + i),
        statusOf
      )
    // Caddy has looked at neither of them yet.
    yield* Effect.repeat(statusOf(0), { until: (status) => status === 201 || status === 409 })
    expect(new Set(yield* orders(1))).toEqual(new Set([201]))
    yield* Scope.close(scope, Exit.void)
    expect(new Set(yield* orders(11))).toEqual(new Set([201]))
  })
})

describe("nginx in front of tilld, for one address", () => {
  needs("nginx")

  liveTest("refuses more requests than its limit, in tilld's form, and takes those of another", function* () {
    const { call, folder, plain } = yield* behind("nginx")
    const flood = (from: string, count: number) =>
      Effect.forEach(Array.from({ length: count }), () => call("GET", "/healthz", { from }), { concurrency: 50 })
    const answers = yield* Effect.iterate([] as ReadonlyArray<Answer>, {
      while: (list) => list.length < 4_000 && list.every(({ status }) => status === 200),
      body: () => flood("127.0.0.4", 200)
    })
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.headers).toMatchObject({ "content-type": "application/json", "retry-after": "1" })
    expect(JSON.parse(refused?.text ?? "")).toMatchObject({ error: { code: "RATE_LIMITED" } })
    expect((yield* call("GET", "/healthz", { from: "127.0.0.5" })).status).toBe(200)
    const { headers } = yield* Effect.promise(() => send(`${plain}/pay/secret`))
    expect(headers.location).toBe(`https://${proxyName}/pay/secret`)
    expect(readFileSync(join(folder, "access.log"), "utf8")).toBe("")
  })
})
