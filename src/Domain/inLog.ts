import { Option, SchemaAST } from "effect"

/** Whether the log of requests, which every viewer of an account reads, may have the value of a body's field. */
export type InLog = "shown" | "hidden"

const annotation = Symbol.for("tilld/InLog")

/** An annotation for a field's schema. A value is shown only where it decodes by that schema. */
export const inLog = (how: InLog) => ({ [annotation]: how })

/** What a field's schema says; a field that says nothing is hidden. */
export const inLogOf = (ast: SchemaAST.AST): InLog | undefined =>
  Option.getOrUndefined(SchemaAST.getAnnotation<InLog>(annotation)(ast))
