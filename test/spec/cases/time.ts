import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, type Scope, TestClock, TestContext } from "effect"
import { parseUnits } from "viem"
import { startSockets } from "../../../src/Control/controlSockets.ts"
import type { ReceiverReply } from "../../../src/Sandbox/Receiver.ts"
import { Settings } from "../../../src/Settings.ts"
import { TestApi } from "../../lib/api.ts"
import { localChain } from "../../lib/daemon.ts"
import { makeInbox } from "../../lib/inbox.ts"
import { signIn } from "../../lib/portal.ts"
import { tilldJson } from "../../lib/tilld.ts"
import { besideDispatcher } from "../../lib/webhooks.ts"
import { type Case, states } from "../Case.ts"
import { attempted, type Delivery, deliveries, living, makePlace, readGas, serving } from "../Life.ts"
import { limits } from "./limits.ts"

const begin = Date.parse("2026-01-31T12:00:00.000Z")
const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** Makes payments whose events go to these URLs: one event each. */
const payments = (key: string, ...webhookUrls: ReadonlyArray<string>) =>
  Effect.flatMap(TestApi, (api) =>
    Effect.forEach(
      webhookUrls,
      (webhookUrl) => {
        const json = { merchantRef: webhookUrl, amount: "1", currency: "ETH", chain: "base", webhookUrl }
        return Effect.map(api.call("POST", "/v1/payments", { key, json }), ({ body, status, text }) => {
          expect(status, text).toBe(201)
          return body as { readonly id: string }
        })
      },
      { concurrency: 1 }
    )
  )

/** One event to a receiver that refuses it each time. */
interface Refused {
  /** Of the delivery, after each attempt. */
  readonly statuses: ReadonlyArray<string>
  readonly attempts: Delivery["attempts"]
  /** What the operator is shown of the payment in the end. */
  readonly shown: { readonly deliveries: ReadonlyArray<{ readonly status: string; readonly attempts: unknown }> }
  /** The payment, and the portal's page of failed deliveries. */
  readonly payment: string
  readonly page: string
  /** What each attempt sent, and when it was signed: Unix seconds. */
  readonly sent: ReadonlyArray<{ readonly id: string; readonly body: string; readonly signedAt: number }>
}

/**
 * All that is tried. Between two attempts the server is down, and comes up a second before the next is due: an attempt
 * that came too early, or was forgotten, would show.
 */
const refuseAll = Effect.gen(function* () {
  yield* TestClock.setTime(begin)
  const inbox = yield* makeInbox({ behaviour: () => 500 })
  const place = yield* makePlace({ caFile: inbox.caFile })
  const [payment = expect.fail("no payment")] = yield* serving(place)(
    Effect.gen(function* () {
      const api = yield* TestApi
      return yield* payments(yield* api.newKey(), `${inbox.url}/hook`)
    })
  )
  const statuses: Array<string> = []
  const sent: Array<Refused["sent"][number]> = []
  let attempts: Delivery["attempts"] = []
  const attempt = living(place)(
    besideDispatcher(
      Effect.gen(function* () {
        yield* TestClock.adjust("1 second")
        const { event, request } = yield* inbox.next("/hook", payment)
        const signedAt = Number(request.headers["webhook-timestamp"])
        sent.push({ id: event.id, body: request.body.toString("utf8"), signedAt })
        const [delivery = expect.fail("no delivery")] = yield* attempted(sent.length)
        statuses.push(delivery.status)
        attempts = delivery.attempts
      })
    )
  )
  yield* attempt
  for (const delay of [minute, 5 * minute, 30 * minute, 2 * hour, 24 * hour]) {
    yield* TestClock.setTime((attempts.at(-1)?.endedAt ?? 0) + delay - second)
    yield* attempt
  }
  yield* TestClock.adjust("90 days")
  yield* living(place)(besideDispatcher(TestClock.adjust("1 minute")))
  expect(yield* inbox.all).toHaveLength(6)
  const shown = yield* living(place)(
    Effect.gen(function* () {
      yield* Effect.forkScoped(yield* startSockets(yield* Settings))
      return yield* tilldJson<Refused["shown"]>(["payments", "show", payment.id, "--config", place.config])
    }).pipe(Effect.scoped)
  )
  const { text: page } = yield* serving(place)(
    Effect.gen(function* () {
      const admin = yield* signIn(yield* TestApi, { account: "default" })
      return yield* admin.get("/portal/a/default/test/deliveries?status=failed")
    })
  )
  const refused: Refused = { statuses, attempts, sent, shown, payment: payment.id, page }
  return refused
})

