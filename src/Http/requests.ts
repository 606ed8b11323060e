import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { Effect, Exit, type Fiber, FiberId, Runtime, RuntimeFlags, Stream } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { eventLoopTurn } from "../Sql/eventLoopTurn.ts"
import { receive } from "./body.ts"
import type { Connections } from "./connections.ts"
import { makeRefusals, tooManyAtOnce } from "./refusals.ts"
import { errorReply, type HttpReply, headersOf, newRequestId, type Pieces } from "./reply.ts"
import type { Respond } from "./respond.ts"

const shuttingDown = new ApiError({
  code: "SHUTTING_DOWN",
  message: "The server is shutting down: try again in a moment.",
  headers: { "retry-after": "5" }
})

/** Requests that a client may send on one connection without waiting for an answer. */
const pipelined = 32

/** What is to be done of the requests of a connection when it ends. */
const atEnd = new WeakMap<Duplex, Set<() => void>>()

/** Calls back once the answer is sent or its client has gone: one that waits behind another hears nothing of that itself. */
const onceGone = (socket: Duplex, response: ServerResponse, then: () => void): void => {
  const known = atEnd.get(socket)
  const waiting = known ?? new Set()
  if (known === undefined) {
    atEnd.set(socket, waiting)
    socket.once("close", () => {
      for (const end of [...waiting]) end()
    })
  }
  const end = () => {
    if (waiting.delete(end)) then()
  }
  waiting.add(end)
  response.once("close", end)
}

/** Writes the reply; tells whether the rest of it is to follow. */
const write = (response: ServerResponse, reply: HttpReply, requestId: string, closing: boolean): boolean => {
  if (response.headersSent || response.destroyed) return false
  response.writeHead(reply.status, headersOf(reply, requestId, closing))
  if (reply.rest !== undefined && response.req.method !== "HEAD") return true
  response.end(reply.bytes ?? reply.text)
  return false
}

/**
 * Completes when the client may be given more. One that has not taken a piece within `patience` milliseconds is dropped: the
 * listener's own time-out begins anew with each byte that it takes.
 */
const writePiece = (response: ServerResponse, piece: string, patience: number) =>
  Effect.async<void>((resume) => {
    // Also where the client takes all at once: others have their turn between two pieces. "drain" may come in the same turn.
    const onDrain = () => resume(eventLoopTurn)
    if (response.write(piece)) return onDrain()
    response.once("drain", onDrain)
    return Effect.sync(() => response.off("drain", onDrain))
  }).pipe(Effect.timeoutTo({ duration: patience, onSuccess: () => {}, onTimeout: () => void response.destroy() }))

/** Writes until the pieces end, or somebody interrupts: then the body is complete, and the client may ask again. */
const writeRest = (response: ServerResponse, rest: Pieces, patience: number) =>
  Stream.runForEach(rest, (piece) => writePiece(response, piece, patience)).pipe(
    Effect.tapDefect((cause) => Effect.logError("a stream failed", cause)),
    Effect.ensuring(Effect.sync(() => response.end()))
  )

/**
 * Runs a fiber for each request, and knows of those that are not answered yet.
 *
 * @param patience milliseconds in which a client has to take a piece of a stream
 */
export const makeRequests = (
  respond: Respond,
  runtime: Runtime.Runtime<never>,
  connections: Connections<Duplex>,
  patience: number
) => {
  // Without Effect's counts of fibers: nobody reads them, and they cost a request a twentieth of its time.
  const runFork = Runtime.runFork(Runtime.disableRuntimeFlag(runtime, RuntimeFlags.RuntimeMetrics))
  const refusals = makeRefusals(runFork, connections)
  let closing = false
  let unanswered = 0
  let onNone: (() => void) | undefined
  const streaming = new Set<Fiber.RuntimeFiber<void>>()

  const follow = (response: ServerResponse, rest: Pieces) => {
    const fiber = runFork(writeRest(response, rest, patience))
    streaming.add(fiber)
    fiber.addObserver(() => streaming.delete(fiber))
    return fiber
  }

  /**
   * Drops a client that has not taken its whole answer in time, or too much altogether: the listener's time-out begins anew
   * with each byte, and who asks for long lists and reads none would fill the memory.
   */
  const untilTaken = (response: ServerResponse) => {
    const { socket } = response.req
    const bytes = response.writableLength
    if (!connections.unread(socket, bytes)) return void socket.destroy()
    const fiber = runFork(
      Effect.delay(
        Effect.sync(() => socket.destroy()),
        patience
      )
    )
    response.once("close", () => {
      connections.taken(socket, bytes)
      fiber.unsafeInterruptAsFork(FiberId.none)
    })
  }

  /** Meanwhile the connection gives way to those that are needed. */
  const hold: (socket: Duplex, millis: number) => Effect.Effect<void> = (socket, millis) =>
    Effect.acquireUseRelease(
      Effect.sync(() => connections.held(socket)),
      () => Effect.sleep(millis),
      () => Effect.sync(() => connections.released(socket))
    )

  const take = (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    if (refusals.isRefused(socket)) return
    // Behind a request that waits for its turn none is taken: they would all wait, and each costs memory.
    if (connections.isHeld(socket) || connections.working(socket) >= pipelined) {
      return refusals.refuse(tooManyAtOnce, socket)
    }
    const requestId = newRequestId()
    const send = (reply: HttpReply) => {
      const follows = write(response, reply, requestId, closing)
      // Nothing is left where the system has taken all at once, as it nearly always does.
      if (!follows && response.socket?.writableLength !== 0) untilTaken(response)
      return follows
    }
    let fiber: Fiber.RuntimeFiber<unknown> | undefined
    unanswered += 1
    connections.heard(socket)
    refusals.note(request, response)
    onceGone(socket, response, () => {
      unanswered -= 1
      if (unanswered === 0) onNone?.()
      // The client has gone, and nobody waits for the answer.
      if (!response.writableFinished) fiber?.unsafeInterruptAsFork(FiberId.none)
    })
    if (closing) return void send(errorReply(shuttingDown, requestId))
    receive(request, (body) => {
      connections.began(socket)
      onceGone(socket, response, () => {
        connections.answered(socket)
        refusals.goOn(socket)
      })
      const answering = runFork(respond(request, body, requestId, (millis) => hold(socket, millis)))
      fiber = answering
      answering.addObserver((exit) => {
        const isTooLate = Exit.isFailure(exit) || (closing && exit.value.rest !== undefined)
        const reply = isTooLate ? errorReply(shuttingDown, requestId) : exit.value
        if (send(reply) && reply.rest !== undefined) fiber = follow(response, reply.rest)
      })
    })
  }

  return {
    take,
    refuse: refusals.refuse,
    refuseUnread: refusals.refuseUnread,
    /** From here on. What has no end by itself ends here. */
    refuseNew: Effect.sync(() => {
      closing = true
      for (const fiber of streaming) fiber.unsafeInterruptAsFork(FiberId.none)
    }),
    /** Completes when every request has its answer. */
    answered: Effect.async<void>((resume) => {
      if (unanswered === 0) resume(Effect.void)
      else onNone = () => resume(Effect.void)
    })
  }
}
