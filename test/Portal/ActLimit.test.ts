import { expect, it } from "@effect/vitest"
import { AccountId, PersonId } from "../../src/Domain/Ids.ts"
import { ActLimit, formLimits, signInLimits } from "../../src/Portal/Desk.ts"

const minute = 60_000
const start = 1_700_000_000_000
const person = (id: string, account?: string) => ({
  id: PersonId.make(id, true),
  account: account === undefined ? undefined : AccountId.make(account)
})

const sender = (limit: ActLimit) => (who: ReturnType<typeof person>, at: number, count: number) =>
  Array.from({ length: count }, () => {
    const until = limit.refusedUntil(who, at)
    if (until === undefined) limit.count(who, at)
    return until
  }).filter((until) => until === undefined).length

it("a person sends 60 forms a minute and 600 an hour, whatever others do", () => {
  const forms = new ActLimit(formLimits)
  const sent = sender(forms)
  const [ann, ben] = [person("per_1", "shop"), person("per_2", "shop")]
  expect(sent(ann, start, 70)).toBe(60)
  expect(sent(ben, start, 70)).toBe(60)
  expect(forms.refusedUntil(ann, start)).toBe(start + minute)
  for (let n = 1; n < 10; n++) expect(sent(ann, start + n * minute, 70)).toBe(60)
  expect(forms.refusedUntil(ann, start + 10 * minute)).toBe(start + 60 * minute)
  expect(sent(ann, start + 60 * minute, 1)).toBe(1)
})

it("an account's people sign in 600 times an hour together, 30 times each, and operators at will", () => {
  const sent = sender(new ActLimit(signInLimits))
  let all = 0
  for (let minutes = 0; minutes < 10; minutes++)
    for (let n = 0; n < 30; n++) all += sent(person(`per_${n}`, "shop"), start + minutes * minute, 40)
  expect(all).toBe(600)
  expect(sent(person("per_x", "other"), start, 40)).toBe(10)
  expect(sent(person("per_x", "other"), start + minute, 40)).toBe(10)
  expect(sent(person("per_x", "other"), start + 2 * minute, 40)).toBe(10)
  expect(sent(person("per_x", "other"), start + 3 * minute, 40)).toBe(0)
  expect(sent(person("per_root"), start, 2_000)).toBe(2_000)
})
