/**
 * Which connections are open, and which one is closed when a limit is reached. A connection *waits* while the server
 * waits for its client: it is idle, a request is arriving, or a reply has not been taken. At its client's limit the
 * connection that has waited longest is closed in favour of a new one; at the limit of all, the one that has waited
 * longest of the client with most connections. So neither idle connections nor slow clients keep others out, and a
 * client with few connections keeps them, however many others connect. A connection whose request is being worked on is
 * never closed; one whose request is held back to slow its client down counts as waiting. A pure data structure:
 * `listener.ts` and `requests.ts` report events to it and close what it evicts.
 */
import { networkOf } from "./clientAddress.ts"

/**
 * Maximum number of small pieces in which bodies may arrive on a connection before it gets a reply: chunks, or TCP
 * segments. Each takes the event loop a microsecond or more, however small it is. Counted over all bodies, since one
 * read may contain many requests.
 */
const maxPieces = 512

/** Bytes from one request's headers to the next ones: the largest body in chunks, and large headers. */
const mostBytes = 96 * 1024

/**
 * Bytes that are neither a request's headers nor a piece of its body: the largest headers that Node takes. Blank lines,
 * zeros before a chunk's length, its extensions and trailers have no end of their own.
 */
const mostFiller = 17 * 1024

/** Minimum bytes of a piece that is not small: the smallest usual TCP segment has 536, even on a slow link. */
const largePiece = 128

/** Limits for connections that are open at the same time. */
export interface ConnectionLimits {
  /** Connections of all clients together. */
  readonly total: number
  /** Connections of one client: an IPv4 address, or an IPv6 /64, which is what one customer is given. */
  readonly perClient: number
  /** Bytes of replies that one client has not taken yet. The last reply may exceed it. */
  readonly unreadPerClient: number
  /** The operator's own proxies carry connections of many clients: only the limits of all apply to them. */
  readonly isProxy: (address: string) => boolean
}

interface Client<C> {
  readonly name: string
  open: number
  /** Bytes of replies that it has not taken. */
  unread: number
  /** Whether a request of it had a reply, on an open connection or since it always had one open. */
  served: boolean
  readonly isProxy: boolean
  /** Its waiting connections, in the order in which they began to wait. */
  readonly waiting: Set<C>
}

interface Open<C> {
  readonly client: Client<C>
  /** Requests that have arrived whole and have no reply yet. */
  working: number
  /** Those of them that are held back. */
  held: number
  /** Those of them whose replies were handed over whole, and are not taken yet. */
  sent: number
  /** Requests whose headers have arrived, and whose replies are not through. */
  unanswered: number
  /** Small pieces of bodies that have come since the last reply. */
  pieces: number
  /** Bytes that have come since the last headers, and since those or the last piece of a body. */
  bytes: number
  filler: number
  /** Bytes of replies that have not been taken. */
  unread: number
}

/** Whether a new connection is admitted, and which waiting connection it replaces, if any. */
export type Admission<C> = { readonly admitted: true; readonly evicted: C | undefined } | { readonly admitted: false }

/** Eviction order: the client with the most connections first; among equals, the one not served yet. */
const greed = ({ isProxy, open, served }: Client<unknown>): number =>
  // A proxy's connections belong to many clients.
  (isProxy ? 0 : open) + (served ? 0 : 0.5)

export class Connections<C> {
  readonly #limits: ConnectionLimits
  readonly #clients = new Map<string, Client<C>>()
  readonly #open = new Map<C, Open<C>>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** A new connection. The evicted one no longer counts; the caller closes it. */
  admit(connection: C, address: string): Admission<C> {
    const name = networkOf(address)
    const isProxy = this.#limits.isProxy(address)
    // A proxy is one by its exact address, not by its network.
    const id = isProxy ? address : name
    const known = this.#clients.get(id)
    const client = known ?? { name: id, open: 0, unread: 0, served: false, isProxy, waiting: new Set<C>() }
    const hasTooMany = client.open >= this.#limits.perClient && !isProxy
    let evicted: C | undefined
    if (hasTooMany || this.#open.size >= this.#limits.total) {
      const loser = hasTooMany ? client : this.#greediest()
      // A client with more connections gets no further one at the cost of a client with few.
      const isGreedier = !hasTooMany && loser !== undefined && greed(client) > greed(loser)
      ;[evicted] = isGreedier ? [] : (loser?.waiting ?? [])
      if (evicted === undefined) return { admitted: false }
      this.closed(evicted)
    }
    client.open += 1
    this.#clients.set(id, client)
    const counts = { working: 0, held: 0, sent: 0, unanswered: 0, pieces: 0, bytes: 0, filler: 0, unread: 0 }
    this.#open.set(connection, { client, ...counts })
    this.#wait(connection, client)
    return { admitted: true, evicted }
  }

