import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type Claimant, knownPerson, PasswordQueue, strangerAt } from "../../src/Auth/passwordHash.ts"
import { AccountId, PersonId } from "../../src/Domain/Ids.ts"
import { networkOf, wideNetworkOf } from "../../src/Http/clientAddress.ts"

/** Turns that anyone has to wait for. */
const most = 30

const person = (name: string, account?: string) => ({
  id: PersonId.make(`per_${name.padEnd(22, "x")}`),
  account: account === undefined ? undefined : AccountId.make(account)
})

const ada = knownPerson(person("ada"), "192.0.2.1")
const at = (address: string) => strangerAt(networkOf(address), wideNetworkOf(address))

/** The names of the admitted claimants, in order. */
const admitted = (queue: PasswordQueue<string>, claimants: ReadonlyArray<readonly [string, Claimant]>) =>
  claimants.flatMap(([name, claimant]) => {
    if (queue.refusal(claimant, most) !== undefined) return []
    queue.add(claimant, name)
    return [name]
  })

const drained = (queue: PasswordQueue<string>) => Array.from({ length: queue.size }, () => queue.next())

/** Strangers at `size` addresses, each in a separate network. */
const crowd = (size: number) =>
  Array.from({ length: size }, (_, n) => [`stranger ${n}`, at(`10.${n >> 8}.${n & 255}.1`)] as const)

it("everyone who is let in is served, and no one who comes later", () => {
  const queue = new PasswordQueue<string>()
  const first = admitted(queue, crowd(300))
  expect(first).toHaveLength(most)
  expect(admitted(queue, crowd(300))).toEqual([])
  expect(drained(queue)).toEqual(first)
})

it("a person at a known network gets in whatever strangers do, and is next", () => {
  const queue = new PasswordQueue<string>()
  admitted(queue, crowd(300))
  expect(admitted(queue, [["ada", ada]])).toEqual(["ada"])
  expect(queue.next()).toBe("ada")
})

it("strangers get one turn in eight, however many known people wait", () => {
  const queue = new PasswordQueue<string>()
  const known = Array.from({ length: 12 }, (_, n) => [`ada ${n}`, knownPerson(person(`${n}`), "10.0.0.1")] as const)
  admitted(queue, [...crowd(2), ...known])
  const order = drained(queue)
  expect([order.indexOf("stranger 0"), order.indexOf("stranger 1")]).toEqual([7, 13])
})

it("three hundred addresses of two networks count as two", () => {
  const queue = new PasswordQueue<string>()
  const few = Array.from({ length: 300 }, (_, n) => [`few ${n}`, at(`10.0.${n & 1}.${n >> 1}`)] as const)
  const six = Array.from({ length: 300 }, (_, n) => [`six ${n}`, at(`2001:db8:1:${n.toString(16)}::1`)] as const)
  for (const _ of [1, 2, 3]) admitted(queue, [...few, ...six])
  const others = crowd(12).map(([name], n) => [name, at(`172.16.${n}.1`)] as const)
  expect(admitted(queue, others)).toHaveLength(12)
  expect(admitted(queue, [["another", at("2001:db8:2::1")]])).toEqual(["another"])
  // The three networks have three of each round's turns.
  expect(
    drained(queue)
      .slice(0, 16)
      .filter((name) => /few|six/.test(name ?? ""))
  ).toHaveLength(3)
})

it("at most four attempts of one network wait", () => {
  const queue = new PasswordQueue<string>()
  const same = Array.from({ length: 9 }, (_, n) => [`same ${n}`, at(`2001:db8::${n}`)] as const)
  expect(admitted(queue, same)).toHaveLength(4)
  expect(queue.refusal(at("2001:db8::9"), most)).toBe("theirs")
})

it("an account, however many people it invites, delays another account by one turn", () => {
  const queue = new PasswordQueue<string>()
  const crew = Array.from(
    { length: 200 },
    (_, n) => [`crew ${n}`, knownPerson(person(`${n}`, "shop"), "10.0.0.1")] as const
  )
  expect(admitted(queue, crew)).toHaveLength(most)
  expect(admitted(queue, [["ada", ada]])).toEqual(["ada"])
  expect(drained(queue).indexOf("ada")).toBe(1)
})

it("attempts at one place leave room for the same person elsewhere", () => {
  const queue = new PasswordQueue<string>()
  const here = Array.from({ length: 20 }, (_, n) => [`here ${n}`, ada] as const)
  expect(admitted(queue, here)).toHaveLength(4)
  expect(queue.refusal(ada, most)).toBe("theirs")
  expect(admitted(queue, [["there", knownPerson(person("ada"), "198.51.100.7")]])).toEqual(["there"])
})

it("whatever comes and goes, all that is let in is served once, within its bounds, and who is known waits for few", () => {
  const claimants = [
    ...crowd(120).map(([, claimant]) => claimant),
    ...["a", "b", "c"].flatMap((account) =>
      [1, 2, 3].map((n) => knownPerson(person(`${account}${n}`, account), "10.0.0.1"))
    )
  ]
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.nat(claimants.length - 1) },
    { weight: 2, arbitrary: fc.constant("next" as const) },
    { weight: 1, arbitrary: fc.constant("leave" as const) }
  )
  void fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const queue = new PasswordQueue<number>()
      const waiting = new Map<number, () => void>()
      let turn = 0
      const served = () => {
        const item = queue.next()
        expect(item === undefined ? waiting.size : waiting.delete(item)).toBe(item === undefined ? 0 : true)
      }
      for (const what of steps) {
        turn += 1
        if (what === "next") served()
        else if (what === "leave") {
          const [gone] = waiting
          if (gone === undefined) continue
          // Twice: it is out already.
          for (const _ of [1, 2]) gone[1]()
          waiting.delete(gone[0])
        } else {
          const claimant = claimants[what]
          if (claimant !== undefined && queue.refusal(claimant, most) === undefined) {
            waiting.set(turn, queue.add(claimant, turn))
          }
        }
        expect(queue.size).toBe(waiting.size)
        expect(queue.size).toBeLessThanOrEqual(4 * most)
        expect(queue.refusal(ada, most)).toBeUndefined()
      }
      // Of three other accounts each has one turn before hers, and strangers one of four.
      waiting.set(0, queue.add(ada, 0))
      for (let waited = 0; waiting.has(0); waited++) {
        expect(waited).toBeLessThanOrEqual(5)
        served()
      }
      while (waiting.size > 0) served()
      expect(queue.next()).toBeUndefined()
    })
  )
})
