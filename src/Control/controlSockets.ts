/**
 * The control sockets of the daemon: one beside the database for all operations, and optionally one for those that only
 * read. They speak HTTP: `POST /keys/create` with a JSON body, `GET /payments/list?status=pending`; `GET /` lists all
 * operations. The permissions of the socket file decide who may use it. `main` starts the sockets as a worker.
 */
import { chmodSync, lstatSync, rmSync } from "node:fs"
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { Deferred, Effect, Either, FiberSet, identity, Predicate } from "effect"
import { ApiError, invalid } from "../Domain/ApiError.ts"
import { type Body, parseBody } from "../Http/body.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import { makeServer } from "../Http/listener.ts"
import type { Respond } from "../Http/respond.ts"
import { cut } from "../lib/text.ts"
import { type Access, type AnyOperation, type Flag, fieldsOf, jsonOfQuery } from "../Operations/operation.ts"
import type { SettingsShape } from "../Settings.ts"
import { answerTo, errorAnswer, ownError, refusalCode } from "./operationAnswer.ts"
import { Forbidden, type OperationAnswer } from "./operationResult.ts"
import { allOperations, type ControlServices } from "./operations.ts"
import { ControlUnusable, checkLength, operationPath, socketPath, userHeader } from "./socketProtocol.ts"

/** Most concurrent connections to one socket. */
const mostConnections = 64
/** Limits of both sockets. One request a connection, so that no more wait than there may be connections. */
const limits = {
  ...{ headersTimeout: 5_000, requestTimeout: 5_000, drainTimeout: 0 },
  ...{ total: mostConnections, pipelined: 1 }
}
/** A test send has 30 seconds to its status and 5 more to the end of the response. */
const answerDeadline = "40 seconds"

/** One of the two sockets. Its file permissions decide who may use it. */
interface ControlSocket {
  readonly path: string
  /** The owner's socket administers, the other one only reads. */
  readonly access: Access
}

const byPath = new Map(allOperations.map((each) => [operationPath(each), each]))

/** Texts of a form or a query that stand for other JSON: `none` for null. */
const wordsIn = (flag: Flag | undefined) => (flag?.words === undefined ? {} : { words: flag.words })

/** What `GET /` answers: each operation with what it takes, and the codes of its refusals. */
const directory = allOperations.map((each) => ({
  path: operationPath(each),
  ...{ access: each.access, summary: each.summary },
  input: Object.fromEntries(
    fieldsOf(each.fields).map(({ about, flag, isOptional, kind, name }) => [
      name,
      { about, type: kind.is, optional: isOptional, ...("of" in kind ? { of: kind.of } : {}), ...wordsIn(flag) }
    ])
  ),
  refusals: each.refusals.map(refusalCode)
}))

const unknown = ownError("UNKNOWN_OPERATION", "There is no operation at this path: GET / lists all of them.")

/** The user name that a client claims; only for the audit log. */
const userOf = ({ headers }: IncomingMessage): string => {
  const claimed = Either.getOrElse(
    Either.try(() => decodeURIComponent(String(headers[userHeader] ?? ""))),
    () => ""
  )
  return cut(claimed, 200) || "not named"
}

const isForm = /^application\/x-www-form-urlencoded\s*(;|$)/i

/** The input as JSON: of a body, JSON or a form, and of the query. */
const inputOf = (operation: AnyOperation, { headers }: IncomingMessage, body: Body, query: string) => {
  const asked = jsonOfQuery(operation.fields, new URLSearchParams(query))
  const given =
    body !== undefined && isForm.test(headers["content-type"] ?? "")
      ? Either.right(jsonOfQuery(operation.fields, new URLSearchParams(body.toString("utf8"))))
      : Either.mapLeft(parseBody(headers, body), (error) =>
          error.code === "UNSUPPORTED_MEDIA_TYPE"
            ? new ApiError({ code: error.code, message: `${error.message} A form is taken too.` })
            : error
        )
  return Either.flatMap(given, (json) => {
    if (query === "" || !Predicate.isRecord(json)) return Either.right(json)
    const twice = Object.keys(asked).find((name) => Object.hasOwn(json, name))
    return twice === undefined
      ? Either.right({ ...json, ...asked })
      : Either.left(invalid([{ path: twice, message: "is in the query and in the body" }]))
  })
}

/** Receives a request. Returns what answers it. */
const receive = Effect.fnUntraced(function* (
  request: IncomingMessage,
  body: Effect.Effect<Body>,
  { access, path: socket }: ControlSocket
): Effect.fn.Return<{ readonly answer: Effect.Effect<OperationAnswer, never, ControlServices> }> {
  const [path = "", ...queries] = (request.url ?? "").split("?")
  if (path === "/" && request.method === "GET") return { answer: Effect.succeed({ status: 200, body: directory }) }
  const operation = byPath.get(path)
  if (operation === undefined) return { answer: Effect.succeed(unknown) }
  if (request.method !== "POST" && !(request.method === "GET" && operation.access === "read")) {
    const takes = operation.access === "read" ? ["GET", "POST"] : ["POST"]
    const refused = ownError("METHOD_NOT_ALLOWED", `This operation takes ${takes.join(" or ")}.`)
    return { answer: Effect.succeed({ ...refused, allow: takes.join(", ") }) }
  }
  if (access === "read" && operation.access !== "read") {
    return { answer: Effect.succeed(ownError("FORBIDDEN", Forbidden.at(socket).message)) }
  }
  const input = inputOf(operation, request, yield* body, queries.join("?"))
  if (Either.isLeft(input)) {
    const { code, details, message } = input.left
    return { answer: Effect.succeed(errorAnswer(code, message, details)) }
  }
  return { answer: answerTo(operation, input.right, { via: "socket", who: userOf(request) }) }
})

