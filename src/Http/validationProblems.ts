import { ParseResult } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { closest } from "../Domain/suggestion.ts"

/** Most problems that a response lists. */
const maxProblems = 100
const maxNameLength = 60

const shorten = (name: string): string => (name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name)

/** `metadata.items[0]` */
const pathOf = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`
    return text === "" ? shorten(String(key)) : `${text}.${shorten(String(key))}`
  }, "")

/** The part of a request that fields belong to, for messages. */
export interface Fields {
  readonly kind: "field" | "query parameter" | "header"
  readonly known: ReadonlyArray<string>
}

const unknownField = (name: string, { kind, known }: Fields): string => {
  const meant = closest(name, known)
  return `is not a ${kind} of this endpoint${meant === undefined ? "" : `: did you mean ${meant}?`}`
}

const messageOf = (issue: ParseResult.ArrayFormatterIssue, fields: Fields): string => {
  if (issue.path.length === 0) return "must be a JSON object"
  if (issue._tag === "Unexpected") return unknownField(String(issue.path.at(-1)), fields)
  return issue._tag === "Missing" ? "is required" : issue.message
}

/** The problems that a schema found, as field paths with messages. */
export const problemsOf = (error: ParseResult.ParseError, fields: Fields): ReadonlyArray<FieldProblem> => {
  const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
  // Sliced first: finding the closest known name for an unknown field is slow.
  const problems = issues.slice(0, maxProblems).map((issue) => ({
    path: pathOf(issue.path),
    message: messageOf(issue, fields)
  }))
  const rest = issues.length - problems.length
  return rest > 0 ? [...problems, { path: "", message: `has ${rest} problems more` }] : problems
}
