import { expect, it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted, TestClock } from "effect"
import { familiesOf, Metrics } from "../../src/Telemetry/Metrics.ts"
import { exposition } from "../../src/Telemetry/prometheusText.ts"
import { outcomeClass } from "../../src/Webhooks/queue/attemptOutcomes.ts"
import { failedAfter, retryDelays } from "../../src/Webhooks/queue/retryPolicy.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { readScrape } from "../lib/prometheus.ts"
import { temporaryDatabase } from "../lib/store.ts"
import {
  besideDispatcher,
  merchant,
  newPayment,
  publish,
  stubClient,
  untilRecorded,
  webhooksOn
} from "../lib/webhooks.ts"

const url = "https://a.example/hook"
const secret = Redacted.make("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
const hangs = Effect.as(Effect.sleep("30 seconds"), { error: "timeout" })

const scrape = Effect.map(Metrics, (metrics) => readScrape(exposition(familiesOf(metrics))))

it.scoped("a delivery counts as failed once, with its fifth attempt, and each attempt with its time", () =>
  Effect.gen(function* () {
    const test = Effect.gen(function* () {
      const { create } = yield* Webhooks
      yield* create(merchant, { url, events: ["payment.created"], secret })
      yield* publish(yield* newPayment(), "pending")
      for (const [i, delay] of [Duration.zero, ...retryDelays].entries()) {
        yield* TestClock.adjust(Duration.sum(delay, "30 seconds"))
        yield* untilRecorded(i + 1)
        const counted = yield* scrape
        expect(counted.value("tilld_webhook_attempts_total", { outcome: "timeout" })).toBe(i + 1)
        expect(counted.value("tilld_webhook_deliveries_failed_total")).toBe(i + 1 < failedAfter ? 0 : 1)
        expect(counted.value("tilld_webhook_attempt_duration_seconds_sum")).toBe((i + 1) * 30)
        expect(counted.value("tilld_webhook_attempt_duration_seconds_bucket", { le: "20" })).toBe(0)
      }
    })
    const webhooks = webhooksOn(
      yield* temporaryDatabase,
      stubClient(() => hangs)
    )
    yield* besideDispatcher(test).pipe(Effect.provide(Layer.provideMerge(webhooks, Metrics.layer)))
  })
)

it("an outcome's class is one of a few, whatever the receiver says", () => {
  const classes = [
    { status: 204 },
    { status: 418 },
    { status: 999 },
    { error: "name not resolved" },
    { error: "new" },
    {}
  ]
  expect(classes.map(outcomeClass)).toEqual(["delivered", "http_4xx", "other", "name_not_resolved", "other", "other"])
})
