import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { attempts, dispatching, newPayment, publish, SlowStore, untilRecorded } from "../../lib/webhooks.ts"
import { a, hangs, ok, register, scripted } from "../endpoints.ts"

const busy = Array.from({ length: 8 }, (_, i) => `https://busy${i}.example/hook`)

it.scoped("ended attempts are gathered for twice as long as the last commit took, from 5 to 100 ms", () => {
  const store = { takes: 0 }
  const client = scripted({ [a]: ok, ...Object.fromEntries(busy.map((url) => [url, hangs])) })
  return dispatching(client, function* () {
    for (const url of busy) yield* register(url, ["payment.confirmed"])
    yield* register(a, ["payment.created"])
    yield* publish(yield* newPayment(), "confirmed")
    yield* client.until(busy.length, ...busy)
    let made = 0
    /** An attempt ends, and is stored `gathered` milliseconds later by a commit that takes so long. */
    const attempt = (gathered: number, takes: number) =>
      Effect.gen(function* () {
        store.takes = 0
        yield* publish(yield* newPayment(), "pending")
        yield* client.until(++made, a)
        store.takes = takes
        yield* TestClock.adjust(gathered + takes - 1)
        expect(yield* attempts).toHaveLength(made - 1)
        yield* TestClock.adjust(1)
        yield* untilRecorded(made)
      })
    yield* attempt(5, 20)
    yield* attempt(40, 70)
    yield* attempt(100, 1)
    yield* attempt(5, 0)
  }).pipe(Effect.provideService(SlowStore, store))
})
