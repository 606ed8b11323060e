import { Schema } from "effect"
import type { ApiError, FieldProblem } from "../Domain/ApiError.ts"

const isProblems = Schema.is(Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String })))

/** Why the API would refuse it, for beside the fields of a form; a reason of the whole form has an empty path. */
export const problemsOfRefusal = ({ details, message }: ApiError): ReadonlyArray<FieldProblem> =>
  isProblems(details) ? details : [{ path: "", message }]
