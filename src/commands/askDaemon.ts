import type { Socket } from "node:net"
import { Effect, Schedule, Schema } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { NotUnderstood, type OperationAnswer, resultOf } from "../Control/operationResult.ts"
import {
  connect,
  DaemonAbsent,
  DaemonSilent,
  operationPath,
  post,
  socketPath,
  userHeader
} from "../Control/socketProtocol.ts"
import { readReadiness } from "../Http/readReadiness.ts"
import type { AnyOperation, Operation } from "../Operations/operation.ts"
import type { SettingsShape } from "../Settings.ts"
import { holderOf, lockedBy } from "../Sql/InstanceLock.ts"

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

/** Where a command sends its request: to the daemon of a configuration's database, or to a socket. */
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

/** Retries for 3 seconds: a daemon that starts holds the lock of its database before it listens. */
export const whileLocked = Schedule.spaced("100 millis").pipe(Schedule.upTo("3 seconds"))

const absent = (path: string, also = "") =>
  new DaemonAbsent({
    message: `This command needs a running daemon, and none listens at ${path}: start it with: systemctl start tilld (or tilld serve)${also}`
  })

const Standing = Schema.Struct({ ready: Schema.Literal(false), reason: Schema.String })

/**
 * Why nothing listens: a process that does not, or not yet, holds the lock of the database, or waits for its turn as a standby,
 * or no daemon runs.
 */
const absentAt = (place: ControlTarget) =>
  Effect.gen(function* () {
    if ("socket" in place) return yield* absent(place.socket, "; or correct TILLD_SOCKET")
    const { path } = place.database
    const holder = holderOf(path)
    if (holder === undefined) return yield* absent(`${path}.sock`)
    const standing = place.postgres === undefined ? undefined : yield* readReadiness(place, Standing)
    return yield* standing === undefined
      ? lockedBy(path, holder)
      : new DaemonAbsent({
          message: `This node, ${place.node.name}, waits as a ${standing.reason}: give the command there`
        })
  })

/**
 * Has the daemon carry out an operation. Fails as the operation does, and with `DaemonAbsent`, `InstanceLocked`,
 * `NotUnderstood` (another version), `Forbidden` (read-only socket), `ControlUnusable` or `DaemonSilent`.
 */
export const ask = Effect.fn("commands.ask")(function* <In, InJson extends object, Out, OutJson, E, R>(
  place: ControlTarget,
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  json: InJson
) {
  const attempt = Effect.gen(function* () {
    const socket = yield* "socket" in place ? connect(place.socket) : connectTo(place)
    return yield* socket === undefined ? absentAt(place) : throughDaemon(socket, operation, json)
  }).pipe(Effect.scoped)
  const answer = yield* Effect.retry(attempt, {
    schedule: whileLocked,
    while: (error) => error._tag === "InstanceLocked"
  })
  return yield* resultOf(operation, answer)
})
