import { expect, it } from "vitest"
import { allOperations } from "../../src/Control/operations.ts"
import { actTexts } from "../../src/Portal/pages/Audit.tsx"

it("every operation that is in the audit log has its words there", () => {
  const acts = allOperations.filter(({ access }) => access === "administer").map(({ name }) => name)
  expect(acts.length).toBeGreaterThan(20)
  expect(acts.filter((act) => actTexts[act] === undefined)).toEqual([])
})
