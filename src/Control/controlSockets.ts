/**
 * The control sockets of the daemon: one beside the database for all commands of its owner, and optionally one for
 * commands that only read. Each connection carries one request and one answer, a line of JSON each. The permissions of
 * the socket file decide who may use it. `main` starts the sockets as a worker.
 */
import { chmodSync, lstatSync, rmSync } from "node:fs"
import { createServer, type Server, type Socket } from "node:net"
import { Effect, Either, FiberSet, identity, Schema, type Scope } from "effect"
import type { Actor } from "../Auth/auditLog.ts"
import type { Access } from "../Auth/operation.ts"
import type { SettingsShape } from "../Settings.ts"
import { Forbidden, NotUnderstood } from "./controlRequests.ts"
import { type ControlServices, handlers } from "./handlers.ts"
import { ControlReply, ControlUnusable, checkLength, endWith, Request, readLine, socketPath } from "./socketProtocol.ts"

/** The longest request. Those of commands are much smaller. */
const requestBytes = 64 * 1024
const requestDeadline = "5 seconds"
/** A test send has 30 seconds to its status and 5 more to the end of the response. */
const answerDeadline = "40 seconds"
/** How long the client has to read the answer. At the read-only socket other requests wait meanwhile. */
const readingDeadline = { administer: "30 seconds", read: "5 seconds" } as const
/** Most concurrent connections to one socket. */
const mostConnections = 64

/** One of the two sockets. Its file permissions decide who may use it. */
interface ControlSocket {
  readonly path: string
  /** The owner's socket administers, the other one only reads. */
  readonly access: Access
}

/** Carries out the request in a line. A line that is no request of this version is refused. */
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

/** Carries out a request and waits until its answer has been read, since the answer is in memory until then. */
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
 * Serves one request. A defect of its handler is reported to the client, and then ends the daemon like any other defect;
 * except at the read-only socket: its users must not be able to end the daemon, and a read leaves nothing half done.
 */
const serveOne = (connection: Socket, at: ControlSocket, inTurn: InTurn) =>
  Effect.gen(function* () {
    const socket = yield* Effect.acquireRelease(
      // An "error" is followed by "close", which is handled.
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

/** Removes the socket of a dead daemon. Fails when the file is not a socket. */
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
      // Safe: the instance lock guarantees that no other daemon is running.
      removeSocket(path),
      Effect.async<Server, ControlUnusable>((resume) => {
        const server = createServer()
        server.maxConnections = mostConnections
        server.once("error", (cause) => resume(unusable(path, cause)))
        server.listen(path, () => {
          // For the owner and the group, which is that of the folder if it is setgid. Before this the umask has excluded
          // others.
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
 * The read-only socket is a convenience: failing to open it does not stop the daemon. It serves one request at a time, so
 * that its users cannot keep the daemon from its work.
 */
const listenForReaders = (socket: string, run: Run) =>
  Effect.gen(function* () {
    const path = yield* checkLength(socket, "give control.read_socket a shorter one")
    const turn = yield* Effect.makeSemaphore(1)
    const server = yield* listen(path)
    server.on("connection", (connection) => run(serveOne(connection, { path, access: "read" }, turn.withPermits(1))))
  }).pipe(Effect.catchTag("ControlUnusable", ({ message }) => Effect.logError(message)))

/**
 * Listens beside the database, whose lock the caller holds, and at `control.read_socket` if configured, until the scope
 * closes. Returns the worker that stands for the requests: it fails with the first defect of a request, and never ends
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
  // `identity`: the worker is the effect that waits for the first request that ends in a defect.
  Effect.map(FiberSet.join)
)
