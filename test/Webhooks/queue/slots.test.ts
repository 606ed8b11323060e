import { describe, expect, it } from "@effect/vitest"
import type { DueDelivery } from "../../../src/Webhooks/queue/DeliveriesRepo.ts"
import { type Slot, type SlotLimits, Slots } from "../../../src/Webhooks/queue/slots.ts"

const shop = "shop"
const never = Number.POSITIVE_INFINITY

/** Slots beside a queue in memory. */
const queueOf = (limits: SlotLimits = { concurrency: 64, perLane: 8 }) => {
  const slots = new Slots(limits)
  const accounts = new Map<string, Array<{ target: string; slow: boolean }>>()
  const left = new Map<string, number>()
  let sequence = 0

  /** Adds targets of an account with so many deliveries each, all of them due. */
  const add = (targets: ReadonlyArray<string>, each: number, account = shop, slow = false) => {
    const due = accounts.get(account) ?? []
    due.push(...targets.map((target) => ({ target, slow })))
    accounts.set(account, due)
    for (const target of targets) left.set(`${account} ${target}`, each)
    slots.due([account])
  }

  /** Takes the next slot; undefined when none is to be had. */
  const take = (): Slot | undefined => {
    for (let account = slots.next(); account !== undefined; account = slots.next()) {
      account.due ??= accounts.get(account.name) ?? []
      const lane = slots.choose(account, 0)
      if (lane === undefined) continue
      const key = `${account.name} ${lane.target}`
      const waiting = left.get(key) ?? 0
      if (waiting === 0) {
        lane.nextAt = never
        continue
      }
      left.set(key, waiting - 1)
      return slots.begin(lane, { sequence: ++sequence } as DueDelivery)
    }
    return undefined
  }

  const takeAll = (): ReadonlyArray<Slot> => {
    const taken: Array<Slot> = []
    for (let slot = take(); slot !== undefined; slot = take()) taken.push(slot)
    return taken
  }

  return { add, slots, take, takeAll }
}

const named = (count: number, prefix = "target") => Array.from({ length: count }, (_, i) => `${prefix} ${i}`)

describe("a target's slots", () => {
  it("are one in probation, and its full share after its first quick response: eight backlogs fill all slots", () => {
    const { add, slots, takeAll } = queueOf()
    add(named(8), 30)
    const first = takeAll()
    expect(first).toHaveLength(8)
    for (const slot of first) slots.ended(slot, false)
    expect(takeAll()).toHaveLength(64)
  })

  it("are restored with the second quick response after a slow one", () => {
    const { add, slots, takeAll } = queueOf()
    add(["slow"], 30, shop, true)
    const all = takeAll()
    expect(all.map(({ standing }) => standing)).toEqual(Array(8).fill("slow"))
    for (const slot of all.slice(2)) slots.ended(slot, true)
    const [first, second, ...again] = [...all.slice(0, 2), ...takeAll()]
    if (first === undefined || second === undefined) return expect.unreachable()
    expect(again).toHaveLength(6)
    slots.ended(first, false)
    expect(takeAll()).toEqual([])
    slots.ended(second, false)
    const healthy = takeAll()
    expect(healthy.map(({ standing }) => standing)).toEqual(["healthy", "healthy"])
    // A slow answer takes them away at once.
    for (const slot of healthy) slots.ended(slot, true)
    expect(takeAll().map(({ standing }) => standing)).toEqual(["slow", "slow"])
  })

  it("count until they end against the share that they were taken from, whatever its standing is meanwhile", () => {
    const { add, slots, takeAll } = queueOf()
    add(["fast"], 30)
    for (const slot of takeAll()) slots.ended(slot, false)
    const healthy = takeAll()
    expect(healthy.map(({ standing }) => standing)).toEqual(Array(8).fill("healthy"))
    // The first of them makes the target slow.
    for (const slot of healthy) slots.ended(slot, true)
    add(named(100, "slow"), 1, shop, true)
    expect(takeAll()).toHaveLength(32)
  })

  it("stay its own when it had no attempts meanwhile", () => {
    const { add, slots, takeAll } = queueOf()
    add(["shop"], 1)
    for (const slot of takeAll()) {
      slots.ended(slot, false)
      slots.stored(slot.lane, slot.delivery.sequence)
    }
    expect(takeAll()).toEqual([])
    slots.release(0)
    add(["shop"], 3)
    expect(takeAll().map(({ standing }) => standing)).toEqual(Array(3).fill("healthy"))
  })
})

