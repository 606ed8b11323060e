import { Option, type Schema, SchemaAST } from "effect"

interface Documentation {
  /** What the field is for, a sentence without its full stop. */
  readonly about?: string
  /** JSON Schema keywords, where the schema does not know them by itself. */
  readonly json?: Readonly<Record<string, unknown>>
}

/** A field whose every fault is answered with its rule, which its description ends with, and never with what was sent. */
export const must = <A, I, R>(
  rule: string,
  schema: Schema.Schema<A, I, R>,
  { about, json = {} }: Documentation = {}
): Schema.Schema<A, I, R> => {
  const description = `${about === undefined ? "" : `${about}. `}Must ${rule}.`
  // A refinement keeps its keywords, such as minimum, in the annotation that this one replaces.
  const own = Option.getOrElse(SchemaAST.getJSONSchemaAnnotation(schema.ast), () => ({}))
  return schema.annotations({
    description,
    jsonSchema: { ...own, ...json, description },
    message: () => ({ message: `must ${rule}`, override: true })
  })
}

/** `a, b or c` */
export const alternatives = (words: ReadonlyArray<string>): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`
