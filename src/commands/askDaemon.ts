import type { Socket } from "node:net"
import { Effect, Schedule, Schema } from "effect"
import type { ControlAnswer } from "../Control/controlHandler.ts"
import { Forbidden, NotUnderstood } from "../Control/controlRequests.ts"
import { Invocation } from "../Control/Invocation.ts"
import {
  ControlReply,
  ControlUnusable,
  connect,
  DaemonSilent,
  readLine,
  socketPath
} from "../Control/socketProtocol.ts"
import type { SettingsShape } from "../Settings.ts"

/** The longest history of a payment fits many times. */
const answerBytes = 64 * 1024 * 1024
const answerDeadline = "50 seconds"

const silent = new DaemonSilent({
  message: `The daemon did not answer within ${answerDeadline}, or ended meanwhile: look at its log, and whether it was done`
})

/** Has the daemon do it. */
const throughDaemon = Effect.fnUntraced(function* (socket: Socket, request: unknown) {
  const { user } = yield* Invocation
  yield* Effect.sync(() => socket.on("error", () => undefined).write(`${JSON.stringify({ user, request })}\n`))
  const line = yield* Effect.timeoutFail(readLine(socket, answerBytes), {
    duration: answerDeadline,
    onTimeout: () => silent
  })
  if (line === undefined) return yield* silent
  const reply = yield* Effect.mapError(Schema.decodeUnknown(ControlReply)(line), NotUnderstood.of)
  if ("refused" in reply) return yield* new NotUnderstood({ message: reply.refused })
  if ("forbidden" in reply) return yield* new Forbidden({ message: reply.forbidden })
  return { exit: reply.exit, defect: undefined } satisfies ControlAnswer
})

/** Read in only where no daemon runs: it needs the store and all that works on it. */
const alone = Effect.promise(() => import("./offline.ts"))

// A daemon that is starting holds the lock before it listens, and other commands hold it for a moment.
export const whileLocked = Schedule.spaced("100 millis").pipe(Schedule.upTo("3 seconds"))

/** Where a command asks: the daemon of a configuration's database, which need not run, or whoever listens at a socket. */
export type Place = SettingsShape | { readonly socket: string }

/** A connection to the daemon of a database, undefined where none runs: to the socket that this user may open. */
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

const nobodyAt = (path: string) =>
  new ControlUnusable({ message: `No daemon listens at ${path}: start it, or correct TILLD_SOCKET` })

/** Asks the daemon at a place, or does it here where none runs. `command` names it to whoever finds it at work. */
export const askDaemon = Effect.fn("commands.ask")(function* <
  Request extends { readonly _tag: string },
  I,
  A,
  AI,
  E,
  EI
>(
  place: Place,
  command: string,
  request: Request & Schema.SerializableWithResult<Request, I, never, A, AI, E, EI, never>
) {
  const input = yield* Effect.orDie(Schema.serialize(request))
  const attempt = Effect.gen(function* () {
    const socket = yield* "socket" in place ? connect(place.socket) : connectTo(place)
    if (socket !== undefined) return yield* throughDaemon(socket, input)
    if ("socket" in place) return yield* nobodyAt(place.socket)
    const { withoutDaemon } = yield* alone
    return yield* withoutDaemon(place, command, request._tag, input)
  }).pipe(Effect.scoped)
  const answer = yield* Effect.retry(attempt, {
    schedule: whileLocked,
    while: (error) => error._tag === "InstanceLocked"
  })
  if (answer.defect !== undefined) return yield* Effect.failCause(answer.defect)
  const exit = yield* Effect.mapError(Schema.deserializeExit(request, answer.exit), NotUnderstood.of)
  return yield* exit
})
