import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Connections } from "../../src/Http/connections.ts"
import { BodyRoom } from "../../src/Http/requests.ts"

const limits = {
  total: 8,
  perClient: 3,
  unreadPerClient: 10,
  isProxy: (address: string) => address === "10.0.0.1"
}
const addresses = [
  "192.0.2.1",
  "::ffff:192.0.2.1",
  "192.0.2.2",
  "2001:db8::1",
  "2001:db8::2",
  "2001:db8:0:1::1",
  "10.0.0.1"
]
/** Groups the addresses by client. */
const clients = [0, 0, 1, 2, 2, 3, 4]
const proxy = 4

interface Modelled {
  readonly client: number
  since: number
  working: number
  held: number
  sent: number
}

const isWaiting = ({ held, sent, working }: Modelled) => working === held + sent

interface ModelledClient {
  readonly first: number
  served: boolean
}

interface ModelledEvent {
  readonly isPossible?: (one: Modelled) => boolean
  readonly change?: (one: Modelled) => void
}

/** What happens to an open connection. */
type EventName = "heard" | "began" | "held" | "released" | "sent" | "answered"

const events: Readonly<Record<EventName, ModelledEvent>> = {
  heard: {},
  began: { change: (one) => one.working++ },
  held: { isPossible: (one) => !isWaiting(one), change: (one) => one.held++ },
  released: { isPossible: ({ held }) => held > 0, change: (one) => one.held-- },
  sent: { isPossible: (one) => !isWaiting(one), change: (one) => one.sent++ },
  answered: {
    isPossible: ({ sent }) => sent > 0,
    change: (one) => {
      one.working -= 1
      one.sent -= 1
    }
  }
}

/** A naive model of the limits, which checks all connections each time. */
class Model {
  readonly open = new Map<number, Modelled>()
  readonly #clients = new Map<number, ModelledClient>()
  #time = 0

