/**
 * What a client reads of the answer to an operation. It loads nothing that the daemon needs to make one.
 */
import { type Cause, Effect, Either, Predicate, Schema } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"
import type { Operation } from "../Operations/operation.ts"
import { DaemonSilent } from "./socketProtocol.ts"

/** The daemon and the command are of different versions. */
export class NotUnderstood extends Schema.TaggedError<NotUnderstood>()("NotUnderstood", { message: Schema.String }) {
  static readonly of = () =>
    new NotUnderstood({
      message: "The daemon does not understand this command: it runs another version of tilld; restart it"
    })
  /** A command of this version has checked its input. */
  static readonly because = (problems: ReadonlyArray<FieldProblem>) =>
    new NotUnderstood({
      message: `The daemon refuses this command: ${problems.map(({ message, path }) => `${path} ${message}`.trim()).join("; ")}. If it runs another version of tilld, restart it`
    })
}

/** The request came over the read-only socket, and administers. */
export class Forbidden extends Schema.TaggedError<Forbidden>()("Forbidden", { message: Schema.String }) {
  static readonly at = (path: string) =>
    new Forbidden({
      message:
        `Not allowed: ${path} takes commands that only read, and this one does more. Use the socket beside the ` +
        "database, as a user of the daemon's group; a command, without TILLD_SOCKET"
    })
}

/** The answer to an operation, as HTTP has it: the output as JSON with the status 200, or an error in the API's shape. */
export interface OperationAnswer {
  readonly status: number
  readonly body: unknown
  /** The methods that the path takes, where another one was used. */
  readonly allow?: string
  /** Set when a defect ended the operation: a bug, which must also end the daemon. */
  readonly defect?: Cause.Cause<never>
}

/** The codes of the socket besides those of refusals, which are their names: `KEY_ENDED`. */
export type OwnCode =
  | "VALIDATION_ERROR"
  | "UNKNOWN_OPERATION"
  | "METHOD_NOT_ALLOWED"
  | "FORBIDDEN"
  | "REQUEST_TIMEOUT"
  | "TOO_MANY_CONNECTIONS"
  | "INTERNAL"

/** `KEY_ENDED` as `KeyEnded`. */
const tagOf = (code: string): string =>
  code.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())

const problemsIn = Schema.decodeUnknownEither(
  Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))
)

const ErrorBody = Schema.Struct({
  error: Schema.Struct({ code: Schema.String, message: Schema.String, details: Schema.optional(Schema.Unknown) })
})

/**
 * The result of an operation by its answer. Fails as the operation does, and with `NotUnderstood` (a daemon of another
 * version), `Forbidden` (the read-only socket) or `DaemonSilent`.
 */
export const resultOf = Effect.fnUntraced(function* <In, InJson, Out, OutJson, E, R>(
  { output, refusal }: Operation<In, InJson, Out, OutJson, E, R>,
  { body, status }: OperationAnswer
): Effect.fn.Return<Out, E | NotUnderstood | Forbidden | DaemonSilent> {
  if (status === 200) return yield* Effect.mapError(Schema.decodeUnknown(output)(body), NotUnderstood.of)
  const { error } = yield* Effect.mapError(Schema.decodeUnknown(ErrorBody)(body), NotUnderstood.of)
  const { code, details, message } = error
  switch (code as OwnCode) {
    case "INTERNAL":
      return yield* Effect.die(message)
    case "FORBIDDEN":
      return yield* new Forbidden({ message })
    case "VALIDATION_ERROR":
      return yield* NotUnderstood.because(Either.getOrElse(problemsIn(details), () => [{ path: "", message }]))
    case "REQUEST_TIMEOUT":
      return yield* new DaemonSilent({ what: message })
    case "TOO_MANY_CONNECTIONS":
      return yield* new DaemonSilent({ what: "has too many requests at this socket" })
  }
  const refused = { ...(Predicate.isRecord(details) ? details : {}), _tag: tagOf(code), message }
  return yield* Effect.fail(yield* Effect.mapError(Schema.decodeUnknown(refusal)(refused), NotUnderstood.of))
})
