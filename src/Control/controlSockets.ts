/**
 * The control sockets of the daemon: one beside the database for all operations, and optionally one for those that only
 * read. They speak HTTP: `POST /keys/create` with a JSON body, `GET /payments/list?status=pending`; `GET /` lists all
 * operations. The permissions of the socket file decide who may use it. `main` starts the sockets as a worker.
 */
import { chmodSync, lstatSync, rmSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { Effect, Either, FiberSet, identity, Predicate, type Scope } from "effect"
import type { Actor } from "../Auth/auditLog.ts"
import { type Flag, fieldsOf, jsonOfQuery } from "../Auth/inputText.ts"
import type { Access, AnyOperation } from "../Auth/operation.ts"
import { ApiError, invalid } from "../Domain/ApiError.ts"
import { hasBody, noBody, parseBody, receiveBody } from "../Http/body.ts"
import type { SettingsShape } from "../Settings.ts"
import { Forbidden } from "./controlErrors.ts"
import { answerTo, errorAnswer, ownError, refusalCode } from "./operationAnswer.ts"
import type { OperationAnswer } from "./operationResult.ts"
import { allOperations, type ControlServices } from "./operations.ts"
import { ControlUnusable, checkLength, operationPath, socketPath, userHeader } from "./socketProtocol.ts"

/** Milliseconds for a request to arrive, and how often connections are looked through for it. */
const arrival = { headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 1_000 } as const
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

const byPath: ReadonlyMap<string, AnyOperation<ControlServices>> = new Map(
  allOperations.map((each) => [operationPath(each), each as AnyOperation<ControlServices>])
)

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
  return claimed.slice(0, 200) || "not named"
}

const isForm = /^application\/x-www-form-urlencoded\s*(;|$)/i

/** The input as JSON: of a body, JSON or a form, and of the query. */
const inputOf = Effect.fnUntraced(function* (operation: AnyOperation, request: IncomingMessage, query: string) {
  const arriving = hasBody(request) ? receiveBody(request, { onPiece: () => {}, reserve: () => true }) : noBody
  const body = yield* arriving.body
  const asked = jsonOfQuery(operation.fields, new URLSearchParams(query))
  const given =
    body !== undefined && isForm.test(request.headers["content-type"] ?? "")
      ? Either.right(jsonOfQuery(operation.fields, new URLSearchParams(body.toString("utf8"))))
      : Either.mapLeft(parseBody(request.headers, body), (error) =>
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
})

/** A request that has arrived, and the effect that answers it. */
interface Received {
  readonly answer: Effect.Effect<OperationAnswer, never, ControlServices>
}

/** Receives a request. Gives what carries it out, or the answer to one that cannot be. */
const receive = Effect.fnUntraced(function* (
  request: IncomingMessage,
  { access, path: socket }: ControlSocket
): Effect.fn.Return<Received> {
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
  const input = yield* inputOf(operation, request, queries.join("?"))
  if (Either.isLeft(input)) {
    const { code, details, message } = input.left
    return { answer: Effect.succeed(errorAnswer(code, message, details)) }
  }
  const actor: Actor = { via: "socket", who: userOf(request) }
  return { answer: answerTo(operation, input.right, actor) }
})

/** Whether a request waits for others before it is carried out. */
type InTurn = <A, E, R>(request: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Sends an answer. Completes when it is written or the client has gone. */
const send = (response: ServerResponse, { allow, body, status }: OperationAnswer) =>
  Effect.async<void>((resume) => {
    const text = Buffer.from(`${JSON.stringify(body)}\n`)
    const headers = {
      "content-type": "application/json",
      "content-length": text.length,
      connection: "close",
      ...(allow && { allow })
    }
    response.once("close", () => resume(Effect.void))
    response.writeHead(status, headers).end(text)
  })

/**
 * Serves one request, and waits until its answer has been read, since the answer is in memory until then. A client that goes
 * before its turn is forgotten; an operation that has begun is carried out. A defect is reported to the client, and then ends
 * the daemon like any other defect; except at the read-only socket: its users must not be able to end the daemon, and a read
 * leaves nothing half done.
 */
const serveOne = (request: IncomingMessage, response: ServerResponse, at: ControlSocket, inTurn: InTurn) => {
  let hasBegun = false
  let isGone = false
  const gone = Effect.async<void>((resume) => {
    response.once("close", () => {
      isGone = true
      if (!hasBegun) resume(Effect.void)
    })
  })
  const answering = (answer: Effect.Effect<OperationAnswer, never, ControlServices>) =>
    Effect.gen(function* () {
      hasBegun = true
      const { defect, ...given } = yield* Effect.timeoutTo(answer, {
        duration: answerDeadline,
        onTimeout: () => ownError("REQUEST_TIMEOUT", `did not answer within ${answerDeadline}`),
        onSuccess: identity<OperationAnswer>
      })
      if (!isGone) yield* Effect.timeoutOption(send(response, given), readingDeadline[at.access])
      response.destroy()
      if (defect === undefined) return
      if (at.access === "administer") return yield* Effect.failCause(defect)
      yield* Effect.logError("a request that only reads failed", defect)
    })
  // A body is received before the turn: one that never arrives keeps no one waiting.
  const served = Effect.flatMap(receive(request, at), ({ answer }) => inTurn(answering(answer)))
  return Effect.raceFirst(served, gone)
}

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

type Run = (request: Effect.Effect<void, never, ControlServices>) => void

const listen = (at: ControlSocket, run: Run, inTurn: InTurn): Effect.Effect<Server, ControlUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.zipRight(
      // Safe: the instance lock guarantees that no other daemon is running.
      removeSocket(at.path),
      Effect.async<Server, ControlUnusable>((resume) => {
        const { path } = at
        const server = createServer(arrival, (request, response) => run(serveOne(request, response, at, inTurn)))
        server.maxConnections = mostConnections
        // One request a connection, so that no more wait than there may be connections.
        server.maxRequestsPerSocket = 1
        server.on("dropRequest", (_, socket) => socket.destroy())
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
    (server) =>
      Effect.async<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
      })
  )

/**
 * The read-only socket is a convenience: failing to open it does not stop the daemon. It serves one request at a time, so
 * that its users cannot keep the daemon from its work.
 */
const listenForReaders = (socket: string, run: Run) =>
  Effect.gen(function* () {
    const path = yield* checkLength(socket, "give control.read_socket a shorter one")
    const turn = yield* Effect.makeSemaphore(1)
    yield* listen({ path, access: "read" }, run, turn.withPermits(1))
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
    yield* listen({ path: yield* socketPath(database.path), access: "administer" }, run, identity)
    if (control.readSocket !== "") yield* listenForReaders(control.readSocket, run)
    return requests
  },
  // `identity`: the worker is the effect that waits for the first request that ends in a defect.
  Effect.map(FiberSet.join)
)
