import { describe, expect, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { LoopShare, type Sharer } from "../../src/Http/LoopShare.ts"

/** What happens to a share: time passes, of which the loop is idle for a part, and a request comes. */
const step = fc.record({
  passed: fc.double({ min: 0, max: 40, noNaN: true }),
  idle: fc.double({ min: 0, max: 1, noNaN: true }),
  owner: fc.constantFrom("a", "b", "c"),
  cost: fc.double({ min: 0.1, max: 20, noNaN: true })
})

const stranger = (name: string): Sharer => ({ name, weight: 1 })

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
          share.spent(stranger(owner), cost)
          runs.push({ at: now, idle, cost })
        }
        for (const { cost, idle: part, owner, passed } of steps) {
          now += passed
          idle += passed * part
          while (share.size > 0 && share.mayRun(now, idle)) run("a", share.next() ?? 0)
          if (share.size === 0 && share.mayRun(now, idle)) {
            share.start(stranger(owner))
            run(owner, cost)
          } else share.add(stranger(owner), cost, now)
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

  it("is used up to that: no client waits while there is time", () => {
    const share = new LoopShare<string>(0, 0)
    expect(share.mayRun(0, 0)).toBe(true)
    share.spent(stranger("a"), 60)
    expect([share.mayRun(39, 0), share.due]).toEqual([false, 1])
    expect(share.mayRun(41, 0)).toBe(true)
    share.spent(stranger("a"), 60)
    expect(share.mayRun(100, 0)).toBe(false)
    // The loop had nothing else to do.
    expect(share.mayRun(150, 50)).toBe(true)
  })

  it("lets no known client wait for what strangers have used up, until it has had its own part", () => {
    const known: Sharer = { name: "known", weight: 100 }
    const share = new LoopShare<string>(0, 0)
    share.start(stranger("a"))
    share.spent(stranger("a"), 30_000)
    expect(share.mayRun(1, 0, stranger("b"))).toBe(false)
    expect(share.mayRun(1, 0, known)).toBe(true)
    share.add(stranger("b"), "of a stranger", 1)
    expect(share.mayRun(1, 0)).toBe(false)
    share.add(known, "of somebody known", 1)
    expect(share.mayRun(1, 0)).toBe(true)
    expect(share.next()).toBe("of somebody known")
    expect(share.mayRun(1, 0)).toBe(false)
    // Other sessions of theirs have no more.
    share.spent(known, 60)
    share.add({ name: "another", weight: 100 }, "again", 1)
    expect([share.mayRun(1, 0), share.mayRun(38, 0)]).toEqual([false, false])
    expect(share.mayRun(42, 0)).toBe(true)
    // A head start of 10 ms, a hundred times.
    share.spent(known, 1_000)
    share.next()
    share.add(known, "once more", 42)
    expect(share.mayRun(60_000, 0)).toBe(false)
  })

  it("gives every client its turn, and none a second one before it", () =>
    fc.assert(
      fc.property(owners, owners, (before, after) => {
        const share = new LoopShare<string>(0, 0)
        for (const owner of [...before, "new", ...after]) share.add(stranger(owner), owner, 0)
        const order = rest(share)
        expect(order.toSorted()).toEqual([...before, "new", ...after].toSorted())
        const earlier = order.slice(0, order.indexOf("new"))
        expect(new Set(earlier).size).toBe(earlier.length)
      })
    ))

  it("goes by time, not by number", () => {
    const share = new LoopShare<string>(0, 0)
    share.start(stranger("dear"))
    share.spent(stranger("dear"), 9.5)
    for (let i = 0; i < 20; i++) {
      share.add(stranger("dear"), "dear", 0)
      share.add(stranger("cheap"), "cheap", 0)
    }
    expect(
      rest(share)
        .slice(0, 11)
        .filter((owner) => owner === "dear")
    ).toEqual([])
  })

  it("lets the requests that make up a page come before the many of others", () => {
    const share = new LoopShare<string>(0, 0)
    for (let i = 0; i < 50; i++) {
      for (const owner of ["a", "b", "c"]) share.add(stranger(owner), owner, 0)
    }
    for (let i = 0; i < 60; i++) share.next()
    for (let i = 0; i < 5; i++) share.add(stranger("new"), "new", 0)
    expect(
      rest(share)
        .slice(0, 9)
        .filter((owner) => owner === "new")
    ).toHaveLength(5)
  })

  it("is by weight: a known client goes on while hundreds of strangers ask for all they get", () => {
    const share = new LoopShare<string>(0, 0)
    const known = { name: "known", weight: 100 }
    const served: Array<string | undefined> = []
    for (let i = 0; i < 300; i++) for (let j = 0; j < 13; j++) share.add(stranger(`${i}`), `${i}`, 0)
    for (let round = 0; round < 20; round++) {
      share.add(known, "known", 0)
      for (let i = 0; i < 4; i++) {
        const owner = share.next()
        served.push(owner)
        if (owner !== undefined) share.spent(owner === "known" ? known : stranger(owner), 20)
      }
    }
    expect(served.filter((owner) => owner === "known")).toHaveLength(20)
  })

  it("keeps so many waiting: the newest of the client with the most give way, and one that asks once is let in", () => {
    const share = new LoopShare<string>(0, 0, 30)
    const dropped: Array<string | undefined> = []
    for (let i = 0; i < 20; i++) {
      for (const owner of ["a", "b", "c"]) dropped.push(share.add(stranger(owner), `${owner} ${i}`, 0).dropped?.item)
    }
    expect(share.size).toBe(30)
    expect(dropped.slice(0, 30).every((one) => one === undefined)).toBe(true)
    expect(share.add(stranger("new"), "new", 0).dropped?.item).toMatch(/^[abc] 9$/)
    expect(rest(share).slice(0, 4)).toContain("new")
  })

  it("refuses a client that has waited for five seconds, also by a clock that was set back, and does not penalize it", () => {
    const share = new LoopShare<string>(0, 0)
    for (let i = 0; i < 100; i++) share.add(stranger("a"), `a ${i}`, 1_000 + i)
    expect(share.expire(5_999, 200)).toEqual([])
    expect(share.expire(6_098, 90)).toHaveLength(90)
    expect(share.expire(6_098, 90)).toHaveLength(9)
    expect(share.expire(-4_000, 90)).toEqual(["a 99"])
    share.add(stranger("a"), "a", 0)
    share.add(stranger("b"), "b", 0)
    expect(rest(share)).toEqual(["a", "b"])
  })

  it("gives nothing away when the clock jumps", () => {
    const share = new LoopShare<string>(1_000, 1_000)
    share.spent(stranger("a"), 60)
    expect(share.mayRun(0, 1_500)).toBe(false)
    expect(share.mayRun(0, 9_000)).toBe(false)
    expect(share.mayRun(41, 9_000)).toBe(true)
  })

  it("forgets one that went away", () => {
    const share = new LoopShare<string>(0, 0)
    const { added } = share.add(stranger("a"), "a", 0)
    share.add(stranger("a"), "b", 0)
    share.remove(added)
    share.remove(added)
    expect([share.size, share.expire(6_000, 90), share.size]).toEqual([1, ["b"], 0])
  })
})
