/**
 * Runs a fiber for each request once its headers have arrived: calls `respond`, which receives the body if it wants it,
 * writes the reply, and follows a streamed body to its end. Interrupts a fiber when its client goes away, drops clients
 * that do not read their reply, refuses pipelined floods, and replies 503 at a shutdown. `listener.ts` connects it to
 * Node's listener; `connections.ts` keeps the limits.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Deferred, Effect, Exit, Fiber, FiberId, Runtime, RuntimeFlags, Stream } from "effect"
import { ApiError, bodyTooLarge } from "../Domain/ApiError.ts"
import { newRequestId } from "../Domain/Ids.ts"
import { eventLoopTurn } from "../lib/waiting.ts"
import { hasBody, noBody, receiveBody } from "./body.ts"
import {
  makeRefusals,
  maxHeaders,
  tooManyAtOnce,
  tooManyBodies,
  tooManyHeaders,
  tooManyPieces,
  tooMuchFiller,
  unknownVersion
} from "./connectionRefusals.ts"
import { type Connection, type Connections, Room } from "./connections.ts"
import { errorReply, type HttpReply, headersOf, type Pieces } from "./HttpReply.ts"
import type { Hold } from "./PageHandler.ts"
import type { Respond } from "./respond.ts"

const shuttingDown = new ApiError({
  code: "SHUTTING_DOWN",
  message: "The server is shutting down: try again in a moment.",
  headers: { "retry-after": "5" }
})

/** Node's parser also takes HTTP/0.9 and HTTP/2.0 in a request line, which are other protocols. */
const versions = new Set(["1.1", "1.0"])

/**
 * Calls back once the response is sent or the connection has closed. A pipelined response that waits behind another gets
 * no "close" event of its own when the connection closes.
 */
const onceClosed = ({ onClose }: Connection, response: ServerResponse, then: () => void): void => {
  const end = () => {
    if (onClose.delete(end)) then()
  }
  onClose.add(end)
  response.once("close", end)
}

/** The request or its reply is complete: with both, nothing of it is kept any longer, including its trailers. */
const forget = (connection: Connection) => {
  const { request, response } = connection.latest ?? {}
  if (request?.complete && response?.writableFinished) connection.latest = undefined
}

/** Writes the reply; true when a streamed body follows. */
const write = (response: ServerResponse, reply: HttpReply, requestId: string, closing: boolean): boolean => {
  if (response.headersSent || response.destroyed) return false
  response.writeHead(reply.status, headersOf(reply, requestId, closing))
  if (reply.rest !== undefined && response.req.method !== "HEAD") return true
  if (reply.bytes === undefined) response.end(reply.text)
  else {
    // In one system call, and without a copy: tens of kilobytes for each reply would be left to the garbage collector.
    response.cork()
    for (const piece of reply.bytes) response.write(piece)
    response.end()
  }
  return false
}

/**
 * Completes when the next piece may be written. A client that has not taken a piece within `patience` milliseconds is
 * dropped: Node's own time-out restarts with each byte that the client takes.
 */
const writePiece = (response: ServerResponse, piece: string, patience: number) =>
  Effect.async<void>((resume) => {
    // A turn of the event loop between two pieces, even if the client takes each at once, lets other requests run. The
    // "drain" event may come in the same turn.
    const onDrain = () => resume(eventLoopTurn)
    if (response.write(piece)) return onDrain()
    response.once("drain", onDrain)
    return Effect.sync(() => response.off("drain", onDrain))
  }).pipe(Effect.timeoutTo({ duration: patience, onSuccess: () => {}, onTimeout: () => void response.destroy() }))

/** How long a reload, at which everybody waits, waits for the rest of bodies. */
const bodyPatience = "2 seconds"

export interface RequestLimits {
  /** The client of a request, whose bodies and replies share room. */
  readonly clientOf: (request: IncomingMessage) => string
  /**
   * Milliseconds in which a client has to take a reply, or a piece of a stream; the longest without a byte in either direction
   * while a request waits for its reply.
   */
  readonly answerTimeout: number
  /** Maximum requests that a client may pipeline on one connection. */
  readonly pipelined: number
  /** Bytes of request bodies that are kept for all clients together. */
  readonly bodies: number
  /** Bytes of replies that all clients together have not taken. */
  readonly unread: number
}

/** A reply with a streamed body. */
type Streamed = Pick<HttpReply, "headers"> & { readonly rest: Pieces }

/**
 * Writes until the stream ends or is interrupted. An event stream is complete either way: its client asks again. Any
 * other body that breaks off is cut off, so that no client takes a part of a file for all of it.
 */
const writeRest = (response: ServerResponse, { headers, rest }: Streamed, patience: number) =>
  Stream.runForEach(rest, (piece) => writePiece(response, piece, patience)).pipe(
    Effect.tapDefect((cause) => Effect.logError("a stream failed", cause)),
    Effect.onExit((exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit) || headers["content-type"] === "text/event-stream") response.end()
        else response.destroy()
      })
    )
  )

