import { describe, expect, it } from "@effect/vitest"
import type { LaneSlot } from "../../../src/Webhooks/queue/AccountLanes.ts"
import { Lanes } from "../../../src/Webhooks/queue/DeliveryLanes.ts"

const shop = "shop"
const limits = { concurrency: 64, perLane: 8 }

/** Lanes with so many deliveries each, all of them due. */
const lanesOf = (targets: ReadonlyArray<string>, each: number, slow = false) => {
  const lanes = new Lanes(limits)
  let sequence = 0
  for (const target of targets) {
    const places = Array.from({ length: each }, () => ({ sequence: ++sequence, nextAttemptAt: 0, isRedelivery: false }))
    lanes.fill(lanes.of(shop).open(target, slow), places, each, 0)
  }
  return lanes
}

/** Takes all slots that are to be had. */
const takeAll = (lanes: Lanes): ReadonlyArray<LaneSlot> => {
  const slots: Array<LaneSlot> = []
  for (let slot = lanes.next(); slot !== undefined; slot = lanes.next()) slots.push(slot)
  return slots
}

const named = (count: number) => Array.from({ length: count }, (_, i) => `lane ${i}`)

describe("a lane's slots", () => {
  it("are one in probation, and all of its own after its first quick answer: eight backlogs fill all slots", () => {
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

  it("come back with the second quick answer after a slow one", () => {
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
    for (let i = 0; i < 100; i++) {
      const places = [{ sequence: 5_000 + i, nextAttemptAt: 0, isRedelivery: false }]
      lanes.fill(lanes.of(shop).open(`slow ${i}`, true), places, 1, 0)
    }
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
    expect(lanes.of(shop).open("shop", false).waiting).toEqual([])
    const places = [7, 8, 9].map((sequence) => ({ sequence, nextAttemptAt: 0, isRedelivery: false }))
    for (const lane of lanes.all) lanes.fill(lane, places, 3, 0)
    expect(takeAll(lanes)).toHaveLength(3)
  })
})

describe("all slots together", () => {
  it("lanes in probation have at most half, slow lanes at most half, and a quarter is always left", () => {
    expect(takeAll(lanesOf(named(100), 1))).toHaveLength(32)
    expect(takeAll(lanesOf(named(100), 10, true))).toHaveLength(32)
    const lanes = lanesOf(named(100), 10, true)
    takeAll(lanes)
    for (let i = 0; i < 100; i++) {
      lanes.fill(
        lanes.of(shop).open(`new ${i}`, false),
        [{ sequence: 5_000 + i, nextAttemptAt: 0, isRedelivery: false }],
        1,
        0
      )
    }
    const [first, ...others] = takeAll(lanes)
    expect(others).toHaveLength(15)
    if (first === undefined) return expect.unreachable()
    lanes.ended(first, false)
    const more = [6_000, 6_001].map((sequence) => ({ sequence, nextAttemptAt: 0, isRedelivery: false }))
    lanes.fill(first.lane, more, 2, 0)
    // One takes the slot that became free, and two belong to the lane that is healthy now.
    expect(
      takeAll(lanes)
        .map(({ standing }) => standing)
        .toSorted()
    ).toEqual(["healthy", "healthy", "probation"])
  })

  it("hold with one slot too", () => {
    const lanes = new Lanes({ concurrency: 1, perLane: 1 })
    for (const slow of [true, false]) {
      const places = [{ sequence: slow ? 1 : 2, nextAttemptAt: 0, isRedelivery: false }]
      lanes.fill(lanes.of(shop).open(`slow ${slow}`, slow), places, 1, 0)
    }
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
  const place = (sequence: number, isRedelivery = true) => ({ sequence, nextAttemptAt: 0, isRedelivery })
  const redeliveries = Array.from({ length: 100 }, (_, i) => place(i + 1))
  lanes.fill(lane, redeliveries.slice(0, 33), 33, 0)
  expect(takeAll(lanes)).toMatchObject([{ sequence: 1 }])
  expect([lane.waiting.length, lane.running, lanes.wants(lane, 0)]).toEqual([7, 1, true])
  lanes.wake()
  lanes.fill(lane, [place(101, false), ...redeliveries].slice(0, lanes.window(lane)), lanes.window(lane), 0)
  expect(lane.waiting.map(({ sequence }) => sequence)).toEqual([101, 2, 3, 4, 5, 6, 7, 8, 9])
  // Nor are they forgotten: what was left is there to be looked at.
  expect([lane.more, lanes.wants(lane, 0)]).toEqual([true, true])
})

describe("accounts", () => {
  /** An account's lanes, with so many deliveries each, added to `lanes`. */
  const add = (lanes: Lanes, account: string, targets: ReadonlyArray<string>, each: number) => {
    for (const target of targets) {
      const places = Array.from({ length: each }, () => ({
        sequence: ++sequence,
        nextAttemptAt: 0,
        isRedelivery: false
      }))
      lanes.fill(lanes.of(account).open(target, false), places, each, 0)
    }
  }
  let sequence = 0
  const of = (slots: ReadonlyArray<LaneSlot>, account: string) => slots.filter(({ lane }) => lane.account === account)

  it("however many receivers of other accounts hang, an account has slots for new and for healthy receivers", () => {
    const lanes = new Lanes(limits)
    for (let i = 0; i < 25; i++) add(lanes, `hostile ${i}`, named(99), 3)
    const hung = takeAll(lanes)
    // All that there are to share, and the reserve of the others.
    expect(hung.length).toBeLessThan(64 + 25 * 8)
    add(lanes, shop, ["new 1", "new 2"], 30)
    const first = takeAll(lanes)
    expect(of(first, shop)).toHaveLength(2)
    expect(first).toHaveLength(2)
    for (const slot of first) lanes.ended(slot, false)
    expect(of(takeAll(lanes), shop)).toHaveLength(8)
  })

  it("an account without attempts gets one slot beyond the ceiling, and no more", () => {
    const lanes = new Lanes({ concurrency: 4, perLane: 2 })
    for (let i = 0; i < 40; i++) add(lanes, `hostile ${i}`, named(9), 3)
    takeAll(lanes)
    expect(lanes.running).toBeGreaterThanOrEqual(4 * 4)
    add(lanes, shop, ["one", "other"], 30)
    const [first, ...others] = takeAll(lanes)
    expect([first?.lane.account, others]).toEqual([shop, []])
    if (first !== undefined) lanes.ended(first, false)
    expect(of(takeAll(lanes), shop)).toHaveLength(1)
  })

  it("share free slots: the account with the fewest attempts is next, and accounts with equally many take turns", () => {
    const lanes = new Lanes({ concurrency: 8, perLane: 2 })
    add(lanes, "large", named(8), 30)
    for (const slot of takeAll(lanes)) lanes.ended(slot, false)
    expect(takeAll(lanes)).toHaveLength(8)
    for (const account of ["a", "b"]) add(lanes, account, ["target"], 30)
    const turns = [lanes.next(), lanes.next(), lanes.next()]
    expect(turns.map((slot) => slot?.lane.account)).toEqual(["a", "b", undefined])
    for (const slot of turns) if (slot !== undefined) lanes.ended(slot, false)
    expect(takeAll(lanes).map(({ lane }) => lane.account)).toEqual(["a", "b", "a", "b"])
  })
})
