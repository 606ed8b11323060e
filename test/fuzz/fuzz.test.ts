import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fuzz } from "./fuzz.ts"

const seed = 1

// `npm run test:fuzz` sends more, of a new seed each time.
it.live(
  "1,300 requests, most of them wrong: every answer is one of the document's, and none is a failure of the server",
  () =>
    Effect.gen(function* () {
      const { answers, faults, memory } = yield* fuzz(seed, 1_300)
      const reports = faults.map(
        ({ answer, at, problems, request }) => `request ${at}: ${problems}\n${request}\n${answer}`
      )
      expect(reports).toEqual([])
      // The responses that the requests must reach, or they test nothing.
      const met = [...answers.keys()]
      for (const name of [
        "POST /v1/payments 201",
        "POST /v1/quotes 201",
        "POST /v1/webhooks 201",
        "GET /v1/payments 200",
        "GET /v1/payments/{id} 200",
        "GET /v1/webhooks 200",
        "GET /v1/exceptions 200",
        "POST /v1/exceptions/{id}/resolve 200",
        "DELETE /v1/webhooks/{id} 200"
      ]) {
        expect(met).toContain(name)
      }
      const statuses = new Set(met.map((name) => name.slice(-3)))
      expect([...statuses].sort()).toEqual(
        expect.arrayContaining(["400", "401", "403", "404", "405", "413", "415", "422", "429", "431"])
      )
      expect(Number.isNaN(memory.after) || memory.after - memory.before < 128).toBe(true)
    })
)
