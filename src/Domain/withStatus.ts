import { HttpApiSchema } from "@effect/platform"
import { Option, type Schema, SchemaAST } from "effect"

/** The body of an answer with its HTTP status. Given to `addSuccess`, a status would cost the schema its name. */
export const withStatus = <A, I>(status: number, schema: Schema.Schema<A, I>): Schema.Schema<A, I> =>
  schema.annotations({
    identifier: Option.getOrThrow(SchemaAST.getIdentifierAnnotation(schema.ast)),
    ...HttpApiSchema.annotations({ status })
  })
