import { chmodSync, rmSync } from "node:fs"
import { createServer, type Server, type Socket } from "node:net"
import { Effect, FiberSet, Schema, type Scope } from "effect"
import type { Answer } from "./handler.ts"
import { type ControlServices, chained, plain, sealed, sending } from "./handlers.ts"
import { NotUnderstood } from "./requests.ts"
import { ControlUnusable, endWith, Reply, readLine, socketPath } from "./wire.ts"

/** Requests are small; a longer one is not from a command of ours. */
const requestBytes = 64 * 1024
const requestDeadline = "5 seconds"
/** A test send has 30 seconds to its status and 5 more to the end of the answer. */
const answerDeadline = "40 seconds"

const Tagged = Schema.parseJson(Schema.Struct({ _tag: Schema.String }, { key: Schema.String, value: Schema.Unknown }))

/** Does what a line asks for. A line that is no request of this version is refused. */
const handle = (line: string): Effect.Effect<Answer, NotUnderstood, ControlServices> =>
  Effect.gen(function* () {
    const request = yield* Effect.mapError(Schema.decodeUnknown(Tagged)(line), NotUnderstood.of)
    const { _tag: tag } = request
    const handler = plain.get(tag) ?? sealed.get(tag) ?? chained.get(tag) ?? sending.get(tag)
    if (handler === undefined) return yield* NotUnderstood.of()
    return yield* handler(request)
  })

const reply = Schema.encodeSync(Reply)

/** One request and its answer. A defect of its handler is answered too, and then ends the daemon as any other does. */
const serveOne = (connection: Socket) =>
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
    const answer = yield* Effect.timeout(handle(line), answerDeadline).pipe(
      Effect.catchTags({
        NotUnderstood: ({ message }) => Effect.succeed({ refused: message }),
        TimeoutException: () => Effect.succeed({ refused: `The daemon did not answer within ${answerDeadline}` })
      })
    )
    if ("refused" in answer) return yield* endWith(socket, reply(answer))
    yield* endWith(socket, reply({ exit: answer.exit }))
    if (answer.defect !== undefined) return yield* Effect.failCause(answer.defect)
  }).pipe(Effect.scoped)

const listen = (path: string): Effect.Effect<Server, ControlUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<Server, ControlUnusable>((resume) => {
      // Whoever holds the instance lock is the only daemon: a file that is there is a dead one's.
      rmSync(path, { force: true })
      const server = createServer()
      server.once("error", (cause) => {
        const message = `The control socket ${path} cannot be made (${cause.message}): check the folder's permissions`
        resume(Effect.fail(new ControlUnusable({ message })))
      })
      server.listen(path, () => {
        // For the owner and the group. Until here the umask has kept others out.
        chmodSync(path, 0o660)
        resume(Effect.succeed(server))
      })
    }),
    (server) => Effect.async<void>((resume) => void server.close(() => resume(Effect.void)))
  )

/**
 * Listens beside the database, whose lock the caller holds, until the scope closes. Gives the worker that stands for what
 * is done there: it ends with the first defect of a request, and never otherwise.
 */
export const start = Effect.fn("Control.start")(
  function* (database: string) {
    const path = yield* socketPath(database)
    const server = yield* listen(path)
    const requests = yield* FiberSet.make<void, never>()
    const run = yield* FiberSet.runtime(requests)<ControlServices>()
    server.on("connection", (connection) => run(serveOne(connection)))
    return requests
  },
  // Read as: the worker is the wait for the first request that ends in a defect.
  Effect.map(FiberSet.join)
)
