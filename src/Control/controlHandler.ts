import { Cause, Effect, Exit, Option, Schema } from "effect"
import { type Act, type Actor, audited, type Note } from "../Auth/auditLog.ts"
import { carryOut } from "../Auth/carryOut.ts"
import { type Access, type AnyOperation, decodeInput, exitOf } from "../Auth/operation.ts"
import type { StoreUnavailable, Writer } from "../Sql.ts"
import { NotUnderstood } from "./controlRequests.ts"

/** The result of a control request. */
export interface ControlAnswer {
  /** The exit in its JSON form, for `Schema.deserializeExit` with the request. */
  readonly exit: unknown
  /** Set when a defect ended the request: a bug, which must also end the daemon. */
  readonly defect: Cause.Cause<never> | undefined
}

/** Carries out one kind of request, in the daemon or in a command without a daemon. */
export interface Handler<R> {
  readonly access: Access
  /** Carries out a request in its JSON form. */
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

/** Makes the handler of an operation, which an operator of the installation asks for. */
export const handlerOf = <R>(operation: AnyOperation<R>): Handler<R | Writer> => ({
  access: operation.access,
  handle: Effect.fnUntraced(function* (request, actor) {
    const { _tag, ...json } = request as Readonly<Record<string, unknown>>
    const input = yield* Effect.mapError(decodeInput(operation, json), NotUnderstood.because)
    const exit = yield* Effect.exit(carryOut(operation, input, { actor, isOperator: true }))
    return {
      exit: yield* Effect.orDie(Schema.encode(exitOf(operation))(exit)),
      defect: Exit.isFailure(exit) ? Cause.keepDefects(exit.cause).pipe(Option.getOrUndefined) : undefined
    }
  })
})

/** Makes the handler of a request that only reads. */
export const reading = <Request, I, A, AI, E, EI, R>(
  schema: RequestSchema<Request, I, A, AI, E, EI>,
  handle: (request: Request) => Effect.Effect<A, E, R>
): Handler<R> => ({ access: "read", handle: answering(schema, handle) })

/**
 * Makes the handler of a request that administers. `describe` gives the detail for the audit log, never a secret; ids
 * that it draws for new things are passed to `carryOut`, which can note further details.
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
