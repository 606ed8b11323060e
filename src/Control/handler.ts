import { Cause, Effect, Exit, Option, Schema } from "effect"
import { NotUnderstood } from "./requests.ts"

/** What became of a request. */
export interface Answer {
  /** The exit in its JSON form, for `Schema.deserializeExit` with the request. */
  readonly exit: unknown
  /** Set where a defect ended it: a bug, which must also end the daemon. */
  readonly defect: Cause.Cause<never> | undefined
}

/** Does what a request in its JSON form asks for. */
export type Handler<R> = (input: unknown) => Effect.Effect<Answer, NotUnderstood, R>

/** Joins a request to the one place that does it, in the daemon or where none runs. */
export const on = <Request, I, A, AI, E, EI, R>(
  schema: Schema.Schema<Request & Schema.WithResult<A, AI, E, EI, never>, I>,
  handle: (request: Request) => Effect.Effect<A, E, R>
): Handler<R> =>
  Effect.fnUntraced(function* (input) {
    const request = yield* Effect.mapError(Schema.decodeUnknown(schema)(input), NotUnderstood.of)
    const exit = yield* Effect.exit(handle(request))
    return {
      exit: yield* Effect.orDie(Schema.serializeExit(request, exit)),
      defect: Exit.isFailure(exit) ? Cause.keepDefects(exit.cause).pipe(Option.getOrUndefined) : undefined
    }
  })
