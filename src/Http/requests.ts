import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { Effect, Exit, type Fiber, FiberId, Runtime, RuntimeFlags, Stream } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { receive } from "./body.ts"
import type { Connections } from "./connections.ts"
import { dismiss, refusalOf, stopListening, tooManyAtOnce } from "./refusals.ts"
import { errorReply, headersOf, newRequestId, type Pieces, type Reply } from "./reply.ts"
import type { Respond } from "./respond.ts"

const shuttingDown = new ApiError({
  code: "SHUTTING_DOWN",
  message: "The server is shutting down: try again in a moment.",
  headers: { "retry-after": "5" }
})

/** A client that is refused may read the answer for this long before the connection is closed. */
const parting = "1 second"

/** Requests that a client may send on one connection without waiting for an answer. */
const pipelined = 32

/** Writes the reply; tells whether the rest of it is to follow. */
const write = (response: ServerResponse, reply: Reply, requestId: string, closing: boolean): boolean => {
  if (response.headersSent || response.destroyed) return false
  response.writeHead(reply.status, headersOf(reply, requestId, closing))
  if (reply.rest !== undefined && response.req.method !== "HEAD") return true
  response.end(reply.bytes ?? reply.text)
  return false
}

/** Completes when the client may be given more. One that takes nothing is dropped by the listener's time-out. */
const writePiece = (response: ServerResponse, piece: string) =>
  Effect.async<void>((resume) => {
    if (response.write(piece)) return resume(Effect.void)
    const onDrain = () => resume(Effect.void)
    response.once("drain", onDrain)
    return Effect.sync(() => response.off("drain", onDrain))
  })

/** Writes until the pieces end, or somebody interrupts: then the body is complete, and the client may ask again. */
const writeRest = (response: ServerResponse, rest: Pieces) =>
  Stream.runForEach(rest, (piece) => writePiece(response, piece)).pipe(
    Effect.tapDefect((cause) => Effect.logError("a stream failed", cause)),
    Effect.ensuring(Effect.sync(() => response.end()))
  )

/** Runs a fiber for each request, and knows of those that are not answered yet. */
export const makeRequests = (respond: Respond, runtime: Runtime.Runtime<never>, connections: Connections<Duplex>) => {
  // Without Effect's counts of fibers: nobody reads them, and they cost a request a twentieth of its time.
  const runFork = Runtime.runFork(Runtime.disableRuntimeFlag(runtime, RuntimeFlags.RuntimeMetrics))
  const refusals = makeRefusals(runFork, connections)
  let closing = false
  let unanswered = 0
  let onNone: (() => void) | undefined
  const streaming = new Set<Fiber.RuntimeFiber<void>>()

  const follow = (response: ServerResponse, rest: Pieces) => {
    const fiber = runFork(writeRest(response, rest))
    streaming.add(fiber)
    fiber.addObserver(() => streaming.delete(fiber))
    return fiber
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
    const send = (reply: Reply) => write(response, reply, requestId, closing)
    let fiber: Fiber.RuntimeFiber<unknown> | undefined
    unanswered += 1
    connections.heard(socket)
    refusals.note(request, response)
    response.once("close", () => {
      unanswered -= 1
      if (unanswered === 0) onNone?.()
      // The client has gone, and nobody waits for the answer.
      if (!response.writableFinished) fiber?.unsafeInterruptAsFork(FiberId.none)
    })
    if (closing) return void send(errorReply(shuttingDown, requestId))
    receive(request, (body) => {
      connections.began(socket)
      response.once("close", () => {
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

type Exchange = Readonly<{ request: IncomingMessage; response: ServerResponse }>

/** Ends connections with a word, behind the answers that they still wait for. */
const makeRefusals = (
  runFork: (effect: Effect.Effect<void>) => Fiber.RuntimeFiber<void>,
  connections: Connections<Duplex>
) => {
  const latest = new WeakMap<Duplex, Exchange>()
  /** Why; undefined once it has been said. */
  const refused = new WeakMap<Duplex, ApiError | undefined>()

  const goOn = (socket: Duplex) => {
    const error = refused.get(socket)
    if (error === undefined || connections.working(socket) > 0) return
    refused.set(socket, undefined)
    if (!dismiss(socket, error)) return void socket.destroy()
    const fiber = runFork(
      Effect.delay(
        Effect.sync(() => socket.destroy()),
        parting
      )
    )
    socket.once("close", () => fiber.unsafeInterruptAsFork(FiberId.none))
  }

  const refuse = (error: ApiError, socket: Duplex) => {
    refused.set(socket, error)
    stopListening(socket)
    goOn(socket)
  }

  return {
    goOn,
    refuse,
    isRefused: (socket: Duplex) => refused.has(socket),
    note: (request: IncomingMessage, response: ServerResponse) => latest.set(request.socket, { request, response }),
    /** What Node itself refuses, before there is a request to answer or in the middle of one. */
    refuseUnread: (error: NodeJS.ErrnoException, socket: Duplex) => {
      // Whoever is on the way out already may say what he likes, until he has had his answers.
      if (refused.has(socket) && connections.working(socket) > 0) return
      const { request, response } = latest.get(socket) ?? {}
      const isAnswered = request?.complete === false && response?.headersSent
      // A second answer to one request would be taken for that to the next.
      if (refused.has(socket) || isAnswered || error.code === "ECONNRESET") return void socket.destroy()
      refuse(refusalOf(error), socket)
    }
  }
}
