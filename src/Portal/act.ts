import { Effect, Either } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import { carryOut } from "../Operations/auditLog.ts"
import { decodeForm } from "../Operations/inputText.ts"
import type { Operation } from "../Operations/operation.ts"
import type { StoreUnavailable, Writer } from "../Sql.ts"
import { callerOf, type Viewer } from "./Viewer.ts"

type Answer<R> = HttpReply | Effect.Effect<HttpReply, StoreUnavailable, R>

/** What a refusal becomes, by its tag: an answer of its own, or the problem of a field. */
type Refusals<In, E extends { readonly _tag: string }, R> = {
  readonly [Tag in Exclude<E["_tag"], "StoreUnavailable">]?: (
    error: Extract<E, { readonly _tag: Tag }>,
    input: In
  ) => FieldProblem | Answer<R>
}

interface FormOf<In, InJson, Out, E extends { readonly _tag: string }, R> {
  /** What was posted, and the names of its fields that are read. */
  readonly form: URLSearchParams
  readonly fields: ReadonlyArray<string & keyof In>
  /** Fields of the operation that the form does not have. */
  readonly given: Partial<InJson>
  readonly done: (result: Out, input: In) => Answer<R>
  /** Shows the form again, with what is wrong with it. */
  readonly refused: (problems: ReadonlyArray<FieldProblem>) => Answer<R>
  /** Any other refusal is shown with the form, as a problem of the whole. */
  readonly on?: Refusals<In, E, R>
}

const answered = <R>(answer: Answer<R>) => (Effect.isEffect(answer) ? answer : Effect.succeed(answer))

/** The way of a form to an operation and back: its fields are decoded, it is carried out, and `done` answers. */
export const act = <
  In,
  InJson,
  Out,
  OutJson,
  E extends { readonly _tag: string; readonly message: string },
  R,
  R2 = never
>(
  viewer: Viewer,
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  { done, fields, form, given, on = {}, refused }: FormOf<In, InJson, Out, E, R2>
): Effect.Effect<HttpReply, StoreUnavailable, R | R2 | Writer> => {
  const input = decodeForm(operation, form, fields, given)
  if (Either.isLeft(input)) return answered(refused(input.left))
  const answers: Readonly<Record<string, ((error: never, input: In) => FieldProblem | Answer<R2>) | undefined>> = on
  return Effect.matchEffect(carryOut(operation, input.right, callerOf(viewer)), {
    onSuccess: (result) => answered(done(result, input.right)),
    onFailure: (error) => {
      // Sound: it is the only error with this tag.
      if (error._tag === "StoreUnavailable") return Effect.fail(error as StoreUnavailable)
      const answer = answers[error._tag]?.(error as never, input.right) ?? { path: "", message: error.message }
      return answered("path" in answer ? refused([answer]) : answer)
    }
  })
}
