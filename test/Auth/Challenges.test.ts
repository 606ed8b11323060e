import { expect, it } from "@effect/vitest"
import { Challenges } from "../../src/Auth/Challenges.ts"

it("a challenge is answered once, within five minutes, for the purpose that it was made for", () => {
  const challenges = new Challenges()
  const one = challenges.issue("sign in", 0)
  expect(one).toMatch(/^[\w-]{43}$/)
  expect(challenges.take(one, "ses_1", 1)).toBe(false)
  expect(challenges.take(one, "sign in", 299_999)).toBe(true)
  expect(challenges.take(one, "sign in", 299_999)).toBe(false)
  expect(challenges.take(challenges.issue("sign in", 0), "sign in", 300_000)).toBe(false)
  expect(challenges.take("x".repeat(43), "sign in", 0)).toBe(false)
})

it("whoever asks for challenges without end takes no more memory than ten thousand", () => {
  const challenges = new Challenges()
  const first = challenges.issue("sign in", 0)
  const issued = Array.from({ length: 10_000 }, () => challenges.issue("sign in", 0))
  expect(challenges.take(first, "sign in", 0)).toBe(false)
  expect(issued.every((challenge) => challenges.take(challenge, "sign in", 0))).toBe(true)
})
