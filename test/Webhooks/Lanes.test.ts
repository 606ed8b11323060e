import { describe, expect, it } from "@effect/vitest"
import { Lanes, type Slot } from "../../src/Webhooks/Lanes.ts"

const limits = { concurrency: 64, perLane: 8 }

/** Lanes with so many deliveries each, all of them due. */
const lanesOf = (targets: ReadonlyArray<string>, each: number, slow = false) => {
  const lanes = new Lanes(limits)
  let sequence = 0
  for (const target of targets) {
    const places = Array.from({ length: each }, () => ({ sequence: ++sequence, nextAttemptAt: 0, isRedelivery: false }))
    lanes.fill(lanes.open(target, slow), places, each, 0)
  }
  return lanes
}

/** Takes all slots that are to be had. */
const takeAll = (lanes: Lanes): ReadonlyArray<Slot> => {
  const slots: Array<Slot> = []
  for (let slot = lanes.next(); slot !== undefined; slot = lanes.next()) slots.push(slot)
  return slots
}

const named = (count: number) => Array.from({ length: count }, (_, i) => `lane ${i}`)

describe("a lane's slots", () => {
  it("are one until its first quick answer, and all of its own from then on: eight backlogs fill all slots", () => {
    const lanes = lanesOf(named(8), 30)
    const first = takeAll(lanes)
    expect(first).toHaveLength(8)
    for (const slot of first) lanes.ended(slot, false)
    expect(takeAll(lanes)).toHaveLength(64)
  })

  it("are not more after an attempt that was not made", () => {
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

  it("are its own still when nothing of it was in memory meanwhile", () => {
    const lanes = lanesOf(["shop"], 1)
    for (const slot of takeAll(lanes)) {
      lanes.ended(slot, false)
      lanes.recorded(slot)
    }
    lanes.prune()
    expect([lanes.size, lanes.provenOutside]).toEqual([0, ["shop"]])
    expect(lanes.open("shop", false).waiting).toEqual([])
    const places = [7, 8, 9].map((sequence) => ({ sequence, nextAttemptAt: 0, isRedelivery: false }))
    for (const lane of lanes.all) lanes.fill(lane, places, 3, 0)
    expect(takeAll(lanes)).toHaveLength(3)
  })
})

describe("all slots together", () => {
  it("half of them are for new lanes, half for slow ones, and a quarter is always left", () => {
    expect(takeAll(lanesOf(named(100), 1))).toHaveLength(32)
    expect(takeAll(lanesOf(named(100), 10, true))).toHaveLength(32)
    const lanes = lanesOf(named(100), 10, true)
    takeAll(lanes)
    for (let i = 0; i < 100; i++) {
      lanes.fill(lanes.open(`new ${i}`, false), [{ sequence: 5_000 + i, nextAttemptAt: 0, isRedelivery: false }], 1, 0)
    }
    const [first, ...others] = takeAll(lanes)
    expect(others).toHaveLength(15)
    if (first === undefined) return expect.unreachable()
    lanes.ended(first, false)
    const more = [6_000, 6_001].map((sequence) => ({ sequence, nextAttemptAt: 0, isRedelivery: false }))
    lanes.fill(first.lane, more, 2, 0)
    // One takes the place that became free, and two are the proven one's.
    expect(
      takeAll(lanes)
        .map(({ standing }) => standing)
        .toSorted()
    ).toEqual(["proven", "proven", "unproven"])
  })

  it("hold with one slot too", () => {
    const lanes = new Lanes({ concurrency: 1, perLane: 1 })
    for (const slow of [true, false]) {
      const places = [{ sequence: slow ? 1 : 2, nextAttemptAt: 0, isRedelivery: false }]
      lanes.fill(lanes.open(`slow ${slow}`, slow), places, 1, 0)
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
  const lane = lanes.open("shop", false)
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
