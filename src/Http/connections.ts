import { networkOf } from "./clientAddress.ts"

/** How many connections may be open at a time. */
export interface ConnectionLimits {
  /** Of everybody together. */
  readonly total: number
  /** Of one client: an IPv4 address, or an IPv6 network of 64 bits, which is what one customer is given. */
  readonly perClient: number
  /** Bytes of answers that one client has not taken yet; one answer may go beyond. */
  readonly unreadPerClient: number
  /** The operator's own proxies hold the connections of many clients: for them the total alone counts. */
  readonly isProxy: (address: string) => boolean
}

interface Client<C> {
  readonly name: string
  open: number
  /** Bytes of answers that it has not taken. */
  unread: number
  /** Those that wait for the client, in the order in which they began to. */
  readonly waiting: Set<C>
}

interface Open<C> {
  readonly client: Client<C>
  readonly isProxy: boolean
  /** Requests that came whole and are not answered yet. */
  working: number
  /** Those of them that wait for their turn. */
  held: number
  /** Bytes of answers that have not been taken. */
  unread: number
}

/** What becomes of a new connection: it comes in, maybe in the place of another, or it does not. */
export type Admission<C> = { readonly admitted: true; readonly evicted: C | undefined } | { readonly admitted: false }

/**
 * Who is connected, and whose turn it is. A connection *waits* while it is the client's turn: it is idle, or a request is
 * on its way. At a limit the one that has waited longest gives way to a new one, so that neither idle connections nor
 * slow requests can keep others out; one whose request is being worked on never does. A request that is held back for its
 * client's sake is not worked on.
 */
export class Connections<C> {
  readonly #limits: ConnectionLimits
  readonly #clients = new Map<string, Client<C>>()
  readonly #open = new Map<C, Open<C>>()
  readonly #waiting = new Set<C>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** A new connection. The evicted one counts no more, and is the caller's to close. */
  admit(connection: C, address: string): Admission<C> {
    const name = networkOf(address)
    const client = this.#clients.get(name) ?? { name, open: 0, unread: 0, waiting: new Set<C>() }
    const isProxy = this.#limits.isProxy(address)
    const hasTooMany = client.open >= this.#limits.perClient && !isProxy
    let evicted: C | undefined
    if (hasTooMany || this.#open.size >= this.#limits.total) {
      ;[evicted] = hasTooMany ? client.waiting : this.#waiting
      if (evicted === undefined) return { admitted: false }
      this.closed(evicted)
    }
    client.open += 1
    this.#clients.set(name, client)
    this.#open.set(connection, { client, isProxy, working: 0, held: 0, unread: 0 })
    this.#wait(connection, client)
    return { admitted: true, evicted }
  }

  /** How many of a connection's requests are being worked on. */
  working(connection: C): number {
    return this.#open.get(connection)?.working ?? 0
  }

  /** Whether a request of the connection waits for its turn. */
  isHeld(connection: C): boolean {
    return (this.#open.get(connection)?.held ?? 0) > 0
  }

  /** The head of a request has come: its connection is no longer the one that has waited longest. */
  heard(connection: C): void {
    const client = this.#open.get(connection)?.client
    if (client?.waiting.has(connection)) this.#wait(connection, client)
  }

  /** A whole request has come, and is worked on. */
  began(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.working += 1
    this.#work(connection, open.client)
  }

  /** A request that `began` waits for its turn, and its connection may be needed meanwhile. */
  held(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.held += 1
    if (open.working === open.held) this.#wait(connection, open.client)
  }

  /** The turn of a request that was `held` has come. */
  released(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.held -= 1
    if (open.working > open.held) this.#work(connection, open.client)
  }

  /** A request that `began` has its answer. */
  answered(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.working -= 1
    if (open.working === open.held) this.#wait(connection, open.client)
  }

  /** So many bytes of an answer wait for the client to take them; false where it has left too many already. */
  unread(connection: C, bytes: number): boolean {
    const open = this.#open.get(connection)
    if (open === undefined) return true
    const { client, isProxy } = open
    const isAllowed = isProxy || client.unread <= this.#limits.unreadPerClient
    open.unread += bytes
    client.unread += bytes
    return isAllowed
  }

  /** They have been taken. */
  taken(connection: C, bytes: number): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.unread -= bytes
    open.client.unread -= bytes
  }

  closed(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    const { client } = open
    client.unread -= open.unread
    this.#open.delete(connection)
    this.#waiting.delete(connection)
    client.waiting.delete(connection)
    client.open -= 1
    if (client.open === 0) this.#clients.delete(client.name)
  }

  #work(connection: C, client: Client<C>): void {
    client.waiting.delete(connection)
    this.#waiting.delete(connection)
  }

  /** Behind all that wait already. */
  #wait(connection: C, client: Client<C>): void {
    for (const waiting of [client.waiting, this.#waiting]) {
      waiting.delete(connection)
      waiting.add(connection)
    }
  }
}
