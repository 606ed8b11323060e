/**
 * Operations: the actions and queries of operators, each described once, beside its service. An operation has the name
 * of its command, which is also the request on the control socket and the act in the audit log; the schemas of its
 * input and output; its refusals; and how it is carried out. The socket, the command line and the portal's forms only
 * decode the input, by the names that its fields have there and the JSON of their texts, and render the output. The
 * input's schema itself reports the problems.
 */
import { type Effect, Either, Option, ParseResult, Predicate, Schema, SchemaAST } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { alternatives } from "../lib/annotations.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import type { Act, Actor, Note } from "./auditLog.ts"

/** How a command line takes a field. */
export interface Flag {
  /** What the field is for, for help pages: a sentence without its full stop. */
  readonly about: string
  /** The option's name, where that is not the field's in kebab case. */
  readonly name?: string
  /** What its value stands for, such as `DURATION`. */
  readonly value?: string
  /** A command line names the file that has it. */
  readonly isFile?: true
  /** Without a name, in its place on the command line. */
  readonly isArgument?: true
  /** The command has a value of its own where it is not given. */
  readonly isOptional?: true
  /** Words that represent values other than texts. */
  readonly words?: Readonly<Record<string, unknown>>
}

const flagId: unique symbol = Symbol.for("tilld/flag")

/** Says how a command line takes a field. Without it, a command line does not take it. */
export const withFlag = <Field extends { readonly annotations: (given: never) => unknown }>(field: Field, flag: Flag) =>
  field.annotations({ [flagId]: flag } as never) as Field

const flagOf = ({ ast }: Schema.Struct.Fields[string]): Flag | undefined => {
  const annotations = ast._tag === "PropertySignatureTransformation" ? ast.to.annotations : ast.annotations
  return annotations[flagId] as Flag | undefined
}

/** The words of the flag, otherwise the description of the field's schema. */
const aboutOf = (field: Schema.Struct.Fields[string]): string => {
  const { ast } = field
  const described =
    ast._tag === "PropertySignatureTransformation"
      ? ast.from.type
      : ast._tag === "PropertySignatureDeclaration"
        ? ast.type
        : ast
  return flagOf(field)?.about ?? Option.getOrElse(SchemaAST.getDescriptionAnnotation(described), () => "")
}

/** The JSON type of a field: a list is of texts, or of given words. */
export type FieldKind =
  | { readonly is: "text" | "number" | "flag" }
  | { readonly is: "word" | "words"; readonly of: ReadonlyArray<string> }
  | { readonly is: "list" }

const wordsOf = (ast: SchemaAST.AST): ReadonlyArray<string> | undefined => {
  if (ast._tag === "Literal") return typeof ast.literal === "string" ? [ast.literal] : undefined
  const all = ast._tag === "Union" ? ast.types.map(wordsOf) : [undefined]
  return all.every((each) => each !== undefined) ? all.flat() : undefined
}

const fieldKindOf = (ast: SchemaAST.AST): FieldKind => {
  const words = wordsOf(ast)
  if (words !== undefined) return { is: "word", of: words }
  switch (ast._tag) {
    case "Union": {
      // In addition to null, or undefined where the field is absent.
      const rest = ast.types.find(({ _tag }) => _tag !== "UndefinedKeyword" && _tag !== "Literal")
      return rest === undefined ? { is: "text" } : fieldKindOf(rest)
    }
    case "NumberKeyword":
      return { is: "number" }
    case "BooleanKeyword":
      return { is: "flag" }
    case "TupleType": {
      const of = ast.rest[0] && wordsOf(ast.rest[0].type)
      return of === undefined ? { is: "list" } : { is: "words", of }
    }
    default:
      return { is: "text" }
  }
}

/** A field of an operation's input. */
export interface InputField {
  readonly name: string
  readonly kind: FieldKind
  readonly isOptional: boolean
  /** Undefined where a command line does not take it. */
  readonly flag: Flag | undefined
  /** What it is for: the flag's words, otherwise those of its schema. */
  readonly about: string
}