  #ownOf(client: number) {
    return [...this.open].filter(([, one]) => one.client === client)
  }

  /** Forgets the clients that have no connection. */
  #forget() {
    for (const client of this.#clients.keys()) if (this.#ownOf(client).length === 0) this.#clients.delete(client)
  }

  isAtLimit(client: number): boolean {
    return client !== proxy && this.#ownOf(client).length >= limits.perClient
  }

  /** Of the clients with a connection that waits the one with most, of those with as many one not yet served, then the oldest. */
  #greediest() {
    const greedOf = ([client, { served }]: readonly [number, ModelledClient]) =>
      (client === proxy ? 0 : this.#ownOf(client).length) * 2 + (served ? 0 : 1)
    const all = [...this.#clients].filter(([client]) => this.#ownOf(client).some(([, one]) => isWaiting(one)))
    return all.sort((a, b) => greedOf(b) - greedOf(a) || a[1].first - b[1].first)[0]?.[0]
  }

  admit(connection: number, client: number) {
    this.#forget()
    const isAtLimit = this.isAtLimit(client)
    let evicted: number | undefined
    if (isAtLimit || this.open.size >= limits.total) {
      const loser = isAtLimit ? client : this.#greediest()
      const [longest] = this.#ownOf(loser ?? -1)
        .filter(([, one]) => isWaiting(one))
        .sort(([, a], [, b]) => a.since - b.since)
      if (longest === undefined) return { admitted: false }
      evicted = longest[0]
      this.open.delete(evicted)
    }
    const served = this.#clients.get(client)?.served ?? false
    if (evicted !== undefined) this.#forget()
    this.#clients.set(client, this.#clients.get(client) ?? { first: this.#time, served })
    this.open.set(connection, { client, since: this.#time++, working: 0, held: 0, sent: 0 })
    return { admitted: true, evicted }
  }

  /** Whether an event of the connection was possible, which is done then. */
  happens(step: EventName, connection: number) {
    const one = this.open.get(connection)
    const { change, isPossible = () => true } = events[step]
    if (one === undefined || !isPossible(one)) return false
    change?.(one)
    if (step === "answered") this.#serve(one)
    if (isWaiting(one)) one.since = this.#time++
    return true
  }

  #serve({ client }: Modelled) {
    const served = this.#clients.get(client)
    if (served !== undefined) served.served = true
  }
}

const steps = fc.array(
  fc.tuple(
    fc.constantFrom(
      ...(["admit", "admit", "heard", "began", "began", "held", "held", "released"] as const),
      ...(["sent", "sent", "answered", "closed"] as const)
    ),
    fc.nat(99)
  ),
  { maxLength: 200 }
)

/** A connection with a request that was answered. */
const served = (connections: Connections<string>, connection: string, address: string) => {
  connections.admit(connection, address)
  connections.began(connection)
  connections.sent(connection)
  connections.answered(connection)
}

describe("connections", () => {
  it("stay within the limits, and those that have waited longest of the client with the most are evicted", () =>
    fc.assert(
      fc.property(steps, (taken) => {
        const connections = new Connections<number>(limits)
        const model = new Model()
        for (const [at, [step, pick]] of taken.entries()) {
          if (step === "admit") {
            const which = pick % addresses.length
            expect(connections.admit(at, addresses[which] ?? "")).toEqual(model.admit(at, clients[which] ?? 0))
          } else {
            const connection = [...model.open.keys()][pick % Math.max(1, model.open.size)] ?? -1
            if (step === "closed") {
              if (model.open.delete(connection)) connections.closed(connection)
            } else if (model.happens(step, connection)) connections[step](connection)
          }
          for (const [connection, { held, working }] of model.open) {
            expect([connections.working(connection), connections.isHeld(connection)]).toEqual([working, held > 0])
          }
        }
      }),
      { numRuns: 500 }
    ))

  it("of a client that was served stay, however many connections others open", () => {
    const connections = new Connections<string>({ ...limits, total: 100, perClient: 20 })
    const honest = ["idle", "upload"]
    served(connections, "idle", "192.0.2.1")
    connections.admit("upload", "192.0.2.1")
    const evicted = Array.from({ length: 2_000 }, (_, i) => {
      const admission = connections.admit(`flood ${i}`, `198.51.100.${i % 16}`)
      return admission.admitted ? admission.evicted : "refused"
    })
    expect(evicted.filter((one) => one !== undefined && honest.includes(one))).toEqual([])
    expect(evicted).not.toContain("refused")
  })

  it("of a client that was served are evicted last where everyone has one", () => {
    const connections = new Connections<string>({ ...limits, total: 3 })
    served(connections, "served", "192.0.2.1")
    const evicted = ["a", "b", "c", "d"].map((one, i) => connections.admit(one, `198.51.100.${i}`))
    const expected = [undefined, undefined, "a", "b"]
    expect(evicted.map((admission) => admission.admitted && admission.evicted)).toEqual(expected)
  })

  it("of a client that has few are not closed for one that has more", () => {
    const connections = new Connections<string>({ ...limits, total: 4, perClient: 8 })
    connections.admit("idle", "192.0.2.1")
    for (const one of ["a", "b", "c"]) {
      connections.admit(one, "198.51.100.1")
      connections.began(one)
    }
    expect(connections.admit("d", "198.51.100.1")).toEqual({ admitted: false })
    // A newcomer has fewer.
    expect(connections.admit("new", "192.0.2.2")).toEqual({ admitted: true, evicted: "idle" })
  })

  it("whose request is held back may be replaced, also when its body has arrived meanwhile", () => {
    const connections = new Connections<string>({ ...limits, total: 1 })
    connections.admit("one", "192.0.2.1")
    connections.held("one")
    connections.began("one")
    expect(connections.admit("two", "192.0.2.2")).toEqual({ admitted: true, evicted: "one" })
    connections.held("two")
    connections.began("two")
    connections.released("two")
    expect(connections.admit("three", "192.0.2.3")).toEqual({ admitted: false })
  })

  it("whose reply was handed over may be replaced while another one is not worked on", () => {
    const connections = new Connections<string>({ ...limits, total: 1 })
    connections.admit("one", "192.0.2.1")
    connections.began("one")
    connections.began("one")
    connections.sent("one")
    expect(connections.admit("two", "192.0.2.2")).toEqual({ admitted: false })
    connections.sent("one")
    expect(connections.working("one")).toBe(2)
    expect(connections.admit("two", "192.0.2.2")).toEqual({ admitted: true, evicted: "one" })
  })

  it("get 512 small pieces of bodies for each reply", () => {
    const connections = new Connections<string>(limits)
    connections.admit("one", "192.0.2.1")
    connections.heard("one")
    for (let i = 0; i < 512; i++) expect(connections.piece("one", i % 128)).toBe(true)
    connections.heard("one")
    expect([connections.piece("one", 128), connections.piece("one", 127)]).toEqual([true, false])
    connections.replied("one")
    expect([connections.piece("one", 1), connections.unanswered("one")]).toEqual([true, 1])
  })

  it("of a client with too many unread bytes are reported, until it reads some or closes some", () => {
    const connections = new Connections<string>(limits)
    connections.admit("one", "192.0.2.1")
    connections.admit("two", "192.0.2.1")
    expect(connections.unread("one", 10)).toBe(true)
    expect(connections.unread("two", 99)).toBe(true)
    expect(connections.unread("one", 1)).toBe(false)
    connections.admit("other", "192.0.2.2")
    expect(connections.unread("other", 11)).toBe(true)
    connections.taken("two", 99)
    connections.taken("one", 1)
    expect(connections.unread("two", 7)).toBe(true)
    expect(connections.unread("two", 7)).toBe(false)
    connections.closed("two")
    expect(connections.unread("one", 1)).toBe(true)
    connections.taken("two", 14)
    expect(connections.unread("one", 1)).toBe(false)
    connections.admit("proxy", "10.0.0.1")
    connections.unread("proxy", 1_000)
    expect(connections.unread("proxy", 1_000)).toBe(true)
  })

  it("of a trusted proxy are exempt by its exact address, not by its network", () => {
    const connections = new Connections<string>({
      ...{ total: 8, perClient: 2, unreadPerClient: 10 },
      isProxy: (address) => address === "2001:db8::2"
    })
    for (const client of ["one", "two"]) {
      connections.admit(client, "2001:db8::1")
      connections.began(client)
    }
    expect(connections.admit("three", "2001:db8::1").admitted).toBe(false)
    expect(connections.admit("proxy", "2001:db8::2").admitted).toBe(true)
    connections.unread("proxy", 11)
    expect(connections.unread("proxy", 1)).toBe(true)
    connections.unread("one", 11)
    expect(connections.unread("two", 1)).toBe(false)
  })

  it("that were refused or evicted before are ignored", () => {
    const connections = new Connections<string>({ ...limits, perClient: 1 })
    connections.admit("old", "192.0.2.1")
    expect(connections.admit("new", "192.0.2.1")).toEqual({ admitted: true, evicted: "old" })
    connections.began("old")
    connections.held("old")
    connections.released("old")
    connections.sent("old")
    connections.answered("old")
    connections.heard("old")
    connections.replied("old")
    expect([connections.piece("old", 1), connections.unanswered("old")]).toEqual([true, 0])
    expect(connections.unread("old", 1_000)).toBe(true)
    connections.taken("old", 1_000)
    connections.closed("old")
    connections.began("new")
    expect(connections.admit("third", "192.0.2.1")).toEqual({ admitted: false })
    connections.closed("third")
    connections.closed("new")
    expect(connections.admit("fourth", "192.0.2.1")).toEqual({ admitted: true, evicted: undefined })
  })
})

/** Takes byte by byte, until there is no room or `most` are taken. */
const fill = (room: BodyRoom, client: string, most = Number.POSITIVE_INFINITY, piece = 1) => {
  let bytes = 0
  while (bytes < most && room.take(client, piece)) bytes += piece
  return bytes
}

it("however many clients take room, some is left for the body of another one", () => {
  const body = 64 * 1024
  const room = new BodyRoom(32 * 1024 * 1024)
  const taken = Array.from({ length: 100 }, (_, client) => fill(room, `198.51.100.${client}`, 3 * body, 1024))
  expect(Math.max(...taken)).toBe(3 * body)
  expect(fill(room, "192.0.2.1", body, 1024)).toBe(body)
  room.giveBack("192.0.2.1", body)
  expect(fill(room, "192.0.2.1", body, 1024)).toBe(body)
})

it("one client has an eighth of what is free, and what is given back is free again", () => {
  const room = new BodyRoom(800)
  // What it has itself is not free: an eighth of 712, and a byte.
  expect(fill(room, "one")).toBe(89)
  expect(fill(room, "two")).toBe(79)
  room.giveBack("one", 40)
  expect(fill(room, "one")).toBe(31)
  room.giveBack("one", 80)
  room.giveBack("two", 79)
  expect(fill(room, "three")).toBe(89)
})