// Without Effect's fiber metrics: they are not exported, and they cost 5 % of a request's time.
const forkIn = (runtime: Runtime.Runtime<never>) =>
  Runtime.runFork(Runtime.disableRuntimeFlag(runtime, RuntimeFlags.RuntimeMetrics))

/** What answers requests. `next` is what will, where it only lets them wait. */
interface Answering {
  readonly respond: Respond
  readonly runFork: ReturnType<typeof forkIn>
  readonly next: Deferred.Deferred<Respond>
}

/**
 * Makes the handler of Node's "request" events, with what `listener.ts` needs to refuse connections and to shut down.
 */
export const makeRequests = (
  respond: Respond,
  runtime: Runtime.Runtime<never>,
  connections: Connections,
  { answerTimeout: patience, bodies, clientOf, pipelined, unread }: RequestLimits
) => {
  const bodyRoom = new Room(bodies)
  const unreadRoom = new Room(unread)
  const runFork = forkIn(runtime)
  /** A reload puts another one in its place: what is under way has begun with the former one. */
  let current: Answering = { respond, runFork, next: Deferred.unsafeMake(FiberId.none) }
  const refusals = makeRefusals(runFork)
  let closing = false
  let unanswered = 0
  let onNone: (() => void) | undefined
  const working = new Map<Fiber.RuntimeFiber<unknown>, { connection: Connection; request: IncomingMessage }>()
  const streaming = new Set<Fiber.RuntimeFiber<void>>()
  /** Replies that were ready as soon as their requests had been read. */
  let ready: Array<() => void> = []

  const sendReady = () => {
    const sends = ready
    ready = []
    for (const send of sends) send()
  }

  /**
   * Sends once the event loop has read all that has arrived. Each reply is a system call that wakes its client:
   * interleaved with the requests of a turn, these take twice the time.
   */
  const sendSoon = (send: () => void) => {
    if (ready.push(send) === 1) setImmediate(sendReady)
  }

  const follow = (response: ServerResponse, reply: Streamed, onEnd: () => void) => {
    const fiber = current.runFork(writeRest(response, reply, patience))
    streaming.add(fiber)
    fiber.addObserver(() => {
      streaming.delete(fiber)
      onEnd()
    })
    return fiber
  }

  /**
   * Drops a client that does not take its whole reply in time, or leaves too many bytes unread in all its connections.
   * Node's time-out restarts with each byte, and a client that requests long lists without reading them would fill
   * memory.
   */
  const dropUnlessTaken = (connection: Connection, response: ServerResponse) => {
    const { socket } = connection
    const bytes = response.writableLength
    const client = clientOf(response.req)
    if (!unreadRoom.take(client, bytes)) return void socket.destroy()
    const fiber = runFork(
      Effect.delay(
        Effect.sync(() => socket.destroy()),
        patience
      )
    )
    onceClosed(connection, response, () => {
      unreadRoom.giveBack(client, bytes)
      fiber.unsafeInterruptAsFork(FiberId.none)
    })
  }

  const busy = (connection: Connection, by: 1 | -1) => {
    connection.busy += by
    connections.place(connection)
  }

  /** Lets a request wait. Meanwhile its connection counts as waiting, and may be closed in favour of a new one. */
  const hold = <A>(connection: Connection, wait: Effect.Effect<A>): Effect.Effect<A> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        connection.held += 1
        busy(connection, -1)
      }),
      () => wait,
      () =>
        Effect.sync(() => {
          connection.held -= 1
          busy(connection, 1)
        })
    )

  const take = (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.of(request.socket)
    if (connection === undefined || connection.refusal !== undefined) return
    if (request.rawHeaders.length > 2 * maxHeaders) return refusals.refuse(tooManyHeaders, connection)
    if (!versions.has(request.httpVersion)) return refusals.refuse(unknownVersion, connection)
    // No request is accepted behind a delayed one: all would be delayed, and each costs memory.
    if (connection.held > 0 || connection.unanswered >= pipelined) {
      return refusals.refuse(tooManyAtOnce, connection)
    }
    const requestId = newRequestId()
    let stage: "arriving" | "working" | "sent" = "arriving"
    const sent = () => {
      if (stage !== "working") return
      stage = "sent"
      busy(connection, -1)
    }
    const send = (reply: HttpReply) => {
      // What is left of the request was refused, and that was its reply.
      if (!request.complete && connection.refusal !== undefined) return false
      const follows = write(response, reply, requestId, closing)
      // Usually the system's buffer takes the whole reply at once, and nothing is left to watch.
      if (!follows && response.socket?.writableLength !== 0) {
        sent()
        dropUnlessTaken(connection, response)
      }
      return follows
    }
    let fiber: Fiber.RuntimeFiber<unknown> | undefined
    /** Bytes of the body that are kept until the reply is sent, and of which client. */
    let kept = 0
    let client = ""
    unanswered += 1
    connection.heard()
    connections.place(connection)
    connection.latest = { request, response }
    onceClosed(connection, response, () => {
      unanswered -= 1
      connection.replied()
      forget(connection)
      if (unanswered === 0) onNone?.()
      if (kept > 0) bodyRoom.giveBack(client, kept)
      // The client has gone away.
      if (!response.writableFinished) fiber?.unsafeInterruptAsFork(FiberId.none)
    })
    const reserve = (bytes: number) => {
      if (kept === 0) client = clientOf(request)
      const isKept = bodyRoom.take(client, bytes)
      if (isKept) kept += bytes
      else refusals.refuseRest(tooManyBodies, connection)
      return isKept
    }
    const onPiece = (bytes: number) => {
      if (!connection.piece(bytes) && connection.refusal === undefined) refusals.refuseRest(tooManyPieces, connection)
    }
    const receiving = hasBody(request) ? receiveBody(request, { reserve, onPiece }) : noBody
    const begin = () => {
      // The reply came before the end of a body that was not wanted.
      if (response.writableEnded) return
      stage = "working"
      connection.working += 1
      busy(connection, 1)
      onceClosed(connection, response, () => {
        sent()
        connection.working -= 1
        connection.isServed = true
        connections.place(connection)
        refusals.goOn(connection)
      })
    }
    if (receiving === noBody) begin()
    else
      request.once("end", () => {
        // Nothing reads them, and there may be thousands.
        request.rawTrailers = []
        forget(connection)
        begin()
      })
    if (closing) {
      send(errorReply(shuttingDown, requestId))
      return receiving.drop()
    }
    // A request is delayed when it is refused, or after its body: the rest of its input is not wanted.
    const delay: Hold = (wait) => {
      receiving.drop()
      return hold(connection, wait)
    }
    const began = current
    const answering = began.runFork(began.respond(request, receiving.body, requestId, delay))
    fiber = answering
    const finish = (exit: Exit.Exit<HttpReply>) => {
      working.delete(answering)
      const isTooLate = Exit.isFailure(exit) || ((closing || began !== current) && exit.value.rest !== undefined)
      const reply = isTooLate ? errorReply(shuttingDown, requestId) : exit.value
      const { headers, rest } = reply
      if (send(reply) && rest !== undefined) fiber = follow(response, { headers, rest }, sent)
      receiving.drop()
    }
    const exit = answering.unsafePoll()
    if (exit === null) {
      working.set(answering, { connection, request })
      answering.addObserver(finish)
    } else sendSoon(() => finish(exit))
  }

  return {
    take,
    refuse: refusals.refuse,
    /** Whether a connection's next `bytes` may be parsed, of `all` that have arrived: nothing of a refused one is. */
    isWanted: (connection: Connection, bytes: number, all: number): boolean => {
      const excess = connection.refusal === undefined ? connection.arrived(bytes) : undefined
      if (excess !== undefined) refusals.refuseRest(excess === "bytes" ? bodyTooLarge : tooMuchFiller, connection)
      if (connection.refusal !== undefined) refusals.drop(connection, all)
      return connection.refusal === undefined
    },
    refuseUnread: refusals.refuseUnread,
    /** From now on new requests get 503, and streams end. */
    refuseNew: Effect.sync(() => {
      closing = true
      Deferred.unsafeDone(current.next, Effect.interrupt)
      for (const fiber of streaming) fiber.unsafeInterruptAsFork(FiberId.none)
    }),
    /**
     * From now on new requests wait for what answers next, and streams end. Completes once nothing of what has answered until
     * now is under way; a body that is still arriving after two seconds, and all that takes too long, ends with a 503.
     */
    pause: Effect.suspend(() => {
      const next = Deferred.unsafeMake<Respond>(FiberId.none)
      const former = [...working.keys(), ...streaming]
      const refused = Array.from(working).flatMap(([fiber, { connection }]) => (connection.held > 0 ? [fiber] : []))
      const arriving = Array.from(working).filter(([, { request }]) => !request.complete)
      const refuseSlow = Effect.sync(() => {
        for (const [fiber, { request }] of arriving) if (!request.complete) fiber.unsafeInterruptAsFork(FiberId.none)
      })
      const respond: Respond = (...request) => Effect.flatMap(Deferred.await(next), (answer) => answer(...request))
      current = { respond, runFork: current.runFork, next }
      for (const fiber of [...streaming, ...refused]) fiber.unsafeInterruptAsFork(FiberId.none)
      const ended = Effect.forEach(former, Fiber.await, { concurrency: "unbounded", discard: true })
      return Effect.raceFirst(ended, Effect.zipRight(Effect.delay(refuseSlow, bodyPatience), Effect.never)).pipe(
        Effect.onInterrupt(() => Fiber.interruptAll(former))
      )
    }),
    /** What answers from now on, also the requests that have waited for it. */
    resume: (respond: Respond, runtime: Runtime.Runtime<never>) => {
      Object.assign(current, { respond, runFork: forkIn(runtime) })
      Deferred.unsafeDone(current.next, Effect.succeed(respond))
    },
    /** Completes when every request has its reply. */
    answered: Effect.async<void>((resume) => {
      if (unanswered === 0) resume(Effect.void)
      else onNone = () => resume(Effect.void)
    })
  }
}
