import { expect, it } from "@effect/vitest"
import type { EventKind } from "../../../src/Domain/Event.ts"
import { EndpointId } from "../../../src/Domain/Ids.ts"
import type { Endpoint } from "../../../src/Domain/Webhook.ts"
import { targetsOf } from "../../../src/Webhooks/transport/deliveryTargets.ts"
import { merchant } from "../../lib/webhooks.ts"

const endpoint = (letter: string, url: string, events: ReadonlyArray<EventKind>): Endpoint => ({
  id: EndpointId.make(`wh_${letter.repeat(22)}`),
  ...merchant,
  url,
  events,
  createdAt: 0
})

const confirmed = ["payment.confirmed"] as const
const a = endpoint("a", "https://shop.example/a", confirmed)
const b = endpoint("b", "https://shop.example/b", ["payment.failed"])

it("an event goes to the endpoints that subscribe to its kind", () => {
  expect(targetsOf(merchant, [a, b], "payment.confirmed", undefined)).toEqual([
    { endpoint: a.id, url: a.url, isOwnUrl: false, lane: a.id }
  ])
  expect(targetsOf(merchant, [a, b], "payment.created", undefined)).toEqual([])
})

it("a payment's own URL gets every kind, in the lane of its origin, account and mode", () => {
  expect(targetsOf(merchant, [a], "payment.created", "https://Other.example:443/hook")).toEqual([
    {
      endpoint: undefined,
      url: "https://Other.example:443/hook",
      isOwnUrl: true,
      lane: "https://other.example default/test"
    }
  ])
})

it.each([
  ["as it is", "https://shop.example/a"],
  ["spelled otherwise", "https://SHOP.example:443/a"]
])("an own URL that is an endpoint's, %s, gets each event once, with the endpoint's secret", (_, url) => {
  const once = [{ endpoint: a.id, url: a.url, isOwnUrl: true, lane: a.id }]
  expect(targetsOf(merchant, [a, b], "payment.confirmed", url)).toEqual(once)
  // Not subscribed to, but still owed.
  expect(targetsOf(merchant, [a, b], "payment.created", url)).toEqual(once)
})

it("of two endpoints with the own URL the one that subscribes signs for it", () => {
  const twin = { ...b, url: a.url, events: ["payment.created" as const] }
  expect(targetsOf(merchant, [a, twin], "payment.created", a.url)).toEqual([
    { endpoint: twin.id, url: a.url, isOwnUrl: true, lane: twin.id }
  ])
})

it("an event without a new status goes to the endpoints that name its kind, and not to a payment's own URL", () => {
  const every = endpoint("e", "https://shop.example/e", ["payment.confirmed", "payment.updated"])
  const toEvery = [{ endpoint: every.id, url: every.url, isOwnUrl: false, lane: every.id }]
  for (const own of [undefined, "https://other.example/", a.url, every.url]) {
    expect(targetsOf(merchant, [a, b, every], "payment.updated", own)).toEqual(toEvery)
  }
})
