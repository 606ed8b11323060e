import { createHmac } from "node:crypto"
import { HttpClient, HttpClientResponse } from "@effect/platform"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, TestClock } from "effect"
import type { EventKind } from "../../src/Domain/Event.ts"
import { demo, uriOfPage, walletCall } from "../../src/Sandbox/demo.ts"
import type { Received } from "../../src/Sandbox/Receiver.ts"
import { clockTest } from "../lib/scopedTest.ts"

interface World {
  /** The events that come of a payment. */
  readonly kinds: ReadonlyArray<EventKind>
  /** The transaction that they name; otherwise the one that paid. */
  readonly txHash?: string
  /** What they are signed with; otherwise the endpoint's secret. */
  readonly secret?: string
}

const hash = `0x${"a".repeat(64)}` as const
const address = `0x${"b".repeat(40)}`

/** The demo in a world where every payment leads to these events at once, and its clock stands still. */
const run = Effect.fnUntraced(function* ({ kinds, secret, txHash = hash }: World) {
  const arrivals = yield* Queue.unbounded<Received>()
  let endpointSecret = ""
  let payments = 0

  const deliver = (event: EventKind, id: string) => {
    const paid = event === "payment.created" ? {} : { txHash }
    const status = event === "payment.created" ? "pending" : event.replace("payment.", "")
    const checkoutUrl = `http://api/pay/${id}`
    const sums = { received: "0", refunded: "0", kept: "0" }
    const payment = {
      merchantRef: id,
      amount: "1",
      currency: "ETH",
      chain: "base",
      address,
      checkoutUrl,
      metadata: {},
      ...sums
    }
    const data = { id, ...payment, status, createdAt: "now", expiresAt: "then", ...paid }
    const body = Buffer.from(JSON.stringify({ id: `evt_${event}_${id}`, event, createdAt: "now", data }))
    const signature = createHmac("sha256", secret ?? endpointSecret)
      .update(body)
      .digest("hex")
    const headers = { "x-service-signature": signature }
    return arrivals.offer({ n: 0, at: 0, method: "POST", path: "/", headers, rawHeaders: [], body })
  }

  const api = HttpClient.make((request, url) =>
    Effect.gen(function* () {
      const answer = (body: unknown) =>
        HttpClientResponse.fromWeb(request, new Response(JSON.stringify(body), { status: 201 }))
      if (url.pathname.startsWith("/pay/")) {
        const link = `<a href="ethereum:${address}@1?value=1">pay</a>`
        return HttpClientResponse.fromWeb(request, new Response(link))
      }
      if (url.pathname === "/v1/webhooks") {
        const { body } = request
        endpointSecret = body._tag === "Uint8Array" ? JSON.parse(Buffer.from(body.body).toString()).secret : ""
        return answer({})
      }
      if (url.pathname.startsWith("/v1/invoices/")) return answer({ payment: "pay_price" })
      const isInvoice = url.pathname === "/v1/invoices"
      const id = isInvoice ? "pay_price" : `pay_${++payments}`
      yield* Effect.forEach(kinds, (kind) => deliver(kind, id), { concurrency: 1 })
      return answer({ id, address, checkoutUrl: `http://api/pay/${id}` })
    })
  )
  const console = yield* Effect.console
  return yield* demo({
    url: "http://api",
    apiKey: "svc_test_key",
    chains: [{ chainId: 1, send: () => Effect.succeed(hash) }],
    receiver: { url: "https://receiver", take: Queue.take(arrivals) }
  }).pipe(
    Effect.provide(Layer.succeed(HttpClient.HttpClient, api)),
    Effect.withConsole({ ...console, log: () => Effect.void }),
    Effect.either,
    Effect.fork
  )
})

const failure = (world: World) =>
  Effect.flatMap(Effect.flatMap(run(world), Fiber.join), (end) =>
    end._tag === "Left" ? Effect.succeed(end.left.message) : Effect.dieMessage("the demo succeeded")
  )

const whole: ReadonlyArray<EventKind> = ["payment.created", "payment.detecting", "payment.confirmed"]

clockTest("the demo ends once both payments have had all of their events", function* () {
  const end = yield* Effect.flatMap(run({ kinds: whole }), Fiber.join)
  expect(end._tag).toBe("Right")
})

clockTest("the demo gives up after a minute, and names what is missing", function* () {
  const fiber = yield* run({ kinds: ["payment.created", "payment.detecting"] })
  yield* TestClock.adjust("59 seconds")
  expect(fiber.unsafePoll()).toBeNull()
  yield* TestClock.adjust("1 second")
  expect(yield* Fiber.join(fiber)).toMatchObject({
    left: { message: "Missing after 1m: payment.confirmed of pay_price, payment.confirmed of pay_1" }
  })
})

clockTest("the demo fails at once over an event that it cannot trust", function* () {
  expect(yield* failure({ kinds: whole, secret: "whsec_another" })).toContain("X-Service-Signature is wrong")
  expect(yield* failure({ kinds: whole, txHash: "0xother" })).toContain(`was paid by ${hash}, not by 0xother`)
  expect(yield* failure({ kinds: ["payment.failed"] })).toContain("payment.failed of pay_price")
})

const payee = `0x${"a".repeat(40)}`
const contract = `0x${"b".repeat(40)}`

it("a wallet sends what a payment's URI says: coins, or a transfer of the token's contract", () => {
  expect(walletCall(`ethereum:${payee}@8453?value=25`)).toMatchObject({ chainId: 8453, to: payee, value: 25n })
  const data = `0xa9059cbb${payee.slice(2).padStart(64, "0")}${"19".padStart(64, "0")}`
  expect(walletCall(`ethereum:${contract}@10/transfer?address=${payee}&uint256=25`)).toMatchObject({
    chainId: 10,
    to: contract,
    data
  })
})

it("any other text results in no transaction", () => {
  for (const text of [
    "",
    payee,
    `ethereum:${payee}`,
    `ethereum:${payee}@1?value=1e18`,
    `ethereum:${payee}@1/approve?address=${payee}&uint256=1`
  ]) {
    expect(walletCall(text), text).toBeUndefined()
  }
})

it("the URI of a page is that of its link, as HTML writes it", () => {
  expect(uriOfPage('<a href="/x">x</a><a id="w" href="ethereum:0x1@1/transfer?address=0x2&amp;uint256=3">')).toBe(
    "ethereum:0x1@1/transfer?address=0x2&uint256=3"
  )
  expect(uriOfPage("<p>paid</p>")).toBeUndefined()
})
