import { expect, it } from "@effect/vitest"
import { FairQueue } from "../../src/Http/FairQueue.ts"

const filled = (...owners: ReadonlyArray<string>) => {
  const queue = new FairQueue<string>()
  owners.forEach((owner, n) => {
    queue.add(owner, `${owner}${n}`)
  })
  return queue
}

const drained = (queue: FairQueue<string>) => {
  const items: Array<string | undefined> = []
  while (!queue.isEmpty) items.push(queue.next())
  return items
}

it("owners take turns", () => {
  const queue = filled("a", "a", "a", "b", "c", "c")
  expect(drained(queue)).toEqual(["a0", "b3", "c4", "a1", "c5", "a2"])
  expect(queue.next()).toBeUndefined()
})

it("what was removed does not come", () => {
  const queue = filled("a", "a", "b", "c")
  for (const [owner, item] of [
    ["a", "a0"],
    ["a", "a0"],
    ["b", "b2"],
    ["b", "a1"]
  ] as const)
    queue.remove(owner, item)
  expect(drained(queue)).toEqual(["a1", "c3"])
})
