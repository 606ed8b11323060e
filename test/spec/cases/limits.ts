import { expect } from "@effect/vitest"
import { Effect, type Scope, TestClock } from "effect"
import { TestApi } from "../../lib/api.ts"
import { type Case, states } from "../Case.ts"
import { makePlace, serving } from "../Life.ts"

const begin = Date.parse("2026-01-31T12:00:00.000Z")
const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/** The rate limits that a response reports to a key. */
const limitsIn = ({
  headers,
  status
}: {
  readonly headers: Readonly<Record<string, unknown>>
  readonly status: number
}) => ({
  status,
  limit: headers["x-ratelimit-limit"],
  remaining: headers["x-ratelimit-remaining"],
  reset: headers["x-ratelimit-reset"],
  retryAfter: headers["retry-after"]
})

const unixSeconds = (millis: number) => String(millis / second)

export const limits: ReadonlyArray<Case<Scope.Scope>> = [
  states(
    [
      "8 Requests per API key per minute",
      "8 Requests per API key per hour",
      '8 "Responses carry rate limit"',
      '8 "The response when a"',
      '7 "Other status codes, error"'
    ],
    "100 a minute and 1000 an hour for each key, reported by three headers; decided: Unix seconds, and 429 with Retry-After",
    function* () {
      yield* TestClock.setTime(begin)
      const test = Effect.gen(function* () {
        const api = yield* TestApi
        const key = yield* api.newKey()
        const ask = api.call("GET", "/v1/webhooks", { key })
        for (let window = 0; window < 10; window++) {
          const minutely = { limit: "100", reset: unixSeconds(begin + (window + 1) * minute) }
          // With its last request the hour is used up too, and that for longer.
          const tighter = window === 9 ? { limit: "1000", reset: unixSeconds(begin + hour) } : minutely
          const answers = yield* Effect.replicateEffect(ask, 100, { concurrency: 1 })
          const allowed = { status: 200, retryAfter: undefined }
          expect(answers.map(limitsIn)).toEqual(
            answers.map((_, i) => ({ ...allowed, ...(i === 99 ? tighter : minutely), remaining: String(99 - i) }))
          )
          const beyond = yield* ask
          const retryAfter = window === 9 ? String(3600 - 9 * 60) : "60"
          expect(limitsIn(beyond)).toEqual({ ...tighter, status: 429, remaining: "0", retryAfter })
          expect(beyond.body.error).toMatchObject({
            code: "RATE_LIMITED",
            details: window === 9 ? { window: "hour", limit: 1000 } : { window: "minute", limit: 100 }
          })
          expect(limitsIn(yield* api.call("GET", "/v1/webhooks", { key: yield* api.newKey() })).remaining).toBe("99")
          yield* TestClock.adjust("1 minute")
        }
        expect(limitsIn(yield* ask)).toMatchObject({ status: 429, limit: "1000", retryAfter: String(3600 - 10 * 60) })
        yield* TestClock.setTime(begin + hour)
        expect(limitsIn(yield* ask)).toMatchObject({ status: 200, limit: "100", remaining: "99" })
      })
      yield* serving(yield* makePlace())(test)
    }
  )
]
