import type { Socket } from "node:net"
import { Effect, Schedule, Schema } from "effect"
import type { SettingsShape } from "../Settings.ts"
import type { Answer } from "./handler.ts"
import { NotUnderstood } from "./requests.ts"
import { connect, DaemonSilent, Reply, readLine, socketPath } from "./wire.ts"

/** The longest history of a payment fits many times. */
const answerBytes = 64 * 1024 * 1024
const answerDeadline = "50 seconds"

const silent = new DaemonSilent({
  message: `The daemon did not answer within ${answerDeadline}, or ended meanwhile: look at its log, and whether it was done`
})

/** Has the daemon do it. */
const throughDaemon = Effect.fnUntraced(function* (socket: Socket, input: unknown) {
  yield* Effect.sync(() => socket.on("error", () => undefined).write(`${JSON.stringify(input)}\n`))
  const line = yield* Effect.timeoutFail(readLine(socket, answerBytes), {
    duration: answerDeadline,
    onTimeout: () => silent
  })
  if (line === undefined) return yield* silent
  const reply = yield* Effect.mapError(Schema.decodeUnknown(Reply)(line), NotUnderstood.of)
  if ("refused" in reply) return yield* new NotUnderstood({ message: reply.refused })
  return { exit: reply.exit, defect: undefined } satisfies Answer
})

/** Read in only where no daemon runs: it needs the store and all that works on it. */
const alone = Effect.promise(() => import("./alone.ts"))

// A daemon that is starting holds the lock before it listens, and other commands hold it for a moment.
export const whileLocked = Schedule.spaced("100 millis").pipe(Schedule.upTo("3 seconds"))

/** Asks the daemon of the database, or does it here where none runs. `command` names it to whoever finds it at work. */
export const ask = Effect.fn("commands.ask")(function* <Request extends { readonly _tag: string }, I, A, AI, E, EI>(
  settings: SettingsShape,
  command: string,
  request: Request & Schema.SerializableWithResult<Request, I, never, A, AI, E, EI, never>
) {
  const path = yield* socketPath(settings.database.path)
  const input = yield* Effect.orDie(Schema.serialize(request))
  const attempt = Effect.gen(function* () {
    const socket = yield* connect(path)
    if (socket !== undefined) return yield* throughDaemon(socket, input)
    const { withoutDaemon } = yield* alone
    return yield* withoutDaemon(settings, command, request._tag, input)
  }).pipe(Effect.scoped)
  const answer = yield* Effect.retry(attempt, {
    schedule: whileLocked,
    while: (error) => error._tag === "InstanceLocked"
  })
  if (answer.defect !== undefined) return yield* Effect.failCause(answer.defect)
  const exit = yield* Effect.mapError(Schema.deserializeExit(request, answer.exit), NotUnderstood.of)
  return yield* exit
})
