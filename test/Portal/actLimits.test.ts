import { expect, it } from "@effect/vitest"
import { AccountId, PersonId } from "../../src/Domain/Ids.ts"
import { Windows } from "../../src/lib/Windows.ts"
import { formLimits, limitsOf, signInLimits } from "../../src/Portal/Desk.ts"

const hour = 60 * 60_000
const start = 1_700_000_000_000
const person = (id: string, account?: string) => ({
  id: PersonId.make(id, true),
  account: account === undefined ? undefined : AccountId.make(account)
})

const sender = (limits: typeof formLimits) => {
  const acts = new Windows(hour)
  return (who: ReturnType<typeof person>, at: number, count: number) =>
    Array.from({ length: count }, () => acts.take(limitsOf("act", who, limits), at)).filter(Boolean).length
}

it("a person sends 600 forms an hour, whatever others do", () => {
  const sent = sender(formLimits)
  const [ann, ben] = [person("per_1", "shop"), person("per_2", "shop")]
  expect([sent(ann, start, 700), sent(ben, start, 700), sent(ann, start + hour - 1, 1)]).toEqual([600, 600, 0])
  expect(sent(ann, start + hour, 1)).toBe(1)
})

it("an account's people sign in 600 times an hour together, 30 times each, and operators at will", () => {
  const sent = sender(signInLimits)
  expect([sent(person("per_0", "shop"), start, 40), sent(person("per_0", "shop"), start + 1, 40)]).toEqual([30, 0])
  const all = Array.from({ length: 40 }, (_, n) => sent(person(`per_${n + 1}`, "shop"), start, 40))
  expect(all.reduce((sum, count) => sum + count)).toBe(570)
  expect(sent(person("per_x", "other"), start, 40)).toBe(30)
  expect(sent(person("per_root"), start, 2_000)).toBe(2_000)
})
