import { expect, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  CheckoutToken,
  EventId,
  eventId,
  newCheckoutToken,
  newPaymentId,
  newRequestId,
  PaymentId
} from "../../src/Domain/Ids.ts"

const beginning = (id: string) => id.slice(4, 12)

it("ids of payments of one millisecond differ but begin alike; later ids begin differently", () => {
  const at = 1_800_000_000_000
  const ids = Array.from({ length: 1_000 }, () => newPaymentId(at))
  expect(new Set(ids).size).toBe(1_000)
  expect(new Set(ids.map(beginning)).size).toBe(1)
  expect(beginning(newPaymentId(at + 1))).not.toBe(beginning(newPaymentId(at)))
  for (const id of [...ids, newPaymentId(0), newPaymentId(2 ** 47)]) expect(Schema.is(PaymentId)(id)).toBe(true)
})

it("a checkout token begins with its time, differs from every other and shares no random bit with an id", () => {
  const at = 1_800_000_000_000
  const tokens = Array.from({ length: 1_000 }, () => newCheckoutToken(at))
  const tails = new Set([...tokens.map((token) => token.slice(8)), newPaymentId(at).slice(12)])
  expect([tails.size, new Set(tokens.map((token) => token.slice(0, 8))).size]).toEqual([1_001, 1])
  for (const token of [...tokens, newCheckoutToken(0)]) expect(Schema.is(CheckoutToken)(token)).toBe(true)
})

it("an event's id is the same each time it is made, begins as its payment's does, and differs from every other event's", () => {
  const [one, other] = [newPaymentId(0), newPaymentId(0)]
  const made = () =>
    [one, other].flatMap((payment) =>
      ["payment.created", "payment.detecting"].flatMap((kind) => [0, 1].map((n) => eventId(payment, kind, n)))
    )
  expect(made()).toEqual(made())
  expect(new Set(made()).size).toBe(8)
  for (const id of made()) {
    expect(Schema.is(EventId)(id)).toBe(true)
    expect(beginning(id)).toBe(beginning(one))
  }
})

it("ids of requests differ, and those that are drawn one after another begin alike", () => {
  const ids = Array.from({ length: 1_000 }, newRequestId)
  expect(new Set(ids).size).toBe(1_000)
  expect(new Set(ids.map(beginning)).size).toBeLessThan(7)
  expect(new Set(ids.map((id) => id.slice(12))).size).toBe(1_000)
  for (const id of ids) expect(id).toMatch(/^req_[\w-]{22}$/)
})
