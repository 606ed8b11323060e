import { Option, type Schema, SchemaAST } from "effect"
import { type InLog, inLog } from "./inLog.ts"

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
