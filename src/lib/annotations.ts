import { Option, Schema, SchemaAST } from "effect"

/** A field that may be absent, and is never undefined. */
export const maybe = <A, I, R>(schema: Schema.Schema<A, I, R>) => Schema.optionalWith(schema, { exact: true })

/** A string of a response, with its description and further JSON Schema keywords. */
export const text = (description: string, jsonSchema: Readonly<Record<string, unknown>> = {}) =>
  Schema.String.annotations({ description, jsonSchema })

/** A whole number of a response, 0 or more, with its description. */
export const count = (description: string) =>
  Schema.Number.annotations({ description, jsonSchema: { type: "integer", minimum: 0, description } })

/** A point in time in a response, ISO 8601. */
export const timestamp = (description: string) =>
  text(`${description}. ISO 8601, UTC, with milliseconds.`, { format: "date-time" })

/** The pattern of ids with this prefix: at least 128 bits follow it, safe in a URL. */
export const idPattern = (prefix: string) => ({ pattern: `^${prefix}_[A-Za-z0-9_-]{22,43}$` })

/** Whether the log of requests, which every viewer of an account reads, may have the value of a body's field. */
type InLog = "shown" | "hidden"

const annotation = Symbol.for("tilld/InLog")

/** An annotation for a field's schema. A value is shown only where it decodes by that schema. */
export const inLog = (how: InLog) => ({ [annotation]: how })

/** What a field's schema says; a field that says nothing is hidden. */
export const inLogOf = (ast: SchemaAST.AST): InLog | undefined =>
  Option.getOrUndefined(SchemaAST.getAnnotation<InLog>(annotation)(ast))

interface Documentation {
  /** The purpose of the field, a sentence without its full stop. */
  readonly about?: string
  /**
   * What an absent field stands for. Said in words: `default` of JSON Schema makes code generators take the field for one that
   * is always there.
   */
  readonly byDefault?: string | number
  /** JSON Schema keywords that the schema does not have by itself. */
  readonly json?: Readonly<Record<string, unknown>>
  /** Of a body's field: whether the log of requests may have its value. */
  readonly log?: InLog
  /** What is wrong with a value where that says more than the rule: `not have …`. */
  readonly wrong?: (value: unknown) => string | undefined
}

/** A field with a rule. Every fault is answered with the rule, or what `wrong` says, never with the value sent; which its description has too. */
export const must = <A, I, R>(
  rule: string,
  schema: Schema.Schema<A, I, R>,
  { about, byDefault, json = {}, log, wrong }: Documentation = {}
): Schema.Schema<A, I, R> => {
  const description = `${about === undefined ? "" : `${about}. `}Must ${rule}.${
    byDefault === undefined ? "" : ` By default \`${byDefault}\`.`
  }`
  // A refinement has its keywords, such as minimum, in the annotation that is replaced below.
  const own = Option.getOrElse(SchemaAST.getJSONSchemaAnnotation(schema.ast), () => ({}))
  return schema.annotations({
    ...(log === undefined ? {} : inLog(log)),
    description,
    jsonSchema: { ...own, ...json, description },
    message: ({ actual }) => ({ message: `must ${wrong?.(actual) ?? rule}`, override: true })
  })
}

/** `a, b or c` */
export const alternatives = (words: ReadonlyArray<string>): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`
