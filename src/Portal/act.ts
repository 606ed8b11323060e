import { Effect, Either } from "effect"
import { ApiError, type FieldProblem, statusOf } from "../Domain/ApiError.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import { carryOut } from "../Operations/auditLog.ts"
import { decodeForm } from "../Operations/inputText.ts"
import type { Caller, Operation } from "../Operations/operation.ts"
import { StoreUnavailable, type Writer } from "../Sql.ts"
import { problemsOfRefusal } from "./components/amountField.ts"
import { callerOf, ProofNeeded, type Viewer } from "./Viewer.ts"

type Answer<R> = HttpReply | Effect.Effect<HttpReply, StoreUnavailable, R>

type Failure = { readonly _tag: string; readonly message: string }

/** What a refusal becomes, by its tag: an answer of its own, or the problem of a field. */
type Refusals<In, E extends Failure, R> = {
  readonly [Tag in Exclude<E["_tag"], "StoreUnavailable">]?: (
    error: Extract<E, { readonly _tag: Tag }>,
    input: In
  ) => FieldProblem | Answer<R>
}

interface Answers<In, Out, E extends Failure, R> {
  readonly done: (result: Out, input: In) => Answer<R>
  /** Shows the form again, with what is wrong with it, and the status for that. */
  readonly refused: (problems: ReadonlyArray<FieldProblem>, status: number) => Answer<R>
  /** Any other refusal is shown with the form: what the API says of fields, otherwise a problem of the whole. */
  readonly on?: Refusals<In, E, R>
}

const answered = <R>(answer: Answer<R>) => (Effect.isEffect(answer) ? answer : Effect.succeed(answer))

/** The way of a form's decoded fields to what it does, and back: `run` carries it out, once a proof is given. */
export const actOn = <In, Out, E extends Failure, R, R2 = never>(
  viewer: Viewer,
  input: Either.Either<In, ReadonlyArray<FieldProblem>>,
  run: (input: In, caller: Caller) => Effect.Effect<Out, E, R>,
  { done, on = {}, refused }: Answers<In, Out, E, R2>
): Effect.Effect<HttpReply, StoreUnavailable | ProofNeeded, R | R2> => {
  if (Either.isLeft(input)) return answered(refused(input.left, 422))
  const answers: Readonly<Record<string, ((error: never, input: In) => FieldProblem | Answer<R2>) | undefined>> = on
  return Effect.flatMap(callerOf(viewer), (caller) =>
    Effect.matchEffect(run(input.right, caller), {
      onSuccess: (result) => answered(done(result, input.right)),
      onFailure: (error: E | StoreUnavailable | ProofNeeded) => {
        if (error instanceof StoreUnavailable || error instanceof ProofNeeded) return Effect.fail(error)
        const answer = answers[error._tag]?.(error as never, input.right)
        if (answer !== undefined) return answered("path" in answer ? refused([answer], 422) : answer)
        return error instanceof ApiError
          ? answered(refused(problemsOfRefusal(error), statusOf[error.code]))
          : answered(refused([{ path: "", message: error.message }], 422))
      }
    })
  )
}

interface FormOf<In, InJson> {
  /** What was posted, and the names of its fields that are read. */
  readonly form: URLSearchParams
  readonly fields: ReadonlyArray<string & keyof In>
  /** Fields of the operation that the form does not have. */
  readonly given: Partial<InJson>
}

/** The way of a form to an operation and back. */
export const act = <In, InJson, Out, OutJson, E extends Failure, R, R2 = never>(
  viewer: Viewer,
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  { fields, form, given, ...answers }: FormOf<In, InJson> & Answers<In, Out, E, R2>
): Effect.Effect<HttpReply, StoreUnavailable | ProofNeeded, R | R2 | Writer> =>
  actOn<In, Out, E | StoreUnavailable, R | Writer, R2>(
    viewer,
    decodeForm(operation, form, fields, given),
    (input, caller) => carryOut(operation, input, caller),
    answers as Answers<In, Out, E | StoreUnavailable, R2>
  )
