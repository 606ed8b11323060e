import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect, TestContext } from "effect"
import { type Case, titleOf } from "./Case.ts"
import { keys } from "./cases/keys.ts"
import { lists } from "./cases/list.ts"
import { payment } from "./cases/payment.ts"
import { quotes } from "./cases/quote.ts"
import { service } from "./cases/service.ts"
import { Retries, time } from "./cases/time.ts"
import { webhooks } from "./cases/webhooks.ts"
import { Shop } from "./Shop.ts"
import { statementsOf } from "./statements.ts"

/** Labels of what the tests of this file are about. */
const tested = new Set<string>()

/** The title of a test that is being declared. */
const declared = <R>(one: Case<R>): string => {
  for (const label of one.covers) tested.add(label)
  return titleOf(one)
}

layer(Retries.layer, { excludeTestServices: true })("in process, on a clock of the test's own", (it) => {
  for (const one of time) it.scoped(declared(one), () => Effect.provide(one.test, TestContext.TestContext))
})

layer(Shop.layer, { excludeTestServices: true })("on a running daemon", (it) => {
  const cases = [...service, ...payment, ...lists, ...quotes, ...keys, ...webhooks]
  for (const one of cases) it.scoped(declared(one), () => one.test, { concurrent: true })
})

describe("SPEC.md", () => {
  const markdown = readFileSync(new URL("SPEC.md", import.meta.url), "utf8")

  it("is the one that these tests were written for: a changed value leaves a label as it was", () => {
    const digest = createHash("sha256").update(markdown).digest("hex")
    expect(digest).toBe("4845b6b42d86b2a1f0068774ccad5aba776784372cfba9da46bb143d89378b76")
  })
  const labelsOf = (text: string) => statementsOf(text).map(({ label }) => label)
  const untested = (text: string) => labelsOf(text).filter((label) => !tested.has(label))

  it("says nothing that has no test", () => expect(untested(markdown)).toEqual([]))

  it("says everything that a test is about, once", () => {
    const labels = labelsOf(markdown)
    expect([...tested].filter((label) => !labels.includes(label))).toEqual([])
    expect(labels.length).toBe(new Set(labels).size)
  })

  it.each([
    ["a row", "| secret | string | yes |", "| priority | number | no | x |\n| secret | string | yes |", "4.5 priority"],
    ["a retry", "| 5 | 24 hours |", "| 5 | 24 hours |\n| 6 | 48 hours |", "6.2.3 retry 6"],
    ["an item", "7. Incoming webhook", "7. Keys rotate.\n8. Incoming webhook", "5.8"],
    ["a sentence", "Response: a Payment object.", "Response: a Payment object. It may be old.", '4.3 "It may be old"'],
    ["a second sentence", "server-side code only.", "server-side code only. They expire.", '5.6 "They expire"'],
    [
      "a section",
      "## 9. Versioning",
      "## 10. Refunds\n\nThere are refunds.\n\n## 9. Versioning",
      '10 "There are refunds"'
    ]
  ])("shows when it says more: %s", (_, before, after, label) => {
    expect(markdown.split(before)).toHaveLength(2)
    expect(untested(markdown.replace(before, after))).toEqual([label])
  })
})
