import { expect, it } from "@effect/vitest"
import { FormLimit } from "../../src/Portal/formLimit.ts"

const minute = 60_000
const start = 1_700_000_000_000

it("a person sends 60 forms a minute and 600 an hour, whatever others do", () => {
  const forms = new FormLimit()
  const sent = (person: string, at: number, count: number) =>
    Array.from({ length: count }, () => forms.refusedUntil(person, at)).filter((until) => until === undefined).length
  expect(sent("per_1", start, 70)).toBe(60)
  expect(sent("per_2", start, 70)).toBe(60)
  expect(forms.refusedUntil("per_1", start)).toBe(start + minute)
  for (let n = 1; n < 10; n++) expect(sent("per_1", start + n * minute, 70)).toBe(60)
  expect(forms.refusedUntil("per_1", start + 10 * minute)).toBe(start + 60 * minute)
  expect(sent("per_1", start + 60 * minute, 1)).toBe(1)
})