describe("all slots together", () => {
  it("targets in probation have at most half, slow targets at most half, and a quarter is always left", () => {
    const fresh = queueOf()
    fresh.add(named(100), 1)
    expect(fresh.takeAll()).toHaveLength(32)
    const { add, slots, takeAll } = queueOf()
    add(named(100), 10, shop, true)
    expect(takeAll()).toHaveLength(32)
    add(named(100, "new"), 3)
    const [first, ...others] = takeAll()
    expect(others).toHaveLength(15)
    if (first === undefined) return expect.unreachable()
    slots.ended(first, false)
    // One takes the slot that became free, and two belong to the target that is healthy now.
    const standings = takeAll().map(({ standing }) => standing)
    expect(standings.toSorted()).toEqual(["healthy", "healthy", "probation"])
  })

  it("hold with one slot too", () => {
    const { add, slots, takeAll } = queueOf({ concurrency: 1, perLane: 1 })
    add(["slow"], 1, shop, true)
    add(["new"], 1)
    const [slot, ...others] = takeAll()
    expect(others).toEqual([])
    if (slot === undefined) return expect.unreachable()
    slots.ended(slot, true)
    expect(takeAll()).toHaveLength(1)
  })

  it("go to the target with the fewest attempts, and of these to the one that has waited longest", () => {
    const { add, slots, take } = queueOf({ concurrency: 2, perLane: 2 })
    add(["a", "b", "c"], 9)
    const first = take()
    if (first === undefined) return expect.unreachable()
    slots.ended(first, false)
    const turns = [take(), take()]
    expect([first, ...turns].map((slot) => slot?.lane.target)).toEqual(["a", "a", "b"])
    for (const slot of turns) if (slot !== undefined) slots.ended(slot, false)
    expect([take(), take()].map((slot) => slot?.lane.target)).toEqual(["a", "b"])
  })
})

describe("accounts", () => {
  const of = (slots: ReadonlyArray<Slot>, account: string) => slots.filter(({ lane }) => lane.account.name === account)

  it("however many receivers of other accounts hang, an account has slots for new and for healthy receivers", () => {
    const { add, slots, takeAll } = queueOf()
    for (let i = 0; i < 25; i++) add(named(99), 3, `hostile ${i}`)
    // All that there are to share, and the reserve of the others.
    expect(takeAll().length).toBeLessThan(64 + 25 * 8)
    add(["new 1", "new 2"], 30)
    const first = takeAll()
    expect([first.length, of(first, shop).length]).toEqual([2, 2])
    for (const slot of first) slots.ended(slot, false)
    expect(of(takeAll(), shop)).toHaveLength(8)
  })

  it("an account without attempts gets one slot beyond the ceiling, and no more", () => {
    const { add, slots, takeAll } = queueOf({ concurrency: 4, perLane: 2 })
    for (let i = 0; i < 40; i++) add(named(9), 3, `hostile ${i}`)
    takeAll()
    expect(slots.running).toBeGreaterThanOrEqual(4 * 4)
    add(["one", "other"], 30)
    const [first, ...others] = takeAll()
    expect([first?.lane.account.name, others]).toEqual([shop, []])
    if (first !== undefined) slots.ended(first, false)
    expect(of(takeAll(), shop)).toHaveLength(1)
  })

  it("share free slots: the account with the fewest attempts is next, and accounts with equally many take turns", () => {
    const { add, slots, take, takeAll } = queueOf({ concurrency: 8, perLane: 2 })
    add(named(8), 30, "large")
    for (const slot of takeAll()) slots.ended(slot, false)
    expect(takeAll()).toHaveLength(8)
    for (const account of ["a", "b"]) add(["target"], 30, account)
    const turns = [take(), take(), take()]
    expect(turns.map((slot) => slot?.lane.account.name)).toEqual(["a", "b", undefined])
    for (const slot of turns) if (slot !== undefined) slots.ended(slot, false)
    expect(takeAll().map(({ lane }) => lane.account.name)).toEqual(["a", "b", "a", "b"])
  })

  it("that had nothing to begin are asked again once something is due or has ended, or they may have more slots", () => {
    const { add, slots, takeAll } = queueOf({ concurrency: 4, perLane: 1 })
    add(["one", "other"], 1, "neighbour")
    const neighbours = takeAll()
    expect(neighbours).toHaveLength(2)
    add(["hangs 1", "hangs 2", "hangs 3"], 1)
    const begun = () => takeAll().map(({ lane }) => lane.target)
    // Half of the two slots that the neighbour leaves.
    expect([begun(), slots.next()]).toEqual([["hangs 1"], undefined])
    for (const slot of neighbours) slots.ended(slot, false)
    expect([begun(), slots.next()]).toEqual([["hangs 2"], undefined])
    slots.due(["neighbour"])
    expect(slots.next()?.name).toBe("neighbour")
    expect([begun(), slots.next()]).toEqual([[], undefined])
  })

  it("have the slots back that new connections reserved, once the clock is set back", () => {
    const { add, slots, takeAll } = queueOf({ concurrency: 2, perLane: 2 })
    add(["a"], 30)
    for (let i = 0; i < 3; i++) for (const slot of takeAll()) slots.ended(slot, false, 100_000)
    expect(takeAll()).toEqual([])
    slots.release(99_000)
    expect(takeAll()).toHaveLength(2)
  })

  it("are asked again at the end of an attempt of theirs", () => {
    const { add, slots, takeAll } = queueOf({ concurrency: 2, perLane: 1 })
    add(["hangs 1", "hangs 2"], 1)
    const [first] = takeAll()
    expect(slots.next()).toBeUndefined()
    if (first !== undefined) slots.ended(first, true)
    expect(takeAll().map(({ lane }) => lane.target)).toEqual(["hangs 2"])
  })
})
