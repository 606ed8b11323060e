import { describe, expect, it } from "@effect/vitest"
import type { LaneSlot } from "../../../src/Webhooks/queue/DeliveryLanes.ts"
import { Lanes } from "../../../src/Webhooks/queue/DeliveryLanes.ts"

const shop = "shop"
const limits = { concurrency: 64, perLane: 8 }

let sequence = 0
const place = (isRedelivery = false) => ({ sequence: ++sequence, nextAttemptAt: 0, isRedelivery })
const places = (count: number, isRedelivery = false) => Array.from({ length: count }, () => place(isRedelivery))

/** Adds lanes of an account with so many deliveries each, all of them due. */
const add = (lanes: Lanes, targets: ReadonlyArray<string>, each: number, account = shop, slow = false) => {
  for (const target of targets) lanes.fill(lanes.of(account).open(target, slow), places(each), each, 0)
}

const lanesOf = (targets: ReadonlyArray<string>, each: number, slow = false) => {
  const lanes = new Lanes(limits)
  add(lanes, targets, each, shop, slow)
  return lanes
}

/** Takes all slots that are to be had. */
const takeAll = (lanes: Lanes): ReadonlyArray<LaneSlot> => {
  const slots: Array<LaneSlot> = []
  for (let slot = lanes.next(); slot !== undefined; slot = lanes.next()) slots.push(slot)
  return slots
}

const named = (count: number, prefix = "lane") => Array.from({ length: count }, (_, i) => `${prefix} ${i}`)

describe("a lane's slots", () => {
  it("are one in probation, and its full share after its first quick response: eight backlogs fill all slots", () => {
    const lanes = lanesOf(named(8), 30)
    const first = takeAll(lanes)
    expect(first).toHaveLength(8)
    for (const slot of first) lanes.ended(slot, false)
    expect(takeAll(lanes)).toHaveLength(64)
  })

  it("do not increase after an attempt that was not made", () => {
    const lanes = lanesOf(["new"], 30)
    for (const slot of takeAll(lanes)) lanes.ended(slot, undefined)
    expect(takeAll(lanes)).toHaveLength(1)
  })

  it("are restored with the second quick response after a slow one", () => {
    const lanes = lanesOf(["slow"], 30, true)
    const [first, second, ...others] = takeAll(lanes)
    if (first === undefined || second === undefined) return expect.unreachable()
    expect(others).toHaveLength(6)
    for (const slot of others) lanes.ended(slot, undefined)
    lanes.ended(first, false)
    expect(takeAll(lanes)).toEqual([])
    lanes.ended(second, false)
    const all = takeAll(lanes)
    expect(all).toHaveLength(8)
    // A slow answer takes them away at once.
    for (const slot of all) lanes.ended(slot, true)
    expect(takeAll(lanes).map(({ standing }) => standing)).toEqual(Array(8).fill("slow"))
  })

  it("count until they end against the share that they were taken from, whatever its standing is meanwhile", () => {
    const lanes = lanesOf(["fast"], 30)
    for (const slot of takeAll(lanes)) lanes.ended(slot, false)
    const healthy = takeAll(lanes)
    expect(healthy.map(({ standing }) => standing)).toEqual(Array(8).fill("healthy"))
    // The first of them makes the lane slow.
    for (const slot of healthy) lanes.ended(slot, true)
    add(lanes, named(100, "slow"), 1, shop, true)
    expect(takeAll(lanes)).toHaveLength(32)
  })

  it("stay its own when it had no deliveries in memory meanwhile", () => {
    const lanes = lanesOf(["shop"], 1)
    for (const slot of takeAll(lanes)) {
      lanes.ended(slot, false)
      lanes.recorded(slot)
    }
    lanes.prune()
    expect([lanes.of(shop).size, lanes.of(shop).healthyOutside]).toEqual([0, ["shop"]])
    add(lanes, ["shop"], 3)
    expect(takeAll(lanes)).toHaveLength(3)
  })
})

