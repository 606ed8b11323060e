/**
 * Reads the fields of posted forms and of filters. Each reader takes the text of a field; left is what is wrong with it, to
 * be shown after the field's name.
 */
import { Either, Option } from "effect"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { parseMoment } from "../lib/moment.ts"

type Field<A> = Either.Either<A, string>

type Values<Fields> = { readonly [Name in keyof Fields]: Fields[Name] extends Field<infer A> ? A : never }

/** The values of all fields, or all of their problems. */
export const checked = <const Fields extends Readonly<Record<string, Field<unknown>>>>(
  fields: Fields
): Either.Either<Values<Fields>, ReadonlyArray<FieldProblem>> => {
  const values: Record<string, unknown> = {}
  const problems: Array<FieldProblem> = []
  for (const [path, field] of Object.entries(fields)) {
    if (Either.isRight(field)) values[path] = field.right
    else problems.push({ path, message: field.left })
  }
  // Sound: without problems every field has its value.
  return problems.length > 0 ? Either.left(problems) : Either.right(values as Values<Fields>)
}

/** The text of a field without the space around it; empty where it is missing. */
export const textOf = (form: URLSearchParams, name: string): string => (form.get(name) ?? "").trim()

/** Reads a field that may be left empty. */
export const ifGiven =
  <A>(read: (text: string) => Field<A>) =>
  (text: string): Field<A | undefined> =>
    text === "" ? Either.right(undefined) : read(text)

/** A time in UTC as browsers' date fields send it, or as the API takes it. Unix milliseconds. */
export const readMoment = (text: string): Field<number> =>
  Either.fromOption(
    Option.orElse(parseMoment(text), () => parseMoment(`${text}Z`)),
    () => "must be a time such as 2026-01-31T12:00, or a day such as 2026-01-31, in UTC"
  )

/** One of some words. */
export const readOneOf =
  <const Word extends string>(words: ReadonlyArray<Word>) =>
  (text: string): Field<Word> => {
    const found = words.find((word) => word === text)
    return found === undefined ? Either.left(`must be one of ${words.join(", ")}`) : Either.right(found)
  }
