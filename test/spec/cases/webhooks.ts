import { createHmac } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { verifySignature } from "../../../src/Sandbox/Receiver.ts"
import { problemsIn } from "../../lib/api.ts"
import { confirmations, pay } from "../../lib/daemon.ts"
import type { Case } from "../Case.ts"
import { create, type Outcome, Shop, shopCase } from "../Shop.ts"
import { isoTime } from "./payment.ts"

const kinds = ["payment.created", "payment.detecting", "payment.confirmed", "payment.expired", "payment.failed"]
const secret = "whsec_0123456789abcdef"

const endpoint = (fields: Readonly<Record<string, unknown>> = {}) =>
  Effect.map(Shop, ({ inbox }) => ({ url: `${inbox.url}/some`, events: ["payment.created"], secret, ...fields }))

const register = (fields: Readonly<Record<string, unknown>> = {}) =>
  Effect.gen(function* () {
    const { ask } = yield* Shop
    return yield* ask("POST", "/v1/webhooks", { json: yield* endpoint(fields) })
  })

const isRefused = (field: string, ...values: ReadonlyArray<unknown>) =>
  Effect.gen(function* () {
    for (const value of values) {
      const answer = yield* register({ [field]: value })
      expect([answer.status, Object.keys(problemsIn(answer))], answer.text).toEqual([
        400,
        [expect.stringMatching(new RegExp(`^${field}`))]
      ])
    }
  })

/** A payment without what each block that follows changes. */
const withoutDepth = (payment: unknown): unknown =>
  JSON.parse(JSON.stringify(payment, (name, value) => (name === "confirmations" ? undefined : value)))

const all = (outcomes: ReadonlyArray<Outcome>) => outcomes.flatMap(({ events }) => events)

const everything = Effect.gen(function* () {
  const { over, paid } = yield* Shop
  return all([yield* paid, ...Object.values((yield* over).outcomes)])
})

const only = (kind: string) => Effect.map(everything, (events) => events.filter(({ event }) => event.event === kind))

const ofKind = (kind: string, status: string, says: string) =>
  shopCase([`6.1 ${kind}`], says, function* () {
    const events = yield* only(kind)
    expect(events.length).toBeGreaterThan(0)
    for (const { event } of events) expect(event.data.status).toBe(status)
  })

const event: ReadonlyArray<Case<Shop>> = [
  shopCase(
    ["2.4 id", "2.4 event", "2.4 createdAt", '6.1 "The body is the"'],
    "each event has an id of the form evt_<id> of its own, its kind, a time in UTC, data, and no other field",
    function* () {
      const events = yield* everything
      for (const { event } of events) {
        expect(Object.keys(event)).toEqual(["id", "event", "createdAt", "data"])
        expect(event.id).toMatch(/^evt_[A-Za-z0-9_-]{22,}$/)
        expect(kinds).toContain(event.event)
        expect(event.createdAt).toMatch(isoTime)
      }
      expect(new Set(events.map(({ event }) => event.id)).size).toBe(events.length)
    }
  ),
  shopCase(
    ["2.4 data", '6.1 "The exact data fields"'],
    "the payment as it was when the event happened, whatever it is by now; decided: that object alone, for every kind",
    function* ({ over, paid }) {
      const { events, read } = yield* paid
      // Only reading a payment shows where its customer goes.
      const shown = events.map(({ event }) => ({ ...event.data, redirectUrl: "https://shop.example/thanks" }))
      expect(shown.map(withoutDepth)).toEqual(read.map(withoutDepth))
      for (const outcome of Object.values((yield* over).outcomes)) {
        const [created] = outcome.events
        expect(created?.event.data).toEqual(outcome.created)
        // With the money that needs a person, as in answers.
        expect(withoutDepth(outcome.events.at(-1)?.event.data)).toEqual(withoutDepth(outcome.read.at(-1)))
      }
    }
  ),
  ofKind("payment.created", "pending", "a new payment is announced"),
  ofKind("payment.detecting", "detecting", "its first money is announced before it is deep enough"),
  ofKind("payment.confirmed", "confirmed", "its confirmation is announced"),
  ofKind("payment.expired", "expired", "the end of its window is announced"),
  ofKind("payment.failed", "failed", "its failure is announced"),
  shopCase(
    ['6.1 "For payment.confirmed, data has"'],
    "status confirmed, the transaction's hash and the time",
    function* ({ paid }) {
      const { events, txHash } = yield* paid
      const { createdAt, data } = events[2]?.event ?? expect.fail("no third event")
      expect(data).toMatchObject({ status: "confirmed", txHash, confirmedAt: createdAt })
    }
  )
]

