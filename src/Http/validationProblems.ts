import { ParseResult, Predicate } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { closest } from "../lib/suggestion.ts"
import { cut } from "../lib/text.ts"

/** Maximum number of problems in a response. */
const maxProblems = 100
/** Maximum number of problems in which an unknown name is compared with the known ones. */
const maxSuggestions = 20
const maxNameLength = 60

/** The problems of a part of a request: the first ones, and how many more there are. */
export interface Problems {
  readonly first: ReadonlyArray<FieldProblem>
  readonly more: number
}

/** The problems of all parts of a request, for its response. */
export const fieldProblemsOf = (parts: ReadonlyArray<Problems>): ReadonlyArray<FieldProblem> => {
  const all = parts.flatMap(({ first }) => first)
  const listed = all.slice(0, maxProblems)
  const more = parts.reduce((sum, part) => sum + part.more, all.length - listed.length)
  return more === 0 ? listed : [...listed, { path: "", message: `has ${more} problems more` }]
}

/** A name from outside, for a message. */
export const shorten = (name: string): string => cut(name, maxNameLength + 1, "…")

/** `metadata.items[0]` */
export const fieldPathOf = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`
    return text === "" ? shorten(String(key)) : `${text}.${shorten(String(key))}`
  }, "")

/** The part of a request that fields belong to, for messages. */
export interface Fields {
  readonly kind: "field" | "query parameter" | "header"
  readonly known: ReadonlyArray<string>
}

/** A part of a request, as far as it is decoded. */
export interface BoundedInput<A> {
  readonly input: A
  /** Unknown fields that were left out. */
  readonly more: number
}

/** Leaves out unknown fields beyond `maxProblems`: a schema takes far longer to refuse one than JSON to parse it. */
export const boundUnknown = <A>(input: A, known: ReadonlySet<string>): BoundedInput<A | object> => {
  const names = Predicate.isRecord(input) ? Object.keys(input) : []
  if (names.length <= known.size + maxProblems) return { input, more: 0 }
  let unknown = 0
  const kept = names.filter((name) => known.has(name) || ++unknown <= maxProblems)
  const bounded = Object.fromEntries(kept.map((name) => [name, input[name as keyof A]]))
  return { input: bounded, more: names.length - kept.length }
}

const unknownField = (name: string, { kind, known }: Fields, isSuggested: boolean): string => {
  const meant = isSuggested ? closest(name, known) : undefined
  return `is not a ${kind} of this endpoint${meant === undefined ? "" : `: did you mean ${meant}?`}`
}

const messageOf = (issue: ParseResult.ArrayFormatterIssue, fields: Fields, isSuggested: boolean): string => {
  if (issue.path.length === 0) return "must be a JSON object"
  if (issue._tag === "Unexpected") return unknownField(String(issue.path.at(-1)), fields, isSuggested)
  return issue._tag === "Missing" ? "is required" : issue.message
}

/**
 * What a schema found, as field paths with messages.
 *
 * @param more unknown fields that the schema was not given
 */
export const foundBy = (error: ParseResult.ParseError, fields: Fields, more: number): Problems => {
  const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
  const first = issues.slice(0, maxProblems).map((issue, at) => ({
    path: fieldPathOf(issue.path),
    message: messageOf(issue, fields, at < maxSuggestions)
  }))
  return { first, more: more + issues.length - first.length }
}

/** The problems that a schema found, for a page. */
export const problemsOf = (error: ParseResult.ParseError, fields: Fields): ReadonlyArray<FieldProblem> =>
  fieldProblemsOf([foundBy(error, fields, 0)])