/** Made once, on a clock of its own, for all that look at it. */
export class Retries extends Context.Tag("test/spec/Retries")<Retries, { readonly refused: Effect.Effect<Refused> }>() {
  static readonly layer = Layer.effect(
    Retries,
    Effect.map(
      Effect.cached(refuseAll.pipe(Effect.scoped, Effect.provide(TestContext.TestContext), Effect.orDie)),
      (refused) => ({ refused })
    )
  )
}

const delays = [
  { retry: 1, delay: minute, says: "1 minute" },
  { retry: 2, delay: 5 * minute, says: "5 minutes" },
  { retry: 3, delay: 30 * minute, says: "30 minutes" },
  { retry: 4, delay: 2 * hour, says: "2 hours" },
  { retry: 5, delay: 24 * hour, says: "24 hours" }
]

const retries: ReadonlyArray<Case<Retries>> = [
  ...delays.map(({ delay, retry, says }) =>
    states([`6.2.3 retry ${retry}`], `comes ${says} after the failed attempt before it`, function* () {
      const { attempts, sent } = yield* (yield* Retries).refused
      const before = attempts[retry - 1] ?? expect.fail("no attempt before")
      expect((attempts[retry]?.startedAt ?? 0) - before.endedAt).toBe(delay)
      expect(sent[retry]?.signedAt).toBe(Math.floor((before.endedAt + delay) / second))
    })
  ),
  states(
    ["6.2.3", "8 Webhook retries", '1 "The service pushes payment"'],
    "a failed attempt is followed by five retries and by no more",
    function* () {
      const { attempts, sent } = yield* (yield* Retries).refused
      expect([attempts.length, sent.length]).toEqual([6, 6])
    }
  ),
  states(
    ["6.2.4"],
    "the fifth failed attempt marks it failed; the portal lists it, and tilld payments show reports it",
    function* () {
      const { page, payment, shown, statuses } = yield* (yield* Retries).refused
      expect(statuses).toEqual(["pending", "pending", "pending", "pending", "failed", "failed"])
      const attempt = expect.objectContaining({ status: 500 })
      expect(shown.deliveries).toMatchObject([{ status: "failed", attempts: Array(6).fill(attempt) }])
      expect(page).toContain(payment)
    }
  ),
  states(["6.2.5"], "a repeated delivery has the same id, and the same bytes", function* () {
    const { sent } = yield* (yield* Retries).refused
    expect(new Set(sent.map(({ id }) => id)).size).toBe(1)
    expect(new Set(sent.map(({ body }) => body)).size).toBe(1)
  })
]

/** The outcome of events, one to each path of a receiver that responds as `reply` says. */
const answered = (
  paths: ReadonlyArray<string>,
  reply: (path: string) => ReceiverReply | Effect.Effect<ReceiverReply>
) =>
  Effect.gen(function* () {
    const inbox = yield* makeInbox({ behaviour: ({ path }) => reply(path) })
    const place = yield* makePlace({ caFile: inbox.caFile })
    return { inbox, place, urls: paths.map((path) => inbox.url + path) }
  })

