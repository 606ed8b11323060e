import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { afterAttempt } from "../../../src/Webhooks/queue/retryPolicy.ts"

const minute = 60_000
const hour = 60 * minute
const end = 1_800_000_000_000

it.each([
  [1, { status: "pending", nextAttemptAt: end + minute }],
  [2, { status: "pending", nextAttemptAt: end + 5 * minute }],
  [3, { status: "pending", nextAttemptAt: end + 30 * minute }],
  [4, { status: "pending", nextAttemptAt: end + 2 * hour }],
  [5, { status: "failed", nextAttemptAt: end + 24 * hour }],
  [6, { status: "failed", nextAttemptAt: undefined }]
])("after failed attempt %i", (attempts, state) => {
  expect(afterAttempt(attempts, 500, end)).toEqual(state)
  expect(afterAttempt(attempts, undefined, end)).toEqual(state)
})

it("a 2xx delivers at any attempt, and nothing else does", () => {
  void fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 200, max: 999 }), (attempts, status) => {
      const { status: delivered, nextAttemptAt } = afterAttempt(attempts, status, end)
      expect(delivered === "delivered").toBe(status <= 299)
      if (status <= 299) expect(nextAttemptAt).toBeUndefined()
    })
  )
})
