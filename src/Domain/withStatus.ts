import { HttpApiSchema } from "@effect/platform"
import { Option, type Schema, SchemaAST } from "effect"

/** The body of a response with its HTTP status. A status given to `addSuccess` would drop the schema's identifier. */
export const withStatus = <A, I>(status: number, schema: Schema.Schema<A, I>): Schema.Schema<A, I> =>
  schema.annotations({
    identifier: Option.getOrThrow(SchemaAST.getIdentifierAnnotation(schema.ast)),
    ...HttpApiSchema.annotations({ status })
  })