/** The fields of an operation's input, in their order. */
export const fieldsOf = (fields: Schema.Struct.Fields): ReadonlyArray<InputField> =>
  SchemaAST.getPropertySignatures(Schema.encodedSchema(Schema.Struct(fields)).ast).flatMap(
    ({ isOptional, name, type }) => {
      const field = fields[name as string]
      return field === undefined
        ? []
        : [{ name: String(name), kind: fieldKindOf(type), isOptional, flag: flagOf(field), about: aboutOf(field) }]
    }
  )

/** The JSON value of a field's text. An unparsable text stays text, which the schema refuses. */
export const jsonOf = ({ flag, kind }: Pick<InputField, "flag" | "kind">, text: string): unknown => {
  const { words = {} } = flag ?? {}
  if (Object.hasOwn(words, text)) return words[text]
  if (kind.is === "number") return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
  if (kind.is === "list") return [text]
  return kind.is === "words"
    ? inOrder(
        kind.of,
        text.split(",").map((word) => word.trim())
      )
    : text
}

/**
 * The JSON of a program's query or form: each text by the field of its name; an unknown one stays as it is. Of more names
 * than an input may have, no more are read: it is refused.
 */
export const jsonOfQuery = (
  fields: Schema.Struct.Fields,
  query: URLSearchParams
): Readonly<Record<string, unknown>> => {
  const texts = new Map<string, Array<string>>()
  for (const [name, text] of query) {
    const given = texts.get(name)
    if (given === undefined && texts.size > mostInputFields) break
    if (given === undefined) texts.set(name, [text])
    else given.push(text)
  }
  const known = new Map(fieldsOf(fields).map((field) => [field.name, field]))
  return Object.fromEntries(Array.from(texts, ([name, given]) => [name, jsonOfTexts(known.get(name), given)]))
}

/** A name that is given several times is a list. */
const jsonOfTexts = (field: InputField | undefined, texts: ReadonlyArray<string>): unknown => {
  const [text = "", another] = texts
  if (another !== undefined) return texts
  if (field === undefined) return text
  if (field.kind.is === "flag") return text === "true" ? true : text === "false" ? false : text
  return jsonOf(field, text)
}

/** The given words, once each and in the order of `known`; then the unknown ones. */
const inOrder = (known: ReadonlyArray<string>, given: ReadonlyArray<string>) => [
  ...known.filter((word) => given.includes(word)),
  ...given.filter((word) => !known.includes(word))
]

/**
 * Decodes an operation's input from the fields `names` of a form, and from the other values given. A text that is left
 * empty is absent; null, where null stands for the default; a list that is left empty is an empty list.
 */
export const decodeForm = <In, InJson, Out, OutJson, E, R>(
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  form: URLSearchParams,
  names: ReadonlyArray<string & keyof In>,
  given: Partial<InJson> = {}
): Either.Either<In, ReadonlyArray<FieldProblem>> => {
  const json = fieldsOf(operation.fields).flatMap((field) => {
    const { flag, kind, name } = field
    if (!names.some((each) => each === name)) return []
    if (kind.is === "words") return [[name, inOrder(kind.of, form.getAll(name))]]
    const text = (form.get(name) ?? "").trim()
    if (kind.is === "list") return [[name, text.split(/[\s,]+/).filter((item) => item !== "")]]
    if (kind.is === "flag") return [[name, form.has(name)]]
    if (text !== "") return [[name, jsonOf({ kind, flag: undefined }, text)]]
    return Object.values(flag?.words ?? {}).includes(null) ? [[name, null]] : []
  })
  const whole: Record<string, unknown> = { ...Object.fromEntries(json), ...given }
  return Either.mapLeft(decodeInput(operation, whole), (problems) =>
    problems.map(({ message, path }) => {
      const [name = "", at] = path.split(".")
      const list = whole[name]
      return {
        path: name,
        message: Array.isArray(list) && at !== undefined ? `${list[Number(at)]}: ${message}` : message
      }
    })
  )
}

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
const mostInputFields = 100
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
