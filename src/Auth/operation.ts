/**
 * Operations: the actions and queries of operators, each described once, beside its service. An operation has the name
 * of its command, which is also the request on the control socket and the act in the audit log; the schemas of its
 * input and output; its refusals; and how it is carried out. The socket, a command without a daemon, the command line
 * and the portal's forms only decode the input and render the output.
 *
 * A command loads the descriptions alone: `run` imports what it needs when it is called.
 */
import { Effect, Either, ParseResult, Predicate, Schema } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import type { Act, Actor, Note } from "./auditLog.ts"

/** `read`: changes nothing, sends nothing, reveals no secret. Every other operation administers and is in the audit log. */
export type Access = "read" | "administer"

/**
 * The requirements of an operation: the store; also the master key; the chains; the webhook sender; a running daemon.
 * Without a daemon, a command starts these parts of it.
 */
export type Needs = "store" | "secrets" | "chains" | "sending" | "daemon"

/** The caller of an operation. */
export interface Caller {
  readonly actor: Actor
  /** An operator of the installation; an admin of one account may do less. */
  readonly isOperator: boolean
}

type Failures = ReadonlyArray<Schema.Schema.AnyNoContext>
type FailureOf<Refusals extends Failures> = Schema.Schema.Type<Refusals[number]> | StoreUnavailable

/** The description of an operation: what it takes, gives and refuses, and how it is carried out. */
interface Described<In, Out, E, R, N extends Needs> {
  readonly name: string
  /** What it does, a sentence without its full stop. */
  readonly summary: string
  readonly needs: N
  /** Creates a missing database: an operator may run it before the first start of the daemon. */
  readonly makesDatabase?: true
  /** Problems of an input whose fields are each valid. */
  readonly check?: (input: In) => string | undefined
  /** The detail for the audit log, never a secret. Absent: the operation only reads. */
  readonly audit?: (input: In) => Act["detail"]
  /** The row of the audit log is committed first: it sends something that cannot be undone. */
  readonly auditFirst?: true
  /** `note` adds to the detail for the audit log. */
  readonly run: (input: In, caller: Caller, note: Note) => Effect.Effect<Out, E, R>
}

/** An operation for its entry points. `In` and `Out` are decoded, `InJson` and `OutJson` are JSON; `E` is its error. */
export interface Operation<In, InJson, Out, OutJson, E, R, N extends Needs = Needs>
  extends Described<In, Out, E, R, N> {
  readonly access: Access
  readonly fields: Schema.Struct.Fields
  readonly input: Schema.Schema<In, InJson>
  readonly output: Schema.Schema<Out, OutJson>
  // biome-ignore lint/suspicious/noExplicitAny: no code writes an error's JSON
  readonly refusal: Schema.Schema<E, any>
}

/** Any operation that needs no more than `R`. */
// biome-ignore lint/suspicious/noExplicitAny: the types of one operation say nothing about another's
export type AnyOperation<R = any, N extends Needs = Needs> = Operation<any, any, any, any, any, R, N>

/**
 * Describes an operation.
 *
 * @param refusals errors that it fails with, in addition to `StoreUnavailable`. Where it fails, nothing was changed
 */
export const operation = <
  Input extends Schema.Struct.Fields,
  Out,
  OutJson,
  const Refusals extends Failures,
  R,
  N extends Needs
>({
  input: fields,
  refusals,
  ...described
}: Described<Schema.Struct.Type<Input>, Out, FailureOf<Refusals>, R, N> & {
  readonly input: Input
  readonly output: Schema.Schema<Out, OutJson>
  readonly refusals: Refusals
}): Operation<Schema.Struct.Type<Input>, Schema.Struct.Encoded<Input>, Out, OutJson, FailureOf<Refusals>, R, N> => ({
  ...described,
  access: described.audit === undefined ? "read" : "administer",
  fields,
  input: Schema.Struct(fields) as Schema.Schema.All as Schema.Schema.AnyNoContext,
  refusal: Schema.Union(...refusals, StoreUnavailable) as Schema.Schema.AnyNoContext
})

/** The problem of a field: an optional one has a second issue, that it is not absent. */
const problemOf = ({ _tag, message, path }: ParseResult.ArrayFormatterIssue): FieldProblem => ({
  path: path.join("."),
  message:
    _tag === "Missing"
      ? "is required"
      : _tag === "Unexpected"
        ? "is not known"
        : // The library's own words repeat the value, which may be a secret.
          message.startsWith("Expected ")
          ? "has the wrong type"
          : message
})

/** Maximum number of listed problems of an input. */
const mostProblems = 20

/** The first problem of each field. */
const problemsOf = (issues: ReadonlyArray<ParseResult.ArrayFormatterIssue>): ReadonlyArray<FieldProblem> => {
  const byPath = new Map<string, FieldProblem>()
  for (const issue of issues) {
    const problem = problemOf(issue)
    if (!byPath.has(problem.path)) byPath.set(problem.path, problem)
  }
  const listed = [...byPath.values()].slice(0, mostProblems)
  const more = byPath.size - listed.length
  return more === 0 ? listed : [...listed, { path: "", message: `has ${more} problems more` }]
}

/** Maximum fields, and items of a list, for a schema: each wrong one costs far more than parsing its JSON. */
export const mostInputFields = 100
const mostItems = 1_000

const bounded = (json: unknown): Either.Either<unknown, ReadonlyArray<FieldProblem>> => {
  if (!Predicate.isRecord(json))
    return Either.left([{ path: "", message: "must be an object with the fields of the input" }])
  const fields = Object.entries(json)
  if (fields.length > mostInputFields)
    return Either.left([{ path: "", message: `must have ${mostInputFields} fields at most` }])
  const long = fields.find(([, value]) => Array.isArray(value) && value.length > mostItems)
  return long === undefined
    ? Either.right(json)
    : Either.left([{ path: long[0], message: `must have ${mostItems} items at most` }])
}

/** Decodes an input, from JSON, a form or a command line. Left: all of its problems, the first one of each field. */
export const decodeInput = <In, InJson>(
  { check, input }: Pick<Operation<In, InJson, unknown, unknown, unknown, unknown>, "check" | "input">,
  json: unknown
): Either.Either<In, ReadonlyArray<FieldProblem>> =>
  Either.flatMap(bounded(json), Schema.decodeUnknownEither(input, { errors: "all", onExcessProperty: "error" })).pipe(
    Either.mapLeft((error) =>
      error instanceof ParseResult.ParseError ? problemsOf(ParseResult.ArrayFormatter.formatErrorSync(error)) : error
    ),
    Either.flatMap((decoded) => {
      const message = check?.(decoded)
      return message === undefined ? Either.right(decoded) : Either.left([{ path: "", message }])
    })
  )

/** Imports a module when an operation is carried out, and not before. */
export const lazily = <Module>(load: () => Promise<Module>): Effect.Effect<Module> => Effect.promise(load)
