/**
 * Which connections are open, what is under way on each, and room for the bytes that they keep. A connection *waits* while the
 * server waits for its client: it is idle, a request is arriving, or a reply has not been taken; also while its request is held
 * back to slow its client down. Where all are in use, a new connection takes the place of the one that has waited longest, first
 * of those without any reply so far, once these are more than an eighth: neither idle connections nor slow clients keep others
 * out, and one whose request is worked on is never closed. How many one client may open is for the proxy in front to limit.
 * `listener.ts` and `requests.ts` report events to it.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import type { ApiError } from "../Domain/ApiError.ts"

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

/** Why nothing more of a connection is parsed: an error to send, or nothing, since the refused request has its reply. */
export interface Refusal {
  readonly error: ApiError | undefined
  isUnderWay: boolean
  /** Bytes that have come since. */
  dropped: number
}

export class Connection {
  readonly socket: Socket
  /** Requests whose headers have arrived, and whose replies are not through. */
  unanswered = 0
  /** Requests that have arrived whole, and whose replies have not been taken. */
  working = 0
  /** Those of them that are worked on here: neither held back, nor with a reply that was handed over whole. */
  busy = 0
  /** Requests that are held back. */
  held = 0
  /** Whether a request had a reply. */
  isServed = false
  refusal: Refusal | undefined
  /** The latest request and its response, until both are complete. */
  latest: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined
  /** What its requests do once it is closed. */
  readonly onClose = new Set<() => void>()
  /** Small pieces of bodies that have come since the last reply. */
  #pieces = 0
  /** Bytes that have come since the last headers, and since those or the last piece of a body. */
  #bytes = 0
  #filler = 0

  constructor(socket: Socket) {
    this.socket = socket
  }

  /** The headers of a request have arrived. */
  heard(): void {
    this.unanswered += 1
    this.#bytes = 0
    this.#filler = 0
  }

  /** The reply to a request that was `heard` is complete. */
  replied(): void {
    this.unanswered -= 1
    this.#pieces = 0
  }

  /** A piece of a body has arrived, of so many bytes; false when too many were small. */
  piece(bytes: number): boolean {
    this.#filler = 0
    if (bytes >= largePiece) return true
    this.#pieces += 1
    return this.#pieces <= maxPieces
  }

  /** Bytes have arrived, and are to be parsed. Gives what exceeds its limit, if anything: the request, or filler. */
  arrived(bytes: number): "bytes" | "filler" | undefined {
    this.#bytes += bytes
    this.#filler += bytes
    return this.#filler > mostFiller ? "filler" : this.#bytes > mostBytes ? "bytes" : undefined
  }
}

/** The part of the free bytes that one client may take, and of all connections that is for those without a reply so far. */
const share = 1 / 8

/**
 * The part of all bytes that a client may take in any case: an ordinary body, of 16 KiB. Else some dozens of clients, which take
 * an eighth each, would leave none for another one. The number of connections limits what these take together.
 */
const least = 1 / 2048

export class Connections {
  readonly #most: number
  readonly #open = new Map<Duplex, Connection>()
  /** Those that wait, in the order in which they began to: without any reply so far, and others. */
  readonly #unserved = new Set<Connection>()
  readonly #served = new Set<Connection>()

  /** @param most connections that may be open */
  constructor(most: number) {
    this.#most = most
  }

  /** A new connection, perhaps in place of another one; undefined when all are worked on. */
  admit(socket: Socket): Connection | undefined {
    if (this.#open.size >= this.#most) {
      // Else, where a flood has had replies on all others, each new connection would be closed for the next before it has asked.
      const areMany = this.#unserved.size > this.#most * share
      const [loser] = areMany || this.#served.size === 0 ? this.#unserved : this.#served
      if (loser === undefined) return undefined
      this.closed(loser)
      loser.socket.destroy()
    }
    const connection = new Connection(socket)
    this.#open.set(socket, connection)
    this.place(connection)
    return connection
  }

  of(socket: Duplex): Connection | undefined {
    return this.#open.get(socket)
  }

  /** Something has happened to it: to the end of the order of waiting, unless it is worked on. */
  place(connection: Connection): void {
    this.#unserved.delete(connection)
    this.#served.delete(connection)
    // The body of a request that is held back may not be here yet: then it is below 0.
    if (connection.busy <= 0 && this.#open.has(connection.socket)) {
      ;(connection.isServed ? this.#served : this.#unserved).add(connection)
    }
  }

  closed(connection: Connection): void {
    this.#open.delete(connection.socket)
    this.place(connection)
    for (const call of [...connection.onClose]) call()
  }
}

/**
 * Room for bytes: of request bodies, which are kept until the requests have their replies, or of replies that have not been
 * taken. One client may take an eighth of what is still free, and a little in any case. The client is
 * the sender of a request, not the proxy that it came through.
 */
export class Room {
  #free: number
  readonly #least: number
  readonly #kept = new Map<string, number>()

  /** @param bytes for all clients together */
  constructor(bytes: number) {
    this.#free = bytes
    this.#least = bytes * least
  }

  /** Takes room for bytes of a client; false when there is none for them. */
  take(client: string, bytes: number): boolean {
    const kept = (this.#kept.get(client) ?? 0) + bytes
    if (kept > Math.max(this.#free * share, this.#least)) return false
    this.#free -= bytes
    this.#kept.set(client, kept)
    return true
  }

  /** Gives back room that was taken. */
  giveBack(client: string, bytes: number): void {
    const kept = (this.#kept.get(client) ?? 0) - bytes
    this.#free += bytes
    if (kept > 0) this.#kept.set(client, kept)
    else this.#kept.delete(client)
  }
}