const endpoints: ReadonlyArray<Case<Shop>> = [
  shopCase(
    [
      '1 "Clients can register, list"',
      '2.5 "Identifier form wh_<id>"',
      '2.5 "The fields of the"',
      '4.5 "The response body: not"',
      '4.6 "GET /v1/webhooks, no parameters"',
      '4.6 "The response body: not"',
      '4.7 "DELETE /v1/webhooks/:id where :id"',
      '4.7 "The response body: not"'
    ],
    "decided: id, url, events and createdAt are returned, never the secret; a list is data; a deletion names its id",
    function* ({ ask }) {
      const { url } = yield* endpoint()
      const made = yield* register()
      expect([made.status, made.body]).toEqual([
        201,
        {
          id: expect.stringMatching(/^wh_[A-Za-z0-9_-]{22,}$/),
          url,
          events: ["payment.created"],
          createdAt: expect.stringMatching(isoTime)
        }
      ])
      const listed = yield* ask("GET", "/v1/webhooks")
      expect([listed.status, Object.keys(listed.body)]).toEqual([200, ["data"]])
      expect(listed.body.data).toContainEqual(made.body)
      expect(listed.text).not.toContain("whsec_")
      expect((yield* ask("GET", "/v1/webhooks?limit=1")).status).toBe(400)
      const path = `/v1/webhooks/${made.body.id}`
      const deleted = yield* ask("DELETE", path)
      expect([deleted.status, deleted.body]).toEqual([
        200,
        {
          ...{ id: made.body.id, deleted: true },
          // Payments of other cases may have been on their way to it.
          cancelled: expect.any(Number)
        }
      ])
      expect((yield* ask("DELETE", path)).status).toBe(404)
      expect((yield* ask("GET", "/v1/webhooks")).body.data).not.toContainEqual(made.body)
    }
  ),
  shopCase(
    ['4.5 "POST /v1/webhooks"', '2.5 "Fields supplied on creation"'],
    "url, events and secret are required, and nothing else is taken",
    function* () {
      const nothing = yield* register({ url: undefined, events: undefined, secret: undefined })
      expect([nothing.status, problemsIn(nothing)]).toEqual([
        400,
        { url: "is required", events: "is required", secret: "is required" }
      ])
      yield* isRefused("description", "x")
    }
  ),
  shopCase(
    ["4.5 url", '6.2.1 "Only HTTPS endpoints are"'],
    "https only, for an endpoint as for a payment's webhookUrl",
    function* ({ ask, inbox }) {
      const plain = inbox.url.replace("https:", "http:")
      yield* isRefused("url", `${plain}/some`, "ftp://shop.example", "shop.example", "", null, 5)
      const json = { merchantRef: "http", amount: "1", currency: "USDC", chain: "base", webhookUrl: plain }
      const answer = yield* ask("POST", "/v1/payments", { json })
      expect([answer.status, Object.keys(problemsIn(answer))]).toEqual([400, ["webhookUrl"]])
    }
  ),
  shopCase(
    ["4.5 events"],
    "an array of the kinds that exist; the endpoint gets those and no others",
    function* ({ ask, chain, inbox }) {
      yield* isRefused("events", [], "payment.created", ["payment.paid"], ["payment.created", "payment.created"], null)
      const { body } = yield* register({ url: `${inbox.url}/confirmed`, events: ["payment.confirmed"] })
      expect(body.events).toEqual(["payment.confirmed"])
      const optimism = chain("optimism")
      const payment = yield* create(ask, { chain: "optimism" })
      yield* pay(optimism, payment)
      yield* optimism.mine(confirmations)
      // The events of a payment come in their order: nothing came before.
      yield* inbox.take("/confirmed", payment, "payment.confirmed")
      yield* ask("DELETE", `/v1/webhooks/${body.id}`)
    }
  ),
  shopCase(["4.5 secret"], "of the form whsec_<secret>, and what signs for this endpoint", function* ({ ask, inbox }) {
    yield* isRefused("secret", "0123456789abcdef0123", "whsec_", "WHSEC_0123456789abcdef", "", null, 5)
    const own = "whsec_of-this-endpoint-alone-ünïcödé"
    const { body } = yield* register({ url: `${inbox.url}/secret`, secret: own })
    const payment = yield* create(ask)
    const [delivered] = yield* inbox.take("/secret", payment, "payment.created")
    const { request } = delivered ?? expect.fail("nothing came")
    expect([verifySignature(request, own), verifySignature(request, secret)]).toEqual([true, false])
    yield* ask("DELETE", `/v1/webhooks/${body.id}`)
  })
]

