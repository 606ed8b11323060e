import { describe, expect, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { LoopShare } from "../../src/Http/LoopShare.ts"

/** What happens to a share: time passes, of which the loop is idle for a part, and a request comes. */
const step = fc.record({
  passed: fc.double({ min: 0, max: 40, noNaN: true }),
  idle: fc.double({ min: 0, max: 1, noNaN: true }),
  owner: fc.constantFrom("a", "b", "c"),
  cost: fc.double({ min: 0.1, max: 20, noNaN: true })
})

const owners = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 60 })

/** Takes out all that wait, in the order of their turns. */
const rest = <A>(share: LoopShare<A>): ReadonlyArray<A | undefined> =>
  Array.from({ length: share.size }, () => share.next())

describe("the share of requests without a key", () => {
  it("is a quarter of any period, the idle time, a burst and the end of one request at most", () =>
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const share = new LoopShare<number>(0, 0)
        let [now, idle] = [0, 0]
        const runs: Array<{ readonly at: number; readonly idle: number; readonly cost: number }> = []
        const run = (owner: string, cost: number) => {
          share.spent(owner, cost)
          runs.push({ at: now, idle, cost })
        }
        for (const { cost, idle: part, owner, passed } of steps) {
          now += passed
          idle += passed * part
          while (share.size > 0 && share.mayRun(now, idle)) run("a", share.next() ?? 0)
          if (share.size === 0 && share.mayRun(now, idle)) {
            share.start(owner)
            run(owner, cost)
          } else share.add(owner, cost, now)
        }
        for (const [first, from] of runs.entries()) {
          let used = 0
          for (const { at, cost, idle: idleThen } of runs.slice(first)) {
            used += cost
            expect(used).toBeLessThanOrEqual(50 + 0.25 * (at - from.at) + (idleThen - from.idle) + 20)
          }
        }
      })
    ))

  it("is used up to that: nobody waits while there is time", () => {
    const share = new LoopShare<string>(0, 0)
    expect(share.mayRun(0, 0)).toBe(true)
    share.spent("a", 60)
    expect([share.mayRun(39, 0), share.due]).toEqual([false, 1])
    expect(share.mayRun(41, 0)).toBe(true)
    share.spent("a", 60)
    expect(share.mayRun(100, 0)).toBe(false)
    // The loop had nothing else to do.
    expect(share.mayRun(150, 50)).toBe(true)
  })

  it("gives everybody their turn, and nobody a second one before it", () =>
    fc.assert(
      fc.property(owners, owners, (before, after) => {
        const share = new LoopShare<string>(0, 0)
        for (const owner of [...before, "new", ...after]) share.add(owner, owner, 0)
        const order = rest(share)
        expect(order.toSorted()).toEqual([...before, "new", ...after].toSorted())
        const earlier = order.slice(0, order.indexOf("new"))
        expect(new Set(earlier).size).toBe(earlier.length)
      })
    ))

  it("goes by time, not by number", () => {
    const share = new LoopShare<string>(0, 0)
    share.start("dear")
    share.spent("dear", 9.5)
    for (let i = 0; i < 20; i++) {
      share.add("dear", "dear", 0)
      share.add("cheap", "cheap", 0)
    }
    expect(
      rest(share)
        .slice(0, 11)
        .filter((owner) => owner === "dear")
    ).toEqual([])
  })

  it("keeps so many waiting: the newest of whoever has most give way, and one who asks once is let in", () => {
    const share = new LoopShare<string>(0, 0, 30)
    const dropped: Array<string | undefined> = []
    for (let i = 0; i < 20; i++) {
      for (const owner of ["a", "b", "c"]) dropped.push(share.add(owner, `${owner} ${i}`, 0).dropped?.item)
    }
    expect(share.size).toBe(30)
    expect(dropped.slice(0, 30).every((one) => one === undefined)).toBe(true)
    expect(share.add("new", "new", 0).dropped?.item).toMatch(/^[abc] 9$/)
    expect(rest(share).slice(0, 4)).toContain("new")
  })

  it("refuses whoever has waited for five seconds, also by a clock that was set back, and holds nothing against them", () => {
    const share = new LoopShare<string>(0, 0)
    for (let i = 0; i < 100; i++) share.add("a", `a ${i}`, 1_000 + i)
    expect(share.expire(5_999, 200)).toEqual([])
    expect(share.expire(6_098, 90)).toHaveLength(90)
    expect(share.expire(6_098, 90)).toHaveLength(9)
    expect(share.expire(-4_000, 90)).toEqual(["a 99"])
    share.add("a", "a", 0)
    share.add("b", "b", 0)
    expect(rest(share)).toEqual(["a", "b"])
  })

  it("gives nothing away when the clock jumps", () => {
    const share = new LoopShare<string>(1_000, 1_000)
    share.spent("a", 60)
    expect(share.mayRun(0, 1_500)).toBe(false)
    expect(share.mayRun(0, 9_000)).toBe(false)
    expect(share.mayRun(41, 9_000)).toBe(true)
  })

  it("forgets one that went away", () => {
    const share = new LoopShare<string>(0, 0)
    const { added } = share.add("a", "a", 0)
    share.add("a", "b", 0)
    share.remove(added)
    share.remove(added)
    expect([share.size, share.expire(6_000, 90), share.size]).toEqual([1, ["b"], 0])
  })
})
