import type { Socket } from "node:net"
import { Effect, Schedule, Schema } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { NotUnderstood, type OperationAnswer, resultOf } from "../Control/operationResult.ts"
import {
  ControlUnusable,
  connect,
  DaemonSilent,
  operationPath,
  post,
  socketPath,
  userHeader
} from "../Control/socketProtocol.ts"
import type { AnyOperation, Operation } from "../Operations/operation.ts"
import type { SettingsShape } from "../Settings.ts"

/** Bytes of a reply at most: many times the longest history of a payment. */
const answerBytes = 64 * 1024 * 1024
const answerDeadline = "50 seconds"

/** Has the daemon carry out an operation. */
const throughDaemon = Effect.fnUntraced(function* (socket: Socket, operation: AnyOperation, json: object) {
  const { user } = yield* Invocation
  const headers = { [userHeader]: encodeURIComponent(user) }
  const sent = post(socket, operationPath(operation), headers, JSON.stringify(json), answerBytes)
  const answer = yield* Effect.timeoutFail(sent, {
    duration: answerDeadline,
    onTimeout: () => new DaemonSilent({ what: `did not answer within ${answerDeadline}` })
  })
  if (answer === undefined) return yield* new DaemonSilent({ what: "closed the connection without an answer" })
  const body = yield* Effect.mapError(Schema.decodeUnknown(Schema.parseJson())(answer.text), NotUnderstood.of)
  return { status: answer.status, body } satisfies OperationAnswer
})

/** Loaded only where no daemon runs: it needs the store and every service that works on it. */
const offline = Effect.promise(() => import("./offline.ts"))

/**
 * Retries for 3 seconds: a daemon that starts holds the lock before it listens, and a command holds it while it works
 * without a daemon.
 */
export const whileLocked = Schedule.spaced("100 millis").pipe(Schedule.upTo("3 seconds"))

/** Where a command sends its request: to the daemon of a configuration's database, which need not run, or to a socket. */
export type ControlTarget = SettingsShape | { readonly socket: string }

/** A connection to the daemon of a database, through the socket that this user may open. Undefined where none runs. */
const connectTo = ({ control, database }: SettingsShape) =>
  Effect.flatMap(socketPath(database.path), connect).pipe(
    Effect.catchIf(
      ({ isDenied }) => isDenied === true && control.readSocket !== "",
      (denied) =>
        Effect.filterOrFail(
          connect(control.readSocket),
          (socket) => socket !== undefined,
          () => denied
        )
    )
  )

/** Asks the daemon of a database, where one runs; undefined where none does. Takes no lock, and starts nothing by itself. */
export const askRunning = Effect.fn("commands.askRunning")(function* <In, InJson extends object, Out, OutJson, E, R>(
  place: SettingsShape,
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  json: InJson
) {
  const socket = yield* connectTo(place)
  if (socket === undefined) return undefined
  return yield* resultOf(operation, yield* throughDaemon(socket, operation, json))
}, Effect.scoped)

/** Whether a daemon serves this place. */
export const isDaemonAt = (place: ControlTarget) =>
  Effect.scoped(
    Effect.map("socket" in place ? connect(place.socket) : connectTo(place), (socket) => socket !== undefined)
  )

const noDaemonAt = (path: string) =>
  new ControlUnusable({ message: `No daemon listens at ${path}: start it, or correct TILLD_SOCKET` })

/**
 * Has an operation carried out: by the daemon where one runs, otherwise in this process. Fails as it does, and with
 * `NotUnderstood` (another version), `Forbidden` (read-only socket), `ControlUnusable` or `DaemonSilent`.
 */
export const ask = Effect.fn("commands.ask")(function* <In, InJson extends object, Out, OutJson, E, R>(
  place: ControlTarget,
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  json: InJson
) {
  const attempt = Effect.gen(function* () {
    const socket = yield* "socket" in place ? connect(place.socket) : connectTo(place)
    if (socket !== undefined) return yield* throughDaemon(socket, operation, json)
    if ("socket" in place) return yield* noDaemonAt(place.socket)
    const { withoutDaemon } = yield* offline
    return yield* withoutDaemon(place, operation, json)
  }).pipe(Effect.scoped)
  const answer = yield* Effect.retry(attempt, {
    schedule: whileLocked,
    while: (error) => error._tag === "InstanceLocked"
  })
  return yield* resultOf(operation, answer)
})