  /** The number of a connection's requests whose replies have not been taken. */
  working(connection: C): number {
    return this.#open.get(connection)?.working ?? 0
  }

  /** The number of a connection's requests that wait for a reply, complete or not. */
  unanswered(connection: C): number {
    return this.#open.get(connection)?.unanswered ?? 0
  }

  /** Whether a request of the connection is held back. */
  isHeld(connection: C): boolean {
    return (this.#open.get(connection)?.held ?? 0) > 0
  }

  /** The headers of a request have arrived: its connection goes to the end of the order of waiting. */
  heard(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.unanswered += 1
    open.bytes = 0
    open.filler = 0
    if (open.client.waiting.has(connection)) this.#wait(connection, open.client)
  }

  /** The reply to a request that was `heard` is complete. */
  replied(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.unanswered -= 1
    open.pieces = 0
  }

  /** A piece of a body has arrived, of so many bytes; false when too many were small. */
  piece(connection: C, bytes: number): boolean {
    const open = this.#open.get(connection)
    if (open === undefined) return true
    open.filler = 0
    if (bytes >= largePiece) return true
    open.pieces += 1
    return open.pieces <= maxPieces
  }

  /** Bytes have arrived, and are to be parsed. Gives what exceeds its limit, if anything: the request, or filler. */
  arrived(connection: C, bytes: number): "bytes" | "filler" | undefined {
    const open = this.#open.get(connection)
    if (open === undefined) return undefined
    open.bytes += bytes
    open.filler += bytes
    return open.filler > mostFiller ? "filler" : open.bytes > mostBytes ? "bytes" : undefined
  }

  /** A whole request has arrived. */
  began(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.working += 1
    this.#place(connection, open)
  }

  /** A request that `began` is held back. Its connection may be evicted meanwhile. */
  held(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.held += 1
    this.#place(connection, open)
  }

  /** A request that was `held` is worked on again. */
  released(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.held -= 1
    this.#place(connection, open)
  }

  /** The reply to a request that `began` was handed over whole: its client has to take it. */
  sent(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.sent += 1
    this.#place(connection, open)
  }

  /** A reply that was `sent` has been taken. */
  answered(connection: C): void {
    const open = this.#open.get(connection)
    if (open === undefined) return
    open.working -= 1
    open.sent -= 1
    open.client.served = true
    this.#place(connection, open)
  }

  /** Adds bytes of a reply that the client has not taken yet; false when it had left too many already. */
  unread(connection: C, bytes: number): boolean {
    const open = this.#open.get(connection)
    if (open === undefined) return true
    const { client } = open
    const isAllowed = client.isProxy || client.unread <= this.#limits.unreadPerClient
    open.unread += bytes
    client.unread += bytes
    return isAllowed
  }

  /** The client has taken bytes that were `unread`. */
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
    client.waiting.delete(connection)
    client.open -= 1
    if (client.open === 0) this.#clients.delete(client.name)
  }

  /** The client with most connections, one of them waiting. Looks at all clients: called at the limit only. */
  #greediest(): Client<C> | undefined {
    let greediest: Client<C> | undefined
    for (const client of this.#clients.values()) {
      if (client.waiting.size === 0) continue
      if (greediest === undefined || greed(client) > greed(greediest)) greediest = client
    }
    return greediest
  }

  #place(connection: C, { client, held, sent, working }: Open<C>): void {
    // The body of a request that is held back may not be here yet.
    if (working > held + sent) client.waiting.delete(connection)
    else this.#wait(connection, client)
  }

  /** To the end of the order of waiting. */
  #wait(connection: C, client: Client<C>): void {
    client.waiting.delete(connection)
    client.waiting.add(connection)
  }
}
