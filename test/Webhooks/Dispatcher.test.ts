import { expect, it } from "@effect/vitest"
import { Effect, Redacted, TestClock } from "effect"
import { Webhooks } from "../../src/Webhooks.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { attempts, besideDispatcher, deliveries, merchant, newPayment, publish, stubClient, untilRecorded, webhooksOn } from "../lib/webhooks.ts"

const url = "https://shop.example/hook"
const names = { "shop.example": ["93.184.216.34"] }
const secret = Redacted.make("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
const minute = 60_000
const hour = 60 * minute

const register = (target = url) =>
  Effect.flatMap(Webhooks, (webhooks) =>
    webhooks.create(merchant, { url: target, events: ["payment.created", "payment.detecting", "payment.confirmed"], secret })
  )

it.scoped("six attempts, each timed from the end of the one before", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const client = stubClient(() => Effect.succeed({ status: 500, bodyStart: "no" }))
    yield* Effect.gen(function* () {
      yield* register()
      yield* publish(yield* newPayment(), "pending")
      yield* untilRecorded(1)
      const statuses = [(yield* deliveries)[0]?.status]
      for (const [made, delay] of [minute, 5 * minute, 30 * minute, 2 * hour, 24 * hour].entries()) {
        yield* TestClock.adjust(delay - 1)
        expect(yield* attempts).toHaveLength(made + 1)
        yield* TestClock.adjust(1)
        yield* untilRecorded(made + 2)
        statuses.push((yield* deliveries)[0]?.status)
      }
      expect((yield* attempts).map((attempt) => attempt.started_at)).toEqual([
        0,
        minute,
        6 * minute,
        36 * minute,
        2 * hour + 36 * minute,
        26 * hour + 36 * minute
      ])
      expect(statuses).toEqual(["pending", "pending", "pending", "pending", "failed", "failed"])
      yield* TestClock.adjust("30 days")
      expect((yield* attempts).length).toBe(6)
    }).pipe(besideDispatcher, Effect.provide(webhooksOn(path, client, {}, names)))
  })
)