const signed: ReadonlyArray<Case<Shop>> = [
  shopCase(["6.2.1"], "an HTTP POST of the event as JSON, to a receiver over TLS", function* ({ inbox }) {
    expect(inbox.url).toMatch(/^https:/)
    for (const { event, request } of yield* everything) {
      expect([request.method, request.headers["content-type"]]).toEqual(["POST", "application/json"])
      expect(JSON.parse(request.body.toString("utf8"))).toEqual(event)
    }
  }),
  shopCase(
    ["6.3.1", "6.3.2", "5.7"],
    "X-Service-Signature is on every delivery: the HMAC-SHA256 of the bytes, keyed with the whole secret, in hex",
    function* ({ endpointSecret, inbox, ownSecret, paid }) {
      const deliveries = (yield* paid).events
      const hmac = (key: string, body: Buffer) => createHmac("sha256", key).update(body).digest("hex")
      for (const { request } of deliveries) {
        expect(request.headers["x-service-signature"]).toBe(hmac(ownSecret, request.body))
        expect(request.headers).not.toHaveProperty("x-api-key")
      }
      const toEndpoint = (yield* inbox.all).filter(({ path }) => path === "/all")
      expect(toEndpoint.length).toBeGreaterThan(0)
      for (const { body, headers } of toEndpoint) {
        expect(headers["x-service-signature"]).toBe(hmac(endpointSecret, body))
      }
    }
  ),
  shopCase(
    ["6.3.3"],
    "recomputing it accepts what was delivered, and rejects another body, signature or secret, or none",
    function* ({ ownSecret, paid }) {
      const [delivered] = (yield* paid).events
      const { body, headers } = delivered?.request ?? expect.fail("nothing came")
      const signature = String(headers["x-service-signature"])
      const accepts = (over: Partial<typeof delivered & { body: Buffer; signature: string; secret: string }>) =>
        verifySignature(
          { body: over.body ?? body, headers: { "x-service-signature": over.signature ?? signature } },
          over.secret ?? ownSecret
        )
      expect(accepts({})).toBe(true)
      expect(accepts({ body: Buffer.concat([body, Buffer.from(" ")]) })).toBe(false)
      expect(accepts({ signature: signature.replace(/^./, (digit) => (digit === "0" ? "1" : "0")) })).toBe(false)
      expect(accepts({ signature: "" })).toBe(false)
      expect(accepts({ secret: ownSecret.slice("whsec_".length) })).toBe(false)
    }
  )
]

export const webhooks: ReadonlyArray<Case<Shop>> = [...event, ...endpoints, ...signed]