/** Completes once the connection is closed: the answer has been read, or is not in memory any longer. */
const closed = (socket: Socket) =>
  Effect.async<void>((resume) => {
    if (socket.closed) resume(Effect.void)
    else socket.once("close", () => resume(Effect.void))
  })

/**
 * Gives the answer as the reply, and waits until it has been read. A defect is reported to the client, and then ends the
 * daemon like any other defect; except at the read-only socket: its users must not be able to end the daemon, and a read
 * leaves nothing half done.
 */
const carryOutAt = Effect.fnUntraced(function* (
  { access }: ControlSocket,
  { socket }: IncomingMessage,
  answer: Effect.Effect<OperationAnswer, never, ControlServices>,
  reply: Deferred.Deferred<HttpReply>
) {
  const { allow, body, defect, status } = yield* Effect.timeoutTo(answer, {
    duration: answerDeadline,
    onTimeout: () => ownError("REQUEST_TIMEOUT", `did not answer within ${answerDeadline}`),
    onSuccess: identity<OperationAnswer>
  })
  const headers = { connection: "close", ...(allow && { allow }) }
  yield* Deferred.succeed(reply, { status, headers, text: `${JSON.stringify(body)}\n` })
  yield* closed(socket)
  if (defect === undefined) return
  if (access === "administer") return yield* Effect.failCause(defect)
  yield* Effect.logError("a request that only reads failed", defect)
})

type Run = (request: Effect.Effect<void, never, ControlServices>) => void

/**
 * Answers the requests of a socket in their turns. A client that goes before its turn is forgotten; an operation that has
 * begun is carried out, in a fiber of its own. A body is received before the turn: one that never arrives keeps no one
 * waiting.
 */
const respondAt =
  (at: ControlSocket, run: Run, turns: Effect.Semaphore): Respond =>
  (request, arriving) =>
    Effect.flatMap(receive(request, arriving, at), ({ answer }) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          yield* restore(turns.take(1))
          const reply = yield* Deferred.make<HttpReply>()
          run(Effect.ensuring(carryOutAt(at, request, answer, reply), turns.release(1)))
          return yield* restore(Deferred.await(reply))
        })
      )
    )

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

/**
 * Requests at the read-only socket wait for each other, and for their answers to be read, so that its users cannot keep the
 * daemon from its work.
 */
const listenAt = Effect.fnUntraced(function* (at: ControlSocket, run: Run) {
  const { access, path } = at
  // Safe: the instance lock guarantees that no other daemon is running.
  yield* removeSocket(path)
  const [atOnce, answerTimeout] = access === "read" ? [1, 5_000] : [mostConnections, 30_000]
  const turns = yield* Effect.makeSemaphore(atOnce)
  const { server } = yield* makeServer(respondAt(at, run, turns), { ...limits, answerTimeout })
  // An operation may take longer than its client has to read the answer.
  server.timeout = 0
  yield* Effect.async<void, ControlUnusable>((resume) => {
    server.once("error", (cause) => resume(unusable(path, cause)))
    server.listen(path, () => {
      // For the owner and the group, which is that of the folder if it is setgid. Before this the umask has excluded others.
      resume(Either.try({ try: () => chmodSync(path, 0o660), catch: (cause) => unusable(path, cause as Error) }))
    })
  })
})

/** The read-only socket is a convenience: failing to open it does not stop the daemon. */
const listenForReaders = (socket: string, run: Run) =>
  checkLength(socket, "give control.read_socket a shorter one").pipe(
    Effect.flatMap((path) => listenAt({ path, access: "read" }, run)),
    Effect.catchTag("ControlUnusable", ({ message }) => Effect.logError(message))
  )

/**
 * Listens beside the database, whose lock the caller holds, and at `control.read_socket` if configured, until the scope
 * closes. Returns the worker that stands for the requests: it fails with the first defect of a request, and never ends
 * otherwise.
 */
export const startSockets = Effect.fn("Control.start")(
  function* ({ control, database }: Pick<SettingsShape, "control" | "database">) {
    const requests = yield* FiberSet.make<void, never>()
    const run = yield* FiberSet.runtime(requests)<ControlServices>()
    yield* listenAt({ path: yield* socketPath(database.path), access: "administer" }, run)
    if (control.readSocket !== "") yield* listenForReaders(control.readSocket, run)
    return requests
  },
  // `identity`: the worker is the effect that waits for the first request that ends in a defect.
  Effect.map(FiberSet.join)
)
