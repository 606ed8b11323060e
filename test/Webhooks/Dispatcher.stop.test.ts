import { it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { dispatching, newPayment, publish, untilRecorded } from "../lib/webhooks.ts"
import { a, b, refused, register, scripted } from "./endpoints.ts"

// The dispatcher is stopped when the test is over: a stop that hangs is a time-out.
it.scoped.each([0, 1, 2, 3])(
  "a stop %i turns after attempts ended is not held up by the wait for their retries",
  (turns) => {
    const client = scripted({ [a]: refused, [b]: refused })
    return dispatching(client, function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      yield* untilRecorded(1)
      yield* TestClock.adjust("1 second")
      yield* register(b)
      yield* publish(yield* newPayment(), "pending", 1_000)
      yield* untilRecorded(3)
      for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow()
    })
  }
)
