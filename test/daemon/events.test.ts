import { createServer, get, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { verifyWebhook } from "../../src/client/index.ts"
import type { Permission } from "../../src/Domain/ApiKey.ts"
import { startLocalChain } from "../../src/Sandbox/LocalChain.ts"
import { type Daemon, localChain, makeHome, rows, serve } from "../lib/daemon.ts"
import { startTilld, tilld, tilldJson } from "../lib/tilld.ts"

interface Message {
  readonly id: string
  readonly event: string
  readonly data: string
}

const field = (block: string, name: string): string => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? ""

/** Opens a stream; `next` gives its messages in order, signs of life and comments left out. */
const openStream = ({ key, url }: Pick<Daemon, "key" | "url">, after?: string) =>
  Effect.gen(function* () {
    const messages = yield* Queue.unbounded<Message>()
    const ended = yield* Queue.unbounded<void>()
    const headers = { "x-api-key": key, ...(after === undefined ? {} : { "last-event-id": after }) }
    const response = yield* Effect.acquireRelease(
      Effect.async<IncomingMessage>((resume) => {
        const asked = get(`${url}/v1/events/stream`, { headers, agent: false }, (answer) =>
          resume(Effect.succeed(answer))
        )
        asked.on("error", () => undefined)
      }),
      (answer) => Effect.sync(() => answer.destroy())
    )
    let rest = ""
    response.setEncoding("utf8").on("data", (piece: string) => {
      const [last = "", ...whole] = (rest + piece).split("\n\n").reverse()
      rest = last
      for (const block of whole.reverse()) {
        if (field(block, "id") === "") continue
        messages.unsafeOffer({ id: field(block, "id"), event: field(block, "event"), data: field(block, "data") })
      }
    })
    response.on("error", () => undefined).on("close", () => ended.unsafeOffer(undefined))
    return { response, next: Queue.take(messages), ended: Queue.take(ended), isEmpty: Queue.isEmpty(messages) }
  })

const order = { chain: "base", currency: "ETH", amount: "1" } as const

const shop = Effect.gen(function* () {
  const chain = yield* localChain("base")
  const home = yield* makeHome({ chains: new Map([["base", chain]]) })
  return { home, daemon: yield* serve(home) }
})

const newKey = (daemon: Daemon, permissions: ReadonlyArray<Permission>, account = "default") =>
  Effect.map(
    tilldJson<{ id: string; key: string }>([
      ...["keys", "create", "--mode", "test", "--name", "x", "--account", account],
      ...["--permissions", permissions.join(","), "--config", daemon.home.config]
    ]),
    (made) => ({ ...made, url: daemon.url })
  )

it.scopedLive("a stream gives each event once and in order, through disconnections and a restart", () =>
  Effect.gen(function* () {
    const { daemon, home } = yield* shop
    const expected: Array<string> = []
    const create = (on: Daemon) =>
      Effect.map(on.create(order), ({ id }) => {
        expected.push(id)
      })
    yield* daemon.create(order)
    const first = yield* openStream(daemon)
    expect(first.response.statusCode).toBe(200)
    expect(first.response.headers["content-type"]).toBe("text/event-stream")
    const beginning = yield* first.next
    expect(beginning).toMatchObject({ id: expect.stringMatching(/^evt_/), data: "" })
    yield* create(daemon)
    const one = yield* first.next
    first.response.destroy()
    yield* Effect.replicateEffect(create(daemon), 40)
    const seen = [one]
    const second = yield* openStream(daemon, one.id)
    expect(yield* second.next).toMatchObject({ id: one.id, data: "" })
    for (let i = 0; i < 20; i++) seen.push(yield* second.next)

    // A stop does not wait for the stream, and the stream ends in order.
    expect((yield* daemon.end("SIGTERM")).code).toBe(0)
    yield* second.ended
    expect(second.response.complete).toBe(true)

    const again = yield* serve(home, daemon.key)
    const third = yield* openStream(again, seen.at(-1)?.id)
    yield* third.next
    for (let i = 0; i < 20; i++) seen.push(yield* third.next)
    yield* create(again)
    seen.push(yield* third.next)
    expect(seen.map(({ data }) => JSON.parse(data).data.id)).toEqual(expected)
    for (const { data, event, id } of seen) {
      expect([JSON.parse(data).id, JSON.parse(data).event]).toEqual([id, event])
      const [stored] = yield* rows<{ body: string }>(home, "SELECT body FROM events WHERE id = ?", id)
      expect(data).toBe(stored?.body)
    }

    // The position before any event still kept begins with the oldest.
    const lost = yield* openStream(again, `evt_${"x".repeat(22)}`)
    expect(yield* lost.next).toMatchObject({ id: "start" })
    expect((yield* lost.next).id).toBe(beginning.id)
  })
)

it.scopedLive("a stream is for keys that may read webhooks and payments, and ends with its key", () =>
  Effect.gen(function* () {
    const { daemon } = yield* shop
    const refused = (permissions: ReadonlyArray<Permission>) =>
      Effect.gen(function* () {
        const { key, url } = yield* newKey(daemon, permissions)
        const answer = yield* Effect.promise(() => fetch(`${url}/v1/events/stream`, { headers: { "x-api-key": key } }))
        return [answer.status, (yield* Effect.promise(() => answer.json())) as unknown] as const
      })
    expect(yield* refused(["quotes:read"])).toMatchObject([
      403,
      { error: { message: "The API key lacks the permissions webhooks:read and payments:read." } }
    ])
    expect(yield* refused(["webhooks:read"])).toMatchObject([
      403,
      { error: { message: "The API key lacks the permission payments:read." } }
    ])

    const made = ["accounts", "create", "--name", "Other", "--shared-wallet", "--config", daemon.home.config]
    const { id: account } = yield* tilldJson<{ id: string }>(made)
    const other = yield* newKey(daemon, ["webhooks:read", "payments:read", "payments:write"], account)
    const stream = yield* openStream(other)
    expect((yield* stream.next).id).toBe("start")
    yield* daemon.create(order)
    // Its own event comes, and nobody else's before it.
    const created = yield* Effect.promise(() =>
      fetch(`${daemon.url}/v1/payments`, {
        method: "POST",
        headers: { "x-api-key": other.key, "content-type": "application/json" },
        body: JSON.stringify({ ...order, merchantRef: "mine" })
      })
    )
    expect(created.status).toBe(201)
    expect(JSON.parse((yield* stream.next).data).data.merchantRef).toBe("mine")
    expect(yield* tilld(["keys", "revoke", other.id, "--config", daemon.home.config])).toMatchObject({ code: 0 })
    // With the next sign of life, if nothing happens before.
    yield* stream.ended
    expect(yield* stream.isEmpty).toBe(true)
    const streams = yield* Effect.replicateEffect(openStream(daemon), 20)
    expect(streams.map(({ response }) => response.statusCode)).toEqual(streams.map(() => 200))
    const one = yield* openStream(daemon)
    expect([one.response.statusCode, one.response.headers["retry-after"]]).toEqual([429, "30"])
  })
)

/** What a developer runs on his machine. */
const developer = Effect.gen(function* () {
  const arrived = yield* Queue.unbounded<{ readonly body: string; readonly signature: string }>()
  const server = yield* Effect.acquireRelease(
    Effect.async<ReturnType<typeof createServer>>((resume) => {
      const made = createServer((request, response) => {
        let body = ""
        request.setEncoding("utf8").on("data", (piece: string) => {
          body += piece
        })
        request.on("end", () => {
          arrived.unsafeOffer({ body, signature: String(request.headers["x-service-signature"]) })
          response.writeHead(418).end()
        })
      }).listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
    }),
    (running) => Effect.sync(() => running.close().closeAllConnections())
  )
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/hook`, next: Queue.take(arrived) }
})

it.scopedLive("tilld listen forwards, signs, prints, and goes on where it was after a restart", () =>
  Effect.gen(function* () {
    const { daemon, home } = yield* shop
    const { next, url } = yield* developer
    const env = { TILLD_API_KEY: daemon.key }
    const port = new URL(daemon.url).port
    const args = ["listen", "--forward-to", url, "--api-url", daemon.url, "--json"]
    const listening = yield* startTilld(args, { env })
    const { secret } = JSON.parse(yield* listening.line('"secret"'))
    // The first connection is made when the daemon counts it: an event before would be of no stream.
    let payment = yield* daemon.create(order)
    const first = yield* Effect.gen(function* () {
      const got = yield* Effect.timeoutOption(next, "300 millis")
      if (got._tag === "Some") return got.value
      payment = yield* daemon.create(order)
      return yield* Effect.fail("not yet")
    }).pipe(Effect.retry({ times: 50 }))
    const event = yield* Effect.promise(() => verifyWebhook(first.body, first.signature, secret))
    const line = JSON.parse(yield* listening.line(event.data.id))
    expect(line).toMatchObject({ event: "payment.created", id: event.id, payment: event.data.id, status: 418 })

    expect((yield* daemon.end("SIGTERM")).code).toBe(0)
    yield* listening.line("connecting again")
    const again = yield* serve(home, daemon.key, { TILLD_SERVER__PORT: port })
    payment = yield* again.create(order)
    yield* listening.line(payment.id)
    expect((yield* listening.end("SIGINT")).code).toBe(0)

    const refused = yield* tilld(args.with(4, again.url), { env: { TILLD_API_KEY: `svc_test_${"a".repeat(49)}` } })
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("The API key is invalid") })
    expect(yield* tilld(args)).toMatchObject({ code: 2, stderr: expect.stringContaining("TILLD_API_KEY is not set") })
    const wrong = yield* tilld(["listen", "--forward-to", "localhost:3000"], { env })
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("--forward-to") })
  })
)

it.scopedLive("tilld trigger drives a payment to the event, and refuses a live key", () =>
  Effect.gen(function* () {
    const chain = yield* startLocalChain({ chain: "base", chainId: 31_341, tokens: ["USDC"], blockTime: 1 })
    const home = yield* makeHome({ chains: new Map([["base", chain]]) })
    const daemon = yield* serve(home)
    const env = { TILLD_API_KEY: daemon.key }
    const trigger = (kind: string) =>
      tilld(["trigger", kind, "--config", home.config, "--api-url", daemon.url, "--json"], { env })
    for (const kind of ["payment.created", "payment.confirmed"]) {
      const { code, stderr, stdout } = yield* trigger(kind)
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout)).toMatchObject({ event: kind })
    }
    const failing = yield* startTilld(
      ["trigger", "payment.failed", "--config", home.config, "--api-url", daemon.url, "--json"],
      { env }
    )
    yield* failing.line("paid in")
    yield* chain.mine()
    yield* chain.rpc("evm_increaseTime", [120])
    const failed = yield* failing.ended
    expect(failed.code, failed.stderr).toBe(0)
    expect(JSON.parse(failed.stdout)).toMatchObject({
      event: "payment.failed",
      data: { failureReason: "insufficient_amount" }
    })
    const live = yield* tilld(["trigger", "payment.created", "--config", home.config], {
      env: { TILLD_API_KEY: `svc_live_${"a".repeat(49)}` }
    })
    expect(live).toMatchObject({ code: 2, stderr: expect.stringContaining("live key") })
  })
)
