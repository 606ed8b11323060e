import { chmodSync, lstatSync, rmSync } from "node:fs"
import { createServer, type Server, type Socket } from "node:net"
import { Effect, Either, FiberSet, identity, Schema, type Scope } from "effect"
import type { Actor } from "../Auth/audit.ts"
import type { SettingsShape } from "../Settings.ts"
import type { Access } from "./handler.ts"
import { type ControlServices, handlers } from "./handlers.ts"
import { Forbidden, NotUnderstood } from "./requests.ts"
import { ControlReply, ControlUnusable, checkLength, endWith, Request, readLine, socketPath } from "./wire.ts"

/** Requests are small; a longer one is not from a command of ours. */
const requestBytes = 64 * 1024
const requestDeadline = "5 seconds"
/** A test send has 30 seconds to its status and 5 more to the end of the answer. */
const answerDeadline = "40 seconds"
/** For whoever reads the answer; at the second socket the others wait meanwhile. */
const readingDeadline = { administer: "30 seconds", read: "5 seconds" } as const
/** To one socket, at the same time. */
const mostConnections = 64

/** One of the two sockets: who may open its file may do what it serves. */
interface ControlSocket {
  readonly path: string
  /** The owner's is for everything, the other one for what only reads. */
  readonly access: Access
}

/** Does what a line asks for. A line that is no request of this version is refused. */
const handleLine = (line: string, { access, path }: ControlSocket) =>
  Effect.gen(function* () {
    const { request, user } = yield* Effect.mapError(Schema.decodeUnknown(Request)(line), NotUnderstood.of)
    const handler = handlers.get(request._tag)
    if (handler === undefined) return yield* NotUnderstood.of()
    if (access === "read" && handler.access !== "read") return yield* Forbidden.at(path)
    const actor: Actor = { via: "socket", who: user }
    return yield* handler.handle(request, actor)
  })

/** Whether a request waits for others before it is carried out. */
type InTurn = <A, E, R>(request: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const reply = Schema.encodeSync(ControlReply)

/** Carries a line out, and waits until its answer has been read: so long it is held in memory. */
const answerTo = (line: string, socket: Socket, at: ControlSocket) =>
  Effect.gen(function* () {
    const answer = yield* Effect.timeout(handleLine(line, at), answerDeadline).pipe(
      Effect.catchTags({
        Forbidden: ({ message }) => Effect.succeed({ forbidden: message }),
        NotUnderstood: ({ message }) => Effect.succeed({ refused: message }),
        TimeoutException: () => Effect.succeed({ refused: `The daemon did not answer within ${answerDeadline}` })
      })
    )
    const send = (text: string) => Effect.timeoutOption(endWith(socket, text), readingDeadline[at.access])
    if (!("exit" in answer)) return yield* Effect.asVoid(send(reply(answer)))
    yield* send(reply({ exit: answer.exit }))
    if (answer.defect === undefined) return
    if (at.access === "administer") return yield* Effect.failCause(answer.defect)
    yield* Effect.logError("a request that only reads failed", answer.defect)
  })

/**
 * One request and its answer. A defect of its handler is answered too, and then ends the daemon as any other does; but not
 * one of who only reads: it leaves nothing half done, and they must not end what they may only look at.
 */
const serveOne = (connection: Socket, at: ControlSocket, inTurn: InTurn) =>
  Effect.gen(function* () {
    const socket = yield* Effect.acquireRelease(
      // An error is followed by "close", which is where it counts.
      Effect.sync(() => connection.on("error", () => undefined)),
      () => Effect.sync(() => connection.destroy())
    )
    const line = yield* Effect.timeoutTo(readLine(socket, requestBytes), {
      duration: requestDeadline,
      onTimeout: () => undefined,
      onSuccess: (line) => line
    })
    if (line === undefined) return
    yield* inTurn(answerTo(line, socket, at))
  }).pipe(Effect.scoped)

/** What a dead daemon left goes; anything else is not ours to remove. */
const removeSocket = (path: string): Effect.Effect<void, ControlUnusable> =>
  Effect.suspend(() => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return Effect.void
    if (found.isSocket()) return Effect.sync(() => rmSync(path, { force: true }))
    return new ControlUnusable({ message: `The control socket ${path} cannot be made: something else is there` })
  })

const unusable = (path: string, cause: Error) =>
  new ControlUnusable({
    message: `The control socket ${path} cannot be made (${cause.message}): check that its folder is there, and its permissions`
  })

const listen = (path: string): Effect.Effect<Server, ControlUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.zipRight(
      // Whoever holds the instance lock is the only daemon.
      removeSocket(path),
      Effect.async<Server, ControlUnusable>((resume) => {
        const server = createServer()
        server.maxConnections = mostConnections
        server.once("error", (cause) => resume(unusable(path, cause)))
        server.listen(path, () => {
          // For the owner and the group, which is the folder's where that says so (setgid). Until here the umask has kept
          // others out.
          const mode = Either.try({
            try: () => chmodSync(path, 0o660),
            catch: (cause) => unusable(path, cause as Error)
          })
          resume(Either.map(mode, () => server))
        })
      })
    ),
    (server) => Effect.async<void>((resume) => void server.close(() => resume(Effect.void)))
  )

type Run = (request: Effect.Effect<void, never, ControlServices>) => void

/**
 * The second socket is a convenience, which must not keep payments from being taken. One request at a time: who may only
 * read must not keep the daemon from its work either.
 */
const listenForReaders = (socket: string, run: Run) =>
  Effect.gen(function* () {
    const path = yield* checkLength(socket, "give control.read_socket a shorter one")
    const turn = yield* Effect.makeSemaphore(1)
    const server = yield* listen(path)
    server.on("connection", (connection) => run(serveOne(connection, { path, access: "read" }, turn.withPermits(1))))
  }).pipe(Effect.catchTag("ControlUnusable", ({ message }) => Effect.logError(message)))

/**
 * Listens beside the database, whose lock the caller holds, and at `control.read_socket`, where there is one, until the
 * scope closes. Gives the worker that stands for what is done there: it ends with the first defect of a request, and never
 * otherwise.
 */
export const startSockets = Effect.fn("Control.start")(
  function* ({ control, database }: Pick<SettingsShape, "control" | "database">) {
    const requests = yield* FiberSet.make<void, never>()
    const run = yield* FiberSet.runtime(requests)<ControlServices>()
    const path = yield* socketPath(database.path)
    const server = yield* listen(path)
    server.on("connection", (connection) => run(serveOne(connection, { path, access: "administer" }, identity)))
    if (control.readSocket !== "") yield* listenForReaders(control.readSocket, run)
    return requests
  },
  // Read as: the worker is the wait for the first request that ends in a defect.
  Effect.map(FiberSet.join)
)
