import { createServer } from "node:net"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import { type Authority, makeAuthority } from "../../src/Sandbox/Authority.ts"
import { homeOn, rows, serve } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { listenHere } from "../lib/loopback.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { silentListener } from "../lib/silentListener.ts"

const path = "/hook"
const secret = `whsec_${Buffer.alloc(24, 5).toString("base64")}`

/** Attempts at once: to one endpoint, and in all. Fewer than by default, so that fewer payments fill them. */
const slotsOfOne = 4
const slots = 16
const limits = {
  TILLD_WEBHOOKS__CONCURRENCY_PER_ENDPOINT: String(slotsOfOne),
  TILLD_WEBHOOKS__CONCURRENCY: String(slots)
}

const hangs = {
  "accepts requests and never answers": (authority: Authority) =>
    Effect.flatMap(authority.issue(["127.0.0.1"]), silentListener),
  "accepts connections and never finishes the TLS handshake": () => silentListener()
}

describe("an endpoint of four", () => {
  for (const [what, listen] of Object.entries(hangs)) {
    liveTest(
      `that ${what} delays no other: each gets everything while the first attempts there still hang`,
      function* () {
        const authority = yield* makeAuthority
        const hanging = yield* listen(authority)
        const inboxes = yield* Effect.replicateEffect(makeInbox({ authority }), 3)
        const { home } = yield* homeOn("base", { caFile: inboxes[0]?.caFile ?? "" })
        const daemon = yield* serve(home, undefined, limits)
        // The one that hangs is always the first that an event is owed to.
        for (const url of [`https://127.0.0.1:${hanging.port}`, ...inboxes.map((inbox) => inbox.url)]) {
          const hook = { url: url + path, events: StatusEventKind.literals, secret }
          expect(yield* daemon.call("POST", "/v1/webhooks", hook)).toMatchObject({ status: 201 })
        }
        const create = (count: number) =>
          Effect.replicateEffect(daemon.create({ chain: "base", currency: "ETH", amount: "1" }), count, {
            concurrency: 8
          })

        // It has never answered, so that it is tried with one at a time.
        const before = yield* create(slotsOfOne)
        yield* hanging.hears(1)
        // Enough to fill all slots there are, if one endpoint were let.
        const payments = [...before, ...(yield* create(2 * slots))]
        for (const inbox of inboxes) for (const payment of payments) yield* inbox.take(path, payment, "payment.created")

        expect(hanging.counts()).toEqual({ heard: 1, ended: 0 })
        const there = yield* rows(
          home,
          `SELECT attempts, status, count(*) AS deliveries FROM deliveries WHERE url = ? GROUP BY attempts, status`,
          `https://127.0.0.1:${hanging.port}${path}`
        )
        expect(there).toEqual([{ attempts: 0, status: "pending", deliveries: payments.length }])
      }
    )
  }
})

/** Counts who dials it, and hangs up. */
const proxy = Effect.gen(function* () {
  let dialled = 0
  const server = createServer((socket) => {
    dialled++
    socket.destroy()
  })
  const { url } = yield* listenHere(server)
  return { url, dialled: () => dialled }
})

liveTest("proxies of the environment get no webhook", function* () {
  const { dialled, url } = yield* proxy
  const inbox = yield* makeInbox()
  const { home } = yield* homeOn("base", { caFile: inbox.caFile })
  const names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
  const daemon = yield* serve(home, undefined, {
    ...Object.fromEntries(names.map((name) => [name, url])),
    NODE_USE_ENV_PROXY: "1"
  })
  const webhookUrl = `${inbox.url}/hook`
  const payment = yield* daemon.create({ chain: "base", currency: "USDC", amount: "25000000", webhookUrl })
  yield* inbox.take("/hook", payment, "payment.created")
  expect(dialled()).toBe(0)
})
