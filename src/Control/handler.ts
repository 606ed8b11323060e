import { Cause, Effect, Exit, Option, Schema } from "effect"
import { type Act, type Actor, audited, type Note } from "../Auth/audit.ts"
import type { StoreUnavailable, Writer } from "../Sql.ts"
import { NotUnderstood } from "./requests.ts"

/** What became of a request. */
export interface ControlAnswer {
  /** The exit in its JSON form, for `Schema.deserializeExit` with the request. */
  readonly exit: unknown
  /** Set where a defect ended it: a bug, which must also end the daemon. */
  readonly defect: Cause.Cause<never> | undefined
}

/** `read`: it changes nothing, sends nothing and tells no secret. Whatever else administers, and is in the audit log. */
export type Access = "read" | "administer"

/** The one place that does what a kind of request asks for, in the daemon or where none runs. */
export interface Handler<R> {
  readonly access: Access
  /** Does what a request in its JSON form asks for. */
  readonly handle: (input: unknown, actor: Actor) => Effect.Effect<ControlAnswer, NotUnderstood, R>
}

type RequestSchema<Request, I, A, AI, E, EI> = Schema.Schema<Request & Schema.WithResult<A, AI, E, EI, never>, I>

const answering = <Request, I, A, AI, E, EI, R>(
  schema: RequestSchema<Request, I, A, AI, E, EI>,
  handle: (request: Request, actor: Actor) => Effect.Effect<A, E, R>
): Handler<R>["handle"] =>
  Effect.fnUntraced(function* (input, actor) {
    const request = yield* Effect.mapError(Schema.decodeUnknown(schema)(input), NotUnderstood.of)
    const exit = yield* Effect.exit(handle(request, actor))
    return {
      exit: yield* Effect.orDie(Schema.serializeExit(request, exit)),
      defect: Exit.isFailure(exit) ? Cause.keepDefects(exit.cause).pipe(Option.getOrUndefined) : undefined
    }
  })

/** Joins a request that only reads to what answers it. */
export const reading = <Request, I, A, AI, E, EI, R>(
  schema: RequestSchema<Request, I, A, AI, E, EI>,
  handle: (request: Request) => Effect.Effect<A, E, R>
): Handler<R> => ({ access: "read", handle: answering(schema, handle) })

/**
 * Joins a request that administers to what carries it out. `describe` says what the audit log has of it: never a secret.
 * What it draws, such as the id of what is made, is given to `carryOut`, which notes what turns out.
 */
export const administering = <Request, I, A, AI, E, EI, R, Details extends Act["detail"]>(
  schema: RequestSchema<Request, I, A, AI, E | StoreUnavailable, EI>,
  describe: (request: Request) => Act<Details>,
  carryOut: (request: Request, detail: Details, note: Note) => Effect.Effect<A, E, R>
): Handler<R | Writer> => ({
  access: "administer",
  handle: answering(schema, (request, actor) => {
    const act = describe(request)
    return audited(actor, act, (note) => carryOut(request, act.detail, note))
  })
})
