import { Cause, Effect, Exit, Option, Schema } from "effect"
import type { Actor } from "../Auth/auditLog.ts"
import { carryOut } from "../Auth/carryOut.ts"
import { type Access, type AnyOperation, decodeInput, exitOf } from "../Auth/operation.ts"
import type { Writer } from "../Sql.ts"
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
