import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { crashes } from "./crashes.ts"
import { kinds } from "./moments.ts"

const seed = 1

// `npm run test:crashes` kills 100 times, at moments of a new seed each time.
it.live(
  "10 kills under load: every committed event arrives at least once, none is altered, and no payment is lost",
  () =>
    Effect.gen(function* () {
      const { cutOff, killed, paid, payments, problems, repeated, unanswered } = yield* crashes(10, seed)
      expect(problems).toEqual([])
      // What the kills are to meet, or they try nothing.
      expect(Object.keys(killed).sort()).toEqual([...kinds].sort())
      for (const met of [cutOff, repeated, unanswered, paid]) expect(met).toBeGreaterThan(0)
      expect(payments).toBeGreaterThan(150)
    })
)