const waiting: ReadonlyArray<Case<Scope.Scope>> = [
  states(["6.2.2"], "any 2xx is a success, also one that takes all but 30 seconds", function* () {
    const gate = yield* Deferred.make<ReceiverReply>()
    const { inbox, place, urls } = yield* answered(["/200", "/204", "/299", "/late"], (path) =>
      path === "/late" ? Deferred.await(gate) : Number(path.slice(1))
    )
    const test = Effect.gen(function* () {
      const api = yield* TestApi
      const made = yield* payments(yield* api.newKey(), ...urls)
      yield* inbox.next("/late", made[3] ?? expect.fail("no payment"))
      yield* TestClock.adjust(30 * second - 1)
      yield* Deferred.succeed(gate, 204)
      const all = yield* attempted(1)
      expect(all.map(({ attempts, status }) => [status, attempts.length])).toEqual(Array(4).fill(["delivered", 1]))
      const [late] = all[3]?.attempts ?? []
      expect((late?.endedAt ?? 0) - (late?.startedAt ?? 0)).toBe(30 * second - 1)
    })
    yield* serving(place)(besideDispatcher(test))
  }),
  states(
    ['6.2.2 "Any non-2xx status or"', "8 Webhook receiver response time"],
    "a status of another kind, a connection that is cut, and no status within 30 seconds are failed attempts",
    function* () {
      const statuses = [301, 304, 400, 404, 410, 429, 500, 503]
      const paths = [...statuses.map((status) => `/${status}`), "/cut", "/never"]
      const { inbox, place, urls } = yield* answered(paths, (path) => {
        if (path === "/never") return Effect.never
        return path === "/cut"
          ? "hang up"
          : { status: Number(path.slice(1)), headers: { location: `${path}/elsewhere` } }
      })
      const test = Effect.gen(function* () {
        const api = yield* TestApi
        const made = yield* payments(yield* api.newKey(), ...urls)
        yield* inbox.next("/never", made.at(-1) ?? expect.fail("no payment"))
        yield* TestClock.adjust(30 * second - 1)
        expect((yield* deliveries).at(-1)?.attempts).toEqual([])
        yield* TestClock.adjust(1)
        const all = yield* attempted(1)
        expect(all.map(({ attempts, status }) => [status, attempts.length])).toEqual(all.map(() => ["pending", 1]))
        const [never] = all.at(-1)?.attempts ?? []
        expect([never?.error, (never?.endedAt ?? 0) - (never?.startedAt ?? 0)]).toEqual(["timeout", 30 * second])
        // No redirect was followed.
        expect(new Set((yield* inbox.all).map(({ path }) => path))).toEqual(new Set(paths))
      })
      yield* serving(place)(besideDispatcher(test))
    }
  ),
  states(
    [
      "2.2 validUntil",
      "8 Quote validity",
      '1 "A quote is valid"',
      '4.1 "A quote must not"',
      '4.2 "The handling of an"'
    ],
    "a quote can be used for 30 seconds; decided: later it is a 409, and a new quote is needed",
    function* () {
      yield* TestClock.setTime(begin)
      const place = yield* makePlace({ chain: yield* localChain("base") })
      const test = Effect.gen(function* () {
        const api = yield* TestApi
        const key = yield* api.newKey()
        yield* readGas
        const quote = Effect.map(
          api.call("POST", "/v1/quotes", {
            key,
            json: { fromCurrency: "EUR", toCurrency: "USDC", amount: "20", chain: "base" }
          }),
          ({ body, status, text }) => {
            expect(status, text).toBe(201)
            return body
          }
        )
        const pay = ({ id: quoteId, toAmount }: { readonly id: string; readonly toAmount: string }) =>
          Effect.map(
            api.call("POST", "/v1/payments", {
              key,
              json: {
                merchantRef: quoteId,
                amount: parseUnits(toAmount, 6).toString(),
                currency: "USDC",
                chain: "base",
                quoteId
              }
            }),
            ({ body, status }) => [status, body.error?.code]
          )
        const inTime = yield* quote
        const late = yield* quote
        for (const { validUntil } of [inTime, late]) expect(validUntil).toBe("2026-01-31T12:00:30.000Z")
        yield* TestClock.adjust("30 seconds")
        expect(yield* pay(inTime)).toEqual([201, undefined])
        yield* TestClock.adjust(1)
        expect(yield* pay(late)).toEqual([409, "QUOTE_EXPIRED"])
        const next = yield* quote
        expect(next.validUntil).toBe("2026-01-31T12:01:00.001Z")
        expect(yield* pay(next)).toEqual([201, undefined])
      })
      yield* serving(place)(test)
    }
  )
]

export const time: ReadonlyArray<Case<Retries | Scope.Scope>> = [...retries, ...waiting, ...limits]
