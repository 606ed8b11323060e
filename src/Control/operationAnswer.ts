/** Carries out operations for the control sockets. `operationResult.ts` reads the answers. */
import { Cause, Effect, Either, Exit, Option, Schema } from "effect"
import { invalid, statusOf } from "../Domain/ApiError.ts"
import { type Actor, carryOut } from "../Operations/auditLog.ts"
import { type AnyOperation, decodeInput } from "../Operations/operation.ts"
import type { Writer } from "../Sql.ts"
import type { OperationAnswer, OwnCode } from "./operationResult.ts"

/** An error in the API's shape. */
export const errorAnswer = (code: string, message: string, details?: unknown): OperationAnswer => ({
  status: code in statusOf ? statusOf[code as keyof typeof statusOf] : code === "UNKNOWN_OPERATION" ? 404 : 409,
  body: { error: { code, message, details } }
})

export const ownError = (code: OwnCode, message: string): OperationAnswer => errorAnswer(code, message)

/** `KeyEnded` as `KEY_ENDED`. */
export const refusalCode = (tag: string): string => tag.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase()

const refusalAnswer = ({ refusal }: AnyOperation, error: { readonly _tag: string; readonly message: string }) =>
  Effect.map(Effect.orDie(Schema.encode(refusal)(error)), ({ _tag, message: _, ...details }) =>
    errorAnswer(refusalCode(error._tag), error.message, Object.keys(details).length === 0 ? undefined : details)
  )

/** Carries out an operation that an operator of the installation asks for. */
export const answerTo = Effect.fnUntraced(function* <R>(
  operation: AnyOperation<R>,
  json: unknown,
  actor: Actor
): Effect.fn.Return<OperationAnswer, never, R | Writer> {
  const input = decodeInput(operation, json)
  if (Either.isLeft(input)) {
    const { code, details, message } = invalid(input.left)
    return errorAnswer(code, message, details)
  }
  const exit = yield* Effect.exit(carryOut(operation, input.right, { actor, isOperator: true }))
  if (Exit.isSuccess(exit))
    return { status: 200, body: yield* Effect.orDie(Schema.encode(operation.output)(exit.value)) }
  const refused = Cause.failureOption(exit.cause)
  if (Option.isSome(refused)) return yield* refusalAnswer(operation, refused.value)
  const defect = Cause.keepDefects(exit.cause)
  if (Option.isNone(defect)) return yield* Effect.failCause(exit.cause as Cause.Cause<never>)
  return { ...ownError("INTERNAL", "An internal error: the log of the daemon has it."), defect: defect.value }
})
