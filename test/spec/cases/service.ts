import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { chainNames } from "../../../src/Domain/Chain.ts"
import { rows } from "../../lib/daemon.ts"
import type { Case } from "../Case.ts"
import { create, order, type Shop, shopCase } from "../Shop.ts"

const paths = [
  { path: "/v1/quotes", allow: "POST" },
  { path: "/v1/payments", allow: "GET, HEAD, POST" },
  { path: "/v1/payments/pay_x", allow: "GET, HEAD, PATCH" },
  { path: "/v1/payments/pay_x/cancel", allow: "POST" },
  { path: "/v1/webhooks", allow: "GET, HEAD, POST" },
  { path: "/v1/webhooks/wh_x", allow: "DELETE, GET, HEAD, PATCH" }
]

export const service: ReadonlyArray<Case<Shop>> = [
  shopCase(
    ['0 "This document covers the"', '0 "It is the only"', '9 "The version is part"', '1 "All paths below are"'],
    "all documented paths exist, below /v1 and nowhere else",
    function* ({ ask }) {
      for (const { allow, path } of paths) {
        const { headers, status } = yield* ask("PUT", path)
        expect([path, status, headers.allow]).toEqual([path, 405, allow])
        for (const elsewhere of [path.replace("/v1", ""), path.replace("/v1", "/v2"), path.replace("/v1", "/V1")]) {
          expect([elsewhere, (yield* ask("GET", elsewhere)).status]).toEqual([elsewhere, 404])
        }
      }
    }
  ),
  shopCase(
    ['9 "A policy for changes"'],
    "decided: nothing but the path chooses a version, and nothing is deprecated",
    function* ({ ask }) {
      const headers = { accept: "application/vnd.tilld.v2+json", "api-version": "2" }
      const answer = yield* ask("GET", "/v1/webhooks", { headers })
      expect(answer.status).toBe(200)
      expect(answer.headers).not.toHaveProperty("deprecation")
      expect(answer.headers).not.toHaveProperty("sunset")
    }
  ),
  shopCase(
    ['1 "Base address: {base_url}"', '1 "The service accepts requests"'],
    "requests for payments and for prices are taken at one address",
    function* ({ ask }) {
      const quote = { fromCurrency: "USD", toCurrency: "USDC", amount: "100" }
      expect((yield* ask("POST", "/v1/quotes", { json: quote })).status).toBe(201)
      expect((yield* ask("POST", "/v1/payments", { json: order() })).status).toBe(201)
    }
  ),
  shopCase(
    ['1 "A client creates a"', '1 "The service returns a"', "2.1 address"],
    "every payment, of any token and chain, has its own address from the wallet",
    function* ({ ask, daemon }) {
      const payments = yield* Effect.forEach(
        Array.from({ length: 25 }, (_, i) => chainNames[i % chainNames.length]),
        (chain) => create(ask, { chain }),
        { concurrency: "unbounded" }
      )
      expect(new Set(payments.map(({ address }) => address)).size).toBe(25)
      for (const { address, id } of payments) {
        const [row] = yield* rows<{ wallet_index: number }>(
          daemon.home,
          "SELECT wallet_index FROM payments WHERE id = ?",
          id
        )
        expect(address).toBe(daemon.home.address(row?.wallet_index ?? -1))
      }
    }
  ),
  shopCase(
    ['1 "Request and response bodies"'],
    "every response is JSON, a refusal too",
    function* ({ ask, askUnknown }) {
      const answers = [
        yield* ask("GET", "/v1/payments"),
        yield* ask("POST", "/v1/payments", { json: order() }),
        yield* ask("POST", "/v1/payments", { json: {} }),
        yield* ask("POST", "/v1/payments", { body: "{", headers: { "content-type": "application/json" } }),
        yield* ask("GET", "/v1/payments/pay_x"),
        yield* ask("PUT", "/v1/payments"),
        yield* askUnknown("GET", "/v1/payments"),
        yield* ask("GET", "/nothing")
      ]
      expect(answers.map(({ status }) => status)).toEqual([200, 201, 400, 400, 404, 405, 401, 404])
      for (const { body, headers } of answers) {
        expect(headers["content-type"]).toMatch(/^application\/json(?:; charset=utf-8)?$/)
        expect(body).toBeInstanceOf(Object)
      }
    }
  ),
  shopCase(
    ['1 "Requests that send a"'],
    "a body of another type, or of none, is refused with 415",
    function* ({ ask }) {
      const post = (...headers: ReadonlyArray<string>) =>
        Effect.map(
          ask("POST", "/v1/payments", {
            body: JSON.stringify(order()),
            headers: Object.fromEntries(headers.map((type) => ["content-type", type]))
          }),
          ({ status }) => status
        )
      expect(yield* post("application/json")).toBe(201)
      expect(yield* post("Application/JSON; charset=utf-8")).toBe(201)
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "application/xml"]) {
        expect([type, yield* post(type)]).toEqual([type, 415])
      }
      expect(yield* post()).toBe(415)
    }
  )
]
