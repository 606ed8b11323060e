import { Socket } from "node:net"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Connection, Connections, Room } from "../../src/Http/connections.ts"

const most = 6

interface Modelled {
  since: number
  busy: number
  served: boolean
}

const steps = fc.array(
  fc.tuple(fc.constantFrom("admit", "admit", "heard", "began", "began", "held", "ended", "closed"), fc.nat(99)),
  // By default no array has more than a dozen, and they would hardly fill the table.
  { maxLength: 200, size: "max" }
)

/** All within the limit; undefined where none was admitted. */
const opened = (connections: Connections, count: number): ReadonlyArray<Connection | undefined> =>
  Array.from({ length: count }, () => connections.admit(new Socket()))

const admitted = (connections: Connections): Connection => {
  const connection = connections.admit(new Socket())
  if (connection === undefined) throw new Error("all are worked on")
  return connection
}

const isOpen = ({ socket }: Connection) => !socket.destroyed

describe("connections", () => {
  it("stay within the limit: the one that has waited longest makes room, of those without a reply first", () =>
    fc.assert(
      fc.property(steps, (taken) => {
        const connections = new Connections(most)
        const model = new Map<Connection, Modelled>()
        let time = 0
        for (const [step, pick] of taken) {
          if (step === "admit") {
            const waiting = [...model].filter(([, { busy }]) => busy === 0)
            const [loser] = waiting.sort(([, a], [, b]) => Number(a.served) - Number(b.served) || a.since - b.since)
            const isFull = model.size === most
            const connection = connections.admit(new Socket())
            expect(connection === undefined).toBe(isFull && loser === undefined)
            if (connection === undefined) continue
            if (isFull && loser !== undefined) {
              expect(isOpen(loser[0])).toBe(false)
              model.delete(loser[0])
            }
            model.set(connection, { since: time++, busy: 0, served: false })
          } else {
            const [connection, one] = [...model][pick % Math.max(1, model.size)] ?? []
            if (connection === undefined || one === undefined) continue
            if (step === "closed") {
              model.delete(connection)
              connections.closed(connection)
              continue
            }
            if (step === "began") one.busy += 1
            if (one.busy > 0 && (step === "held" || step === "ended")) one.busy -= 1
            if (step === "ended") one.served = true
            one.since = time++
            Object.assign(connection, { busy: one.busy, isServed: one.served })
            connections.place(connection)
          }
          expect([...model.keys()].every(isOpen)).toBe(true)
        }
      }),
      { numRuns: 500 }
    ))

  it("that were served are closed last, however many others are opened", () => {
    const connections = new Connections(100)
    const served = admitted(connections)
    served.isServed = true
    connections.place(served)
    expect(opened(connections, 2_000)).not.toContain(undefined)
    expect(isOpen(served)).toBe(true)
  })

  it("that are new are not closed for the next before they can ask, where all others were served", () => {
    const connections = new Connections(80)
    for (const one of opened(connections, 80)) {
      if (one === undefined) throw new Error("there is room")
      one.isServed = true
      connections.place(one)
    }
    const fresh = Array.from({ length: 10 }, () => admitted(connections))
    expect(fresh.every(isOpen)).toBe(true)
    opened(connections, 5)
    expect(fresh.findIndex(isOpen)).toBe(4)
  })

  it("that are new are closed where all others are worked on, also when they are few", () => {
    const connections = new Connections(80)
    for (let i = 0; i < 75; i++) {
      const one = admitted(connections)
      one.busy = 1
      connections.place(one)
    }
    const [first] = Array.from({ length: 5 }, () => admitted(connections))
    admitted(connections)
    expect(first && isOpen(first)).toBe(false)
  })

  it("whose request is held back may be replaced, also when its body has arrived meanwhile", () => {
    const connections = new Connections(1)
    const one = admitted(connections)
    // Held back, and then arrived whole.
    for (const busy of [-1, 0]) {
      one.busy = busy
      connections.place(one)
    }
    const two = admitted(connections)
    expect(isOpen(one)).toBe(false)
    two.busy = 1
    connections.place(two)
    expect(opened(connections, 1)).toEqual([undefined])
  })

  it("end what waits for them once, also where another one takes their place", () => {
    const connections = new Connections(1)
    const one = admitted(connections)
    let ended = 0
    const end = () => {
      if (one.onClose.delete(end)) ended += 1
    }
    one.onClose.add(end)
    opened(connections, 1)
    connections.closed(one)
    expect([ended, connections.of(one.socket)]).toEqual([1, undefined])
  })

  it("get 512 small pieces of bodies for each reply", () => {
    const one = admitted(new Connections(1))
    one.heard()
    for (let i = 0; i < 512; i++) expect(one.piece(i % 128)).toBe(true)
    one.heard()
    expect([one.piece(128), one.piece(127)]).toEqual([true, false])
    one.replied()
    expect([one.piece(1), one.unanswered]).toEqual([true, 1])
  })
})

/** Takes byte by byte, until there is no room or `most` are taken. */
const fill = (room: Room, client: string, most = Number.POSITIVE_INFINITY, piece = 1) => {
  let bytes = 0
  while (bytes < most && room.take(client, piece)) bytes += piece
  return bytes
}

it("however many clients take room, some is left for the body of another one", () => {
  const body = 64 * 1024
  const room = new Room(32 * 1024 * 1024)
  const taken = Array.from({ length: 100 }, (_, client) => fill(room, `198.51.100.${client}`, 3 * body, 1024))
  expect(Math.max(...taken)).toBe(3 * body)
  expect(fill(room, "192.0.2.1", body, 1024)).toBe(body)
  room.giveBack("192.0.2.1", body)
  expect(fill(room, "192.0.2.1", body, 1024)).toBe(body)
})

it("however much clients take, an ordinary body of another one has room", () => {
  const room = new Room(32 * 1024 * 1024)
  for (let client = 0; client < 1_000; client++) fill(room, `198.51.${client}`, Number.POSITIVE_INFINITY, 1024)
  expect(fill(room, "192.0.2.1", 16 * 1024)).toBe(16 * 1024)
  expect(fill(room, "192.0.2.1")).toBe(0)
})

it("one client has an eighth of what is free, and what is given back is free again", () => {
  const room = new Room(800)
  // What it has itself is not free: an eighth of 712, and a byte.
  expect(fill(room, "one")).toBe(89)
  expect(fill(room, "two")).toBe(79)
  room.giveBack("one", 40)
  expect(fill(room, "one")).toBe(31)
  room.giveBack("one", 80)
  room.giveBack("two", 79)
  expect(fill(room, "three")).toBe(89)
})
