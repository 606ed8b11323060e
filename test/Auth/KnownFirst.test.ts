import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { KnownFirst } from "../../src/Auth/KnownFirst.ts"

const drained = <A>(queue: KnownFirst<A>) => Array.from({ length: queue.size }, () => queue.next())

it("known people come before strangers, who have every eighth turn", () => {
  const queue = new KnownFirst<string>(20)
  for (const n of [1, 2, 3]) queue.add(`stranger ${n}`, false)
  for (let n = 1; n <= 14; n++) queue.add(`known ${n}`, true)
  const order = drained(queue)
  expect([1, 2, 3].map((n) => order.indexOf(`stranger ${n}`))).toEqual([7, 15, 16])
  expect([order[0], order[6], order[8], order[14]]).toEqual(["known 1", "known 7", "known 8", "known 14"])
  expect(queue.next()).toBeUndefined()
})

it("whatever comes and goes, each of the two has its bound, and what was added comes once or was removed", () => {
  const step = fc.constantFrom("known", "stranger", "next", "remove")
  void fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const queue = new KnownFirst<object>(4)
      const known = new Set<object>()
      const strangers = new Set<object>()
      for (const what of steps) {
        if (what === "known" || what === "stranger") {
          const mine = what === "known" ? known : strangers
          const item = {}
          expect(queue.add(item, what === "known")).toBe(mine.size < 4)
          if (mine.size < 4) mine.add(item)
        } else {
          const [oldest] = strangers
          const item = what === "next" ? queue.next() : oldest
          if (item === undefined) continue
          queue.remove(item)
          expect(known.delete(item) || strangers.delete(item)).toBe(true)
        }
        expect(new Set(queue)).toEqual(new Set([...known, ...strangers]))
      }
      expect(drained(queue).length).toBe(known.size + strangers.size)
    })
  )
})
