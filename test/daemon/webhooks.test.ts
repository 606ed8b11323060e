import { expect } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import { type Received, verifySignature } from "../../src/Sandbox/Receiver.ts"
import { type Daemon, homeOn, rows, serveHere } from "../lib/daemon.ts"
import { type Inbox, makeInbox } from "../lib/inbox.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { tilld, tilldJson } from "../lib/tilld.ts"

const path = "/hook"
const secret = `whsec_${Buffer.alloc(24, 5).toString("base64")}`
const order = { chain: "base", currency: "USDC", amount: "25000000" } as const

interface Delivery {
  readonly id: string
  readonly status: string
  readonly attempts: ReadonlyArray<{ readonly number: number; readonly redelivery?: true; readonly status?: number }>
}

/** A daemon with one endpoint, at a receiver controlled by the test. */
class Shop extends Context.Tag("test/Shop")<
  Shop,
  { readonly daemon: Daemon; readonly inbox: Inbox; readonly endpoint: string }
>() {
  static readonly layer = Layer.scoped(
    Shop,
    Effect.gen(function* () {
      const inbox = yield* makeInbox()
      const { home } = yield* homeOn("base", { caFile: inbox.caFile })
      const daemon = yield* serveHere(home)
      const hook = { url: inbox.url + path, events: StatusEventKind.literals, secret }
      const { body } = yield* daemon.call<{ id: string }>("POST", "/v1/webhooks", hook)
      return { daemon, inbox, endpoint: body.id }
    })
  )
}

const run = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(Shop, ({ daemon }) => tilld(["webhooks", ...args, "--config", daemon.home.config]))

const json = <A>(...args: ReadonlyArray<string>) =>
  Effect.flatMap(Shop, ({ daemon }) => tilldJson<A>(["webhooks", ...args, "--config", daemon.home.config]))

/** A payment whose first delivery was answered so, and that delivery. */
const delivered = (status: number) =>
  Effect.gen(function* () {
    const { daemon, inbox } = yield* Shop
    yield* inbox.behave(() => ({ status, body: `${status} \u001b[31mred\nline` }))
    const payment = yield* daemon.create(order)
    const first = yield* inbox.next(path, payment)
    const stored = rows<{ id: string; attempts: number }>(
      daemon.home,
      "SELECT id, attempts FROM deliveries WHERE payment_id = ?",
      payment.id
    )
    const [row] = yield* Effect.repeat(stored, { until: ([found]) => found !== undefined && found.attempts > 0 })
    return { payment, first, id: row?.id ?? "" }
  })