describe("all slots together", () => {
  it("lanes in probation have at most half, slow lanes at most half, and a quarter is always left", () => {
    expect(takeAll(lanesOf(named(100), 1))).toHaveLength(32)
    expect(takeAll(lanesOf(named(100), 10, true))).toHaveLength(32)
    const lanes = lanesOf(named(100), 10, true)
    takeAll(lanes)
    add(lanes, named(100, "new"), 1)
    const [first, ...others] = takeAll(lanes)
    expect(others).toHaveLength(15)
    if (first === undefined) return expect.unreachable()
    lanes.ended(first, false)
    lanes.fill(first.lane, places(2), 2, 0)
    // One takes the slot that became free, and two belong to the lane that is healthy now.
    expect(
      takeAll(lanes)
        .map(({ standing }) => standing)
        .toSorted()
    ).toEqual(["healthy", "healthy", "probation"])
  })

  it("hold with one slot too", () => {
    const lanes = new Lanes({ concurrency: 1, perLane: 1 })
    add(lanes, ["slow"], 1, shop, true)
    add(lanes, ["new"], 1)
    const [slot, ...others] = takeAll(lanes)
    expect(others).toEqual([])
    if (slot === undefined) return expect.unreachable()
    lanes.ended(slot, true)
    expect(takeAll(lanes)).toHaveLength(1)
  })
})

it("a new event goes before redeliveries, however many of them wait", () => {
  const lanes = new Lanes(limits)
  const lane = lanes.of(shop).open("shop", false)
  const redeliveries = places(100, true)
  const [first] = redeliveries
  lanes.fill(lane, redeliveries.slice(0, 33), 33, 0)
  expect(takeAll(lanes)).toMatchObject([{ sequence: first?.sequence }])
  expect([lane.waiting.length, lane.running, lanes.wants(lane, 0)]).toEqual([7, 1, true])
  lanes.wake()
  const fresh = place()
  lanes.fill(lane, [fresh, ...redeliveries].slice(0, lanes.window(lane)), lanes.window(lane), 0)
  expect(lane.waiting).toEqual([fresh, ...redeliveries.slice(1, 9)])
  // Nor are they forgotten: what was left is there to be looked at.
  expect([lane.more, lanes.wants(lane, 0)]).toEqual([true, true])
})

describe("accounts", () => {
  const of = (slots: ReadonlyArray<LaneSlot>, account: string) => slots.filter(({ lane }) => lane.account === account)

  it("however many receivers of other accounts hang, an account has slots for new and for healthy receivers", () => {
    const lanes = new Lanes(limits)
    for (let i = 0; i < 25; i++) add(lanes, named(99), 3, `hostile ${i}`)
    const hung = takeAll(lanes)
    // All that there are to share, and the reserve of the others.
    expect(hung.length).toBeLessThan(64 + 25 * 8)
    add(lanes, ["new 1", "new 2"], 30)
    const first = takeAll(lanes)
    expect(of(first, shop)).toHaveLength(2)
    expect(first).toHaveLength(2)
    for (const slot of first) lanes.ended(slot, false)
    expect(of(takeAll(lanes), shop)).toHaveLength(8)
  })

  it("an account without attempts gets one slot beyond the ceiling, and no more", () => {
    const lanes = new Lanes({ concurrency: 4, perLane: 2 })
    for (let i = 0; i < 40; i++) add(lanes, named(9), 3, `hostile ${i}`)
    takeAll(lanes)
    expect(lanes.running).toBeGreaterThanOrEqual(4 * 4)
    add(lanes, ["one", "other"], 30)
    const [first, ...others] = takeAll(lanes)
    expect([first?.lane.account, others]).toEqual([shop, []])
    if (first !== undefined) lanes.ended(first, false)
    expect(of(takeAll(lanes), shop)).toHaveLength(1)
  })

  it("share free slots: the account with the fewest attempts is next, and accounts with equally many take turns", () => {
    const lanes = new Lanes({ concurrency: 8, perLane: 2 })
    add(lanes, named(8), 30, "large")
    for (const slot of takeAll(lanes)) lanes.ended(slot, false)
    expect(takeAll(lanes)).toHaveLength(8)
    for (const account of ["a", "b"]) add(lanes, ["target"], 30, account)
    const turns = [lanes.next(), lanes.next(), lanes.next()]
    expect(turns.map((slot) => slot?.lane.account)).toEqual(["a", "b", undefined])
    for (const slot of turns) if (slot !== undefined) lanes.ended(slot, false)
    expect(takeAll(lanes).map(({ lane }) => lane.account)).toEqual(["a", "b", "a", "b"])
  })
})
