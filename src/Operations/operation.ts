/**
 * Operations: the actions and queries of operators, each described once, beside its service. An operation has the name
 * of its command, which is also the request on the control socket and the act in the audit log; the schemas of its
 * input and output; its refusals; and how it is carried out. The socket, the command line and the portal's forms only
 * decode the input and render the output.
 */
import { type Effect, Either, ParseResult, Predicate, Schema } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { alternatives } from "../lib/annotations.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import type { Act, Actor, Note } from "./auditLog.ts"

/** `read`: changes nothing, sends nothing, reveals no secret. Every other operation administers and is in the audit log. */
export type Access = "read" | "administer"

/** The caller of an operation. */
export interface Caller {
  readonly actor: Actor
  /** An operator of the installation; an admin of one account may do less. */
  readonly isOperator: boolean
}

type Failures = ReadonlyArray<Schema.Schema.AnyNoContext & { readonly _tag: string }>
type FailureOf<Refusals extends Failures> = Schema.Schema.Type<Refusals[number]> | StoreUnavailable

/** The description of an operation: what it takes, gives and refuses, and how it is carried out. */
interface Described<In, Out, E, R> {
  readonly name: string
  /** What it does, a sentence without its full stop. */
  readonly summary: string
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
export interface Operation<In, InJson, Out, OutJson, E, R> extends Described<In, Out, E, R> {
  readonly access: Access
  readonly fields: Schema.Struct.Fields
  readonly input: Schema.Schema<In, InJson>
  readonly output: Schema.Schema<Out, OutJson>
  /** The tags of its errors, apart from `StoreUnavailable`. */
  readonly refusals: ReadonlyArray<string>
  // biome-ignore lint/suspicious/noExplicitAny: no code writes an error's JSON
  readonly refusal: Schema.Schema<E, any>
}

/** Any operation that needs no more than `R`. */
// biome-ignore lint/suspicious/noExplicitAny: the types of one operation say nothing about another's
export type AnyOperation<R = any> = Operation<any, any, any, any, any, R>

/** The input without fields: a struct of none takes any object. */
const none = Schema.Record({ key: Schema.String, value: Schema.Never.annotations({ message: () => "is not known" }) })

/**
 * Describes an operation.
 *
 * @param refusals errors that it fails with, in addition to `StoreUnavailable`. Where it fails, nothing was changed
 */
export const operation = <Input extends Schema.Struct.Fields, Out, OutJson, const Refusals extends Failures, R>({
  input: fields,
  refusals,
  ...described
}: Described<Schema.Struct.Type<Input>, Out, FailureOf<Refusals>, R> & {
  readonly input: Input
  readonly output: Schema.Schema<Out, OutJson>
  readonly refusals: Refusals
}): Operation<Schema.Struct.Type<Input>, Schema.Struct.Encoded<Input>, Out, OutJson, FailureOf<Refusals>, R> => ({
  ...described,
  access: described.audit === undefined ? "read" : "administer",
  fields,
  refusals: refusals.map(({ _tag }) => _tag),
  input: (Object.keys(fields).length === 0 ? none : Schema.Struct(fields)) as Schema.Schema.AnyNoContext,
  refusal: Schema.Union(...refusals, StoreUnavailable) as Schema.Schema.AnyNoContext
})

const expectation = /^Expected (.*?)(?:, actual |$)/s

/** What schemas expect, in words. Their own messages also have the value, which may be a secret. */
const typeRule = (expected: ReadonlyArray<string>): string => {
  const words = expected.flatMap((each) => /^"([^"]*)"$/.exec(each)?.[1] ?? [])
  const [first = ""] = expected
  if (words.length > 0) return `must be ${alternatives(words)}`
  if (first === "string") return "must be a text"
  if (first === "number") return "must be a number"
  if (first === "boolean") return "must be true or false"
  return first.startsWith("ReadonlyArray") ? "must be a list" : "has the wrong type"
}

/** The problem of a field, by all its issues: one that may be several things has one for each. */
const problemOf = (path: string, issues: ReadonlyArray<ParseResult.ArrayFormatterIssue>): FieldProblem => {
  const [first] = issues
  if (first?._tag === "Missing") return { path, message: "is required" }
  if (first?._tag === "Unexpected") return { path, message: "is not known" }
  const ruled = issues.find(({ message }) => !expectation.test(message))
  const expected = issues.flatMap(({ message }) => expectation.exec(message)?.[1] ?? [])
  return { path, message: ruled?.message ?? typeRule(expected) }
}

/** Maximum number of listed problems of an input. */
const mostProblems = 20

/** One problem of each field. */
const problemsOf = (issues: ReadonlyArray<ParseResult.ArrayFormatterIssue>): ReadonlyArray<FieldProblem> => {
  const byPath = new Map<string, Array<ParseResult.ArrayFormatterIssue>>()
  for (const issue of issues) {
    const path = issue.path.join(".")
    byPath.set(path, [...(byPath.get(path) ?? []), issue])
  }
  const listed = Array.from(byPath, ([path, found]) => problemOf(path, found)).slice(0, mostProblems)
  const more = byPath.size - listed.length
  return more === 0 ? listed : [...listed, { path: "", message: `has ${more} problems more` }]
}

/** Maximum fields, and items of a list, for a schema: each wrong one costs far more than parsing its JSON. */
export const mostInputFields = 100
const mostItems = 1_000

const refused = (path: string, message: string) => Either.left([{ path, message }])

const bounded = (json: unknown): Either.Either<unknown, ReadonlyArray<FieldProblem>> => {
  if (!Predicate.isRecord(json)) return refused("", "must be an object with the fields of the input")
  const fields = Object.entries(json)
  if (fields.length > mostInputFields) return refused("", `must have ${mostInputFields} fields at most`)
  const long = fields.find(([, value]) => Array.isArray(value) && value.length > mostItems)
  return long === undefined ? Either.right(json) : refused(long[0], `must have ${mostItems} items at most`)
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
      return message === undefined ? Either.right(decoded) : refused("", message)
    })
  )
