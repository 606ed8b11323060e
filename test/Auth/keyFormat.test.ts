import { expect, it } from "@effect/vitest"
import { Redacted } from "effect"
import { hashOf, isKey, newKey } from "../../src/Auth/keyFormat.ts"

const fresh = (mode: "live" | "test" = "test") => Redacted.value(newKey(mode))

it("a key has its mode's prefix and 256 random bits", () => {
  expect(fresh("live")).toMatch(/^svc_live_[0-9A-Za-z]{49}$/)
  expect(fresh("test")).toMatch(/^svc_test_[0-9A-Za-z]{49}$/)
  const keys = Array.from({ length: 200 }, () => fresh())
  expect(new Set(keys).size).toBe(200)
  for (const key of keys) expect(isKey(key)).toBe(true)
  // Every digit of the secret varies, except the first, of which 256 bits use a seventh.
  for (let i = 10; i < 52; i++) expect(new Set(keys.map((key) => key[i])).size, `digit ${i}`).toBeGreaterThan(30)
})

it("a key with one wrong, swapped, missing or added character is malformed", () => {
  const key = fresh()
  for (let i = 0; i < key.length; i++) {
    const other = key[i] === "x" ? "y" : "x"
    expect(isKey(key.slice(0, i) + other + key.slice(i + 1)), `character ${i}`).toBe(false)
    expect(isKey(key.slice(0, i) + key.slice(i + 1)), `without ${i}`).toBe(false)
    const [a, b] = [key[i], key[i + 1]]
    if (b !== undefined && a !== b)
      expect(isKey(key.slice(0, i) + b + a + key.slice(i + 2)), `swapped ${i}`).toBe(false)
  }
  for (const text of [
    "",
    `${key}x`,
    ` ${key}`,
    `${key}\n`,
    key.toUpperCase(),
    key.replace("test", "live"),
    "svc_test_"
  ]) {
    expect(isKey(text), text).toBe(false)
  }
})

it("the hash of a key is the SHA-256 of the whole key", () => {
  expect(hashOf("abc").toString("hex")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
})