liveSuite(Shop.layer, "deliveries, beside a running daemon", (test) => {
  test("are listed, and shown with each attempt on its line", function* () {
    const { id } = yield* delivered(503)
    const { stdout } = yield* run("show", id)
    // Whatever the receiver says, it stays on its line.
    expect(stdout.split("\n").at(-2)).toMatch(/^ {2}1\. {2}\S+Z {2}\d+ ms {2}127\.0\.0\.1 {2}503 {2}503 \[31mred line$/)
    expect((yield* run("list")).stdout).toContain(id)
  })

  test("are sent again, all of a time", function* () {
    const { daemon, endpoint, inbox } = yield* Shop
    const failed = [yield* delivered(500), yield* delivered(500)]
    yield* inbox.behave(() => 204)
    const since = failed[0]?.first.event.createdAt ?? ""
    const range = ["redeliver", "--since", since, "--status", "pending", "--endpoint", endpoint]
    expect(yield* json(...range)).toEqual({ ordered: 2, due: 0, refused: 0 })
    for (const { payment } of failed) yield* inbox.next(path, payment)
    const pending = rows(daemon.home, "SELECT 1 FROM deliveries WHERE status = 'pending' AND created_at >= ?", since)
    yield* Effect.repeat(pending, { until: ({ length }) => length === 0 })
    expect((yield* run(...range)).stdout).toBe("0 to be sent again, 0 were due already\n")
  })

  test("an endpoint is changed, and one delivery is sent again and waited for", function* () {
    const { daemon, inbox } = yield* Shop
    yield* inbox.behave(() => 503)
    const hook = { url: `${inbox.url}/before`, events: ["payment.created"], secret }
    const { body } = yield* daemon.call<{ id: string }>("POST", "/v1/webhooks", hook)
    const payment = yield* daemon.create(order)
    yield* inbox.next("/before", payment)
    const listed = yield* json<ReadonlyArray<{ id: string }>>("endpoints", "--mode", "test")
    expect(listed).toContainEqual(expect.objectContaining({ id: body.id, url: hook.url }))
    const change = ["change", body.id, "--url", `${inbox.url}/after`, "--new-secret", "--overlap", "0s"]
    const changed = yield* json<{ secret: string }>(...change)
    expect(changed).toMatchObject({ id: body.id, url: `${inbox.url}/after`, secret: expect.stringMatching(/^whsec_/) })

    const pending = json<ReadonlyArray<Delivery>>("list", "--endpoint", body.id, "--status", "failing")
    const [{ id } = { id: "" }] = yield* Effect.repeat(pending, { until: ({ length }) => length === 1 })
    const wait = run("redeliver", id, "--wait")
    expect(yield* wait).toMatchObject({ code: 1, stderr: expect.stringContaining("503") })
    yield* inbox.next("/after", payment)
    yield* inbox.behave(() => 204)
    expect(yield* wait).toMatchObject({ code: 0, stdout: expect.stringMatching(/ 204\n$/) })
    const { request } = yield* inbox.next("/after", payment)
    const shown = yield* Effect.repeat(json<Delivery>("show", id), { until: ({ status }) => status === "delivered" })
    expect(shown).not.toHaveProperty("nextAttemptAt")
    expect(shown.attempts).toMatchObject([
      { number: 1, status: 503 },
      { number: 2, status: 503, redelivery: true },
      { number: 3, status: 204, redelivery: true }
    ])
    expect([verifySignature(request, changed.secret), verifySignature(request, secret)]).toEqual([true, false])
  })

  test("what a deletion cancelled is sent to another endpoint", function* () {
    const { daemon, endpoint, inbox } = yield* Shop
    yield* inbox.behave(({ path }) => (path === "/gone" ? 503 : 204))
    const hook = { url: `${inbox.url}/gone`, events: ["payment.created"], secret }
    const { body } = yield* daemon.call<{ id: string }>("POST", "/v1/webhooks", hook)
    const payment = yield* daemon.create(order)
    yield* inbox.next("/gone", payment)
    yield* inbox.next(path, payment)
    yield* daemon.call("DELETE", `/v1/webhooks/${body.id}`)
    const cancelled = ["--endpoint", body.id, "--status", "cancelled"]
    const [{ id } = { id: "" }] = yield* json<ReadonlyArray<Delivery>>("list", ...cancelled)
    expect((yield* run("redeliver", id)).stderr).toContain("Name another one to send to")
    expect((yield* run("show", id)).stdout).toContain(`tilld webhooks redeliver ${id} --to ENDPOINT`)
    const there = ["--to", endpoint]
    expect(yield* run("redeliver", id, ...there, "--wait")).toMatchObject({ code: 0 })
    yield* inbox.next(path, payment)
    // It has arrived there.
    expect(yield* json("redeliver", "--since", "24h", ...cancelled, ...there)).toMatchObject({ ordered: 0, due: 1 })
    // An attempt before the order is not the one that is waited for, though the one that is takes its time.
    yield* inbox.behave(() => Effect.delay(Effect.succeed(500), "2 seconds"))
    const failed = yield* run("redeliver", id, ...there, "--wait")
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("500") })
  })

  test("a test send is signed, is not a webhook event, and reports the response", function* () {
    const { endpoint, inbox } = yield* Shop
    // Deliveries of the test before may still arrive.
    const isTest = ({ headers }: Pick<Received, "headers">) => String(headers["webhook-id"]).startsWith("test_")
    yield* inbox.behave((request) => ({ status: 200, body: isTest(request) ? "hello" : "" }))
    const result = yield* json<{ id: string }>("test", endpoint)
    expect(result).toEqual({
      id: expect.stringMatching(/^test_[\w-]{22}$/),
      endpoint,
      url: inbox.url + path,
      durationMillis: expect.any(Number),
      address: "127.0.0.1",
      status: 200,
      bodyStart: "hello"
    })
    const [received, ...others] = (yield* inbox.all).filter(isTest)
    if (received === undefined) return expect.unreachable()
    expect(others).toEqual([])
    expect(verifySignature(received, secret)).toBe(true)
    expect(received.headers).toMatchObject({ "webhook-id": result.id, "webhook-signature": expect.any(String) })
    const body = JSON.parse(received.body.toString())
    expect(StatusEventKind.literals).not.toContain(body.event)
    expect(body).toEqual({
      id: result.id,
      event: "test",
      createdAt: expect.any(String),
      endpoint,
      message: expect.any(String)
    })
    const { daemon } = yield* Shop
    expect(yield* rows(daemon.home, "SELECT 1 FROM attempts WHERE body_start = 'hello'")).toEqual([])

    yield* inbox.behave(() => 410)
    const refused = yield* run("test", endpoint)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("410") })
    expect(refused.stdout).toMatch(/ms {2}127\.0\.0\.1 {2}410\n$/)
  })

  test("an impossible request is reported, with the exit code that says whose fault it is", function* () {
    for (const [code, said, ...args] of [
      [1, "dlv_none", "show", "dlv_none"],
      [1, "dlv_none", "redeliver", "dlv_none"],
      [1, "wh_none", "test", "wh_none"],
      [1, "wh_none", "list", "--endpoint", "wh_none"],
      [1, "no account other", "list", "--account", "other"],
      [2, "--since", "redeliver"],
      [2, "--since", "redeliver", "dlv_none", "--since", "24h"],
      [2, "2026-01-31T12:00:00Z", "redeliver", "--since", "2026-01-31T12:00:00"],
      [2, "2026-01-31T12:00:00Z", "list", "--until", "2026-02-30"],
      [1, "wh_none", "redeliver", "--since", "24h", "--to", "wh_none"],
      [2, "ID", "redeliver", "--since", "24h", "--wait"],
      [1, "wh_none", "change", "wh_none", "--url", "https://shop.example/"],
      [2, "what to change", "change", "wh_none"],
      [2, "An overlap is for a new secret", "change", "wh_none", "--url", "https://shop.example/", "--overlap", "1h"],
      [2, "30 days", "change", "wh_none", "--new-secret", "--overlap", "31d"],
      [2, "standard input", "change", "wh_none", "--secret", secret],
      [2, "--new-secret", "change", "wh_none", "--secret", "-", "--new-secret"],
      [2, "payment.detecting", "change", "wh_none", "--events", "payment.paid"]
    ] as const) {
      const ended = yield* run(...args)
      expect(ended, args.join(" ")).toMatchObject({ code, stdout: "" })
      expect(ended.stderr, args.join(" ")).toContain(said)
    }
  })
})
