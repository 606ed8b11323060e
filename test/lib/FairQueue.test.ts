import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { FairQueue } from "../../src/lib/FairQueue.ts"

const filled = (total: number, ...owners: ReadonlyArray<string>) => {
  const queue = new FairQueue<string>(total)
  owners.forEach((owner, n) => {
    queue.add(owner, `${owner}${n}`)
  })
  return queue
}

const drained = (queue: FairQueue<string>) => Array.from({ length: queue.size }, () => queue.next())

it("owners take turns", () => {
  const queue = filled(9, "a", "a", "a", "b", "c", "c")
  expect(drained(queue)).toEqual(["a0", "b3", "c4", "a1", "c5", "a2"])
  expect([queue.next(), queue.size]).toEqual([undefined, 0])
})

it("in a full queue the client with the most entries loses its newest, and adds nothing more", () => {
  const queue = filled(4, "a", "a", "a", "b")
  expect([queue.hasRoomFor("a"), queue.hasRoomFor("b"), queue.hasRoomFor("c")]).toEqual([false, true, true])
  expect(queue.add("c", "c4")).toBe("a2")
  expect([queue.hasRoomFor("b"), queue.hasRoomFor("c")]).toEqual([true, true])
  expect(queue.add("b", "b5")).toBe("a1")
  expect(drained(queue)).toEqual(["a0", "b3", "c4", "b5"])
})

it("a newcomer gets in even if everyone else has a single one", () => {
  const queue = filled(2, "a", "b")
  expect([queue.hasRoomFor("a"), queue.hasRoomFor("c")]).toEqual([false, true])
  expect(queue.add("c", "c2")).toBe("a0")
})

it("a removed entry makes room, and is removed once", () => {
  const queue = filled(2, "a", "a")
  expect(queue.hasRoomFor("a")).toBe(false)
  expect([queue.remove("a", "a0"), queue.remove("a", "a0"), queue.remove("b", "a1")]).toEqual([true, false, false])
  expect([queue.hasRoomFor("a"), queue.size, queue.countOf("a")]).toEqual([true, 1, 1])
})

it("whatever is added and removed, it stays within its limits, and a newcomer gets in", () => {
  const step = fc.oneof(fc.constantFrom("a", "b", "c", "d", "e"), fc.constant(undefined))
  void fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new FairQueue<object>(6)
      for (const owner of steps) {
        if (owner === undefined) queue.next()
        else if (queue.hasRoomFor(owner)) queue.add(owner, {})
        expect(queue.size).toBeLessThanOrEqual(6)
        expect(queue.hasRoomFor("newcomer")).toBe(true)
      }
      const counts = ["a", "b", "c", "d", "e"].map((owner) => queue.countOf(owner))
      expect(counts.reduce((sum, count) => sum + count)).toBe(queue.size)
    })
  )
})
