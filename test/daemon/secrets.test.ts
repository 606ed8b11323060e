import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { homeOn, rows, serveHere } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { tilldJson } from "../lib/tilld.ts"

const firstSecret = `whsec_${Buffer.alloc(24, 5).toString("base64")}`
const nextSecret = `whsec_${Buffer.alloc(24, 6).toString("base64")}`
const order = { chain: "base", currency: "USDC", amount: "25000000" } as const

liveTest("a shop gets every event through new keys, new secrets, a new URL and a restart after each", function* () {
  const inbox = yield* makeInbox()
  const { home } = yield* homeOn("base", { caFile: inbox.caFile })
  let daemon = yield* serveHere(home)
  const restart = (key: string) =>
    Effect.gen(function* () {
      yield* daemon.end("SIGTERM")
      daemon = yield* serveHere(home, key)
    })
  /** What the shop's server takes: its path of the time, and any of its secrets. */
  let path = "/hook"
  let secrets = [firstSecret]
  const fails = inbox.behave(() => 503)
  const works = inbox.behave((request) =>
    request.path === path && secrets.some((secret) => verifySignature(request, secret)) ? 204 : 401
  )
  const sendAgain = Effect.gen(function* () {
    const { body, status } = yield* daemon.call<{ ordered: number }>("POST", "/v1/deliveries/redeliver", {})
    expect([status, body.ordered]).toEqual([200, 1])
  })
  /** A payment whose first event the shop's server could not take. */
  const missed = Effect.gen(function* () {
    yield* fails
    const payment = yield* daemon.create(order)
    yield* inbox.next(path, payment)
    const tried = rows(home, "SELECT 1 FROM deliveries WHERE payment_id = ? AND attempts = 1", payment.id)
    yield* Effect.repeat(tried, { until: ({ length }) => length === 1 })
    return payment
  })

  yield* works
  const hook = { url: inbox.url + path, events: StatusEventKind.literals, secret: firstSecret }
  const { body: endpoint } = yield* daemon.call<{ id: string }>("POST", "/v1/webhooks", hook)
  const change = (json: object) =>
    Effect.map(daemon.call("PATCH", `/v1/webhooks/${endpoint.id}`, json), ({ status }) => expect(status).toBe(200))
  yield* inbox.next(path, yield* daemon.create(order))

  // Another key: the former one is revoked only once the new one is in use.
  const keys = (...args: ReadonlyArray<string>) =>
    tilldJson<{ readonly id: string; readonly key: string }>(["keys", ...args, "--config", home.config])
  const next = yield* keys("create", "--mode", "test", "--name", "next")
  const former = yield* tilldJson<ReadonlyArray<{ readonly id: string; readonly name: string }>>([
    ...["keys", "list", "--config", home.config]
  ])
  yield* restart(next.key)
  yield* keys("revoke", former.find(({ name }) => name === "suite")?.id ?? "")
  yield* inbox.next(path, yield* daemon.create(order))

  // Another secret, while the receiver fails. It accepts both before the sender switches to the new one.
  const beforeSecret = yield* missed
  secrets = [firstSecret, nextSecret]
  yield* change({ secret: nextSecret, overlapSeconds: 3600 })
  yield* restart(next.key)
  yield* works
  yield* sendAgain
  yield* inbox.next(path, beforeSecret)
  yield* change({ secret: nextSecret, overlapSeconds: 0 })
  secrets = [nextSecret]

  // Another URL, while the receiver fails.
  const beforeMove = yield* missed
  path = "/moved"
  yield* change({ url: inbox.url + path })
  yield* restart(next.key)
  yield* works
  yield* sendAgain
  yield* inbox.next(path, beforeMove)

  const undelivered = rows(home, "SELECT status, attempts FROM deliveries WHERE status <> 'delivered'")
  yield* Effect.repeat(undelivered, { until: ({ length }) => length === 0 })
  const events = yield* rows<{ id: string }>(home, "SELECT id FROM events")
  expect(events).toHaveLength(4)
  const arrived = new Set((yield* inbox.all).map(({ headers }) => headers["webhook-id"]))
  expect(arrived).toEqual(new Set(events.map(({ id }) => id)))
})
