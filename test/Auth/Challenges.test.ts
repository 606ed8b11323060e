import { expect, it } from "@effect/vitest"
import { Challenges } from "../../src/Auth/passkeys.ts"

it("a challenge is answered once, within five minutes, for the purpose that it was created for", () => {
  const challenges = new Challenges()
  const one = challenges.issue("sign in", 0)
  expect(challenges.answer(one, "ses_1", 1)).toBe(false)
  expect(challenges.isOpen(one, "sign in", 299_999)).toBe(true)
  expect(challenges.answer(one, "sign in", 299_999)).toBe(true)
  expect(challenges.isOpen(one, "sign in", 299_999)).toBe(false)
  expect(challenges.answer(one, "sign in", 299_999)).toBe(false)
  expect(challenges.answer(challenges.issue("sign in", 0), "sign in", 300_000)).toBe(false)
})

it("a text that this process did not create is not a challenge", () => {
  const challenges = new Challenges()
  const foreign = new Challenges().issue("sign in", 0)
  const own = challenges.issue("sign in", 0)
  const changed = `${own.startsWith("A") ? "B" : "A"}${own.slice(1)}`
  for (const text of ["", "x".repeat(43), foreign, changed, `${own}x`]) {
    expect(challenges.isOpen(text, "sign in", 0), text).toBe(false)
  }
})

it("a client that asks for endless challenges evicts no one else's, and another spelling is not a second answer", () => {
  const challenges = new Challenges()
  const proof = challenges.issue("ses_1", 0)
  for (let n = 0; n < 20_000; n++) challenges.issue("sign in", 0)
  expect(challenges.answer(proof, "ses_1", 0)).toBe(true)
  expect(challenges.answer(`${proof}=`, "ses_1", 0)).toBe(false)
})
