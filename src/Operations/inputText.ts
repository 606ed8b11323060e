/**
 * Converts texts to an operation's input: the names of its fields on a command line and in a form, and the JSON of
 * their texts, by the encoded side of the input's schema. The schema itself reports the problems.
 */
import { Either, Option, Schema, SchemaAST } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { decodeInput, mostInputFields, type Operation } from "./operation.ts"

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
