import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { PaymentObject } from "../../../src/Domain/Payment.ts"
import { problemsIn } from "../../lib/api.ts"
import { pay } from "../../lib/daemon.ts"
import type { Case } from "../Case.ts"
import { create, Shop, shopCase } from "../Shop.ts"

const list = (query: string, key?: string) =>
  Effect.flatMap(Shop, ({ ask }) => ask("GET", `/v1/payments${query}`, key === undefined ? {} : { key }))

const statusRule = "must be pending, detecting, confirmed, expired or failed"

export const lists: ReadonlyArray<Case<Shop>> = [
  shopCase(["4.4 limit", "8 List page size"], "20 unless given, at most 100: more is refused", function* ({ full }) {
    const { key, payments } = yield* full
    const newestFirst = payments.map(({ id }) => id).reverse()
    const page = (query: string) =>
      Effect.map(list(query, key), ({ body }) => body.data.map(({ id }: PaymentObject) => id))
    expect(yield* page("")).toEqual(newestFirst.slice(0, 20))
    expect(yield* page("?limit=100")).toEqual(newestFirst.slice(0, 100))
    expect(yield* page("?limit=1")).toEqual(newestFirst.slice(0, 1))
    for (const limit of ["101", "0", "-1", "1.5", "x", ""]) {
      const answer = yield* list(`?limit=${limit}`, key)
      expect([answer.status, problemsIn(answer)]).toEqual([400, { limit: "must be an integer from 1 to 100" }])
    }
  }),
  shopCase(
    ["4.4 cursor", '4.4 "The response carries a"', '4.4 "The exact envelope, the"'],
    "decided: data and cursor and nothing else, newest first; a null cursor is the end, an empty one the beginning",
    function* ({ full }) {
      const { key, payments } = yield* full
      const newestFirst = payments.map(({ id }) => id).reverse()
      const first = yield* list("?limit=40&cursor=", key)
      expect(first.status).toBe(200)
      expect(Object.keys(first.body)).toEqual(["data", "cursor"])
      const seen = [...first.body.data]
      let { cursor } = first.body
      while (cursor !== null) {
        expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/)
        const { body } = yield* list(`?limit=40&cursor=${cursor}`, key)
        seen.push(...body.data)
        cursor = body.cursor
      }
      expect(seen).toEqual([...payments].reverse())
      expect(seen.map(({ id }: PaymentObject) => id)).toEqual(newestFirst)
      const invented = yield* list("?cursor=nonsense", key)
      expect([invented.status, invented.body.error.code]).toEqual([400, "INVALID_CURSOR"])
    }
  ),
  shopCase(
    ['4.4 "GET /v1/payments"', '4.4 "Query parameters"', "4.4 chain"],
    "takes the four parameters and no other; chain selects the payments of one chain",
    function* ({ full }) {
      const { key, payments } = yield* full
      for (const chain of ["ethereum", "polygon", "arbitrum", "optimism", "base"]) {
        const { body, status } = yield* list(`?limit=100&chain=${chain}`, key)
        expect([status, body.data]).toEqual([200, payments.filter((made) => made.chain === chain).reverse()])
      }
      const answer = yield* list("?chain=solana&page=2", key)
      expect([answer.status, problemsIn(answer)]).toEqual([
        400,
        {
          chain: "must be ethereum, polygon, arbitrum, optimism or base",
          page: "is not a query parameter of this endpoint"
        }
      ])
    }
  ),
  shopCase(
    ["4.4 status", '3 "The list filter status"'],
    "pending, confirmed, expired or failed, each without the others; decided: detecting too, and nothing else",
    function* ({ ask, chain, daemon, over, paid }) {
      const ended = yield* over
      const { short, unpaid } = ended.outcomes
      const part = yield* create(ask, { chain: "optimism" })
      // A part: what is below a hundredth of the amount is not credited.
      yield* pay(chain("optimism"), { ...part, amount: `${BigInt(part.amount) / 2n}` })
      yield* chain("optimism").mine()
      yield* daemon.hasRead(chain("optimism"))
      for (const [status, { id }, where] of [
        ["pending", yield* create(ask), ask],
        ["detecting", part, ask],
        ["confirmed", (yield* paid).created, ask],
        ["expired", unpaid.created, ended.ask],
        ["failed", short.created, ended.ask]
      ] as const) {
        const { body } = yield* where("GET", `/v1/payments?status=${status}&limit=100`)
        expect(new Set(body.data.map((payment: PaymentObject) => payment.status))).toEqual(new Set([status]))
        expect(body.data.map((payment: PaymentObject) => payment.id)).toContain(id)
      }
      for (const status of ["open", "Pending", ""]) {
        const answer = yield* list(`?status=${status}`)
        expect([answer.status, problemsIn(answer)]).toEqual([400, { status: statusRule }])
      }
    }
  )
]
