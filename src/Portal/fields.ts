/**
 * Reads the fields of posted forms and of filters. Each reader takes the text of a field; left is what is wrong with it, to
 * be shown after the field's name.
 */
import { Duration, Either, Option, Schema } from "effect"
import { nameLength } from "../Auth/inputFields.ts"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { canonicalRange } from "../Domain/IpRange.ts"
import { parseMoment } from "../Domain/moment.ts"
import { parseDuration } from "../Settings/valueSchemas.ts"

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

/** An id that was drawn with the form. */
export const readDrawn =
  <A>(id: Schema.Schema<A, string>) =>
  (text: string): Field<A> =>
    Either.mapLeft(Schema.decodeUnknownEither(id)(text), () => "is damaged: open the form again")

/** The name of a key or an account. */
export const readName = (text: string): Field<string> =>
  /^\P{C}+$/u.test(text) && text.length <= nameLength
    ? Either.right(text)
    : Either.left(`must be 1 to ${nameLength} printable characters`)

/** A whole number from 1 to `highest`. */
export const readCount =
  (highest: number) =>
  (text: string): Field<number> => {
    const number = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : 0
    return number >= 1 && number <= highest
      ? Either.right(number)
      : Either.left(`must be a whole number from 1 to ${highest}`)
  }

/** A duration such as `24h`, at most `longest`. */
export const readDuration =
  (longest: Duration.DurationInput) =>
  (text: string): Field<Duration.Duration> =>
    Option.match(Option.filter(parseDuration(text), Duration.lessThanOrEqualTo(longest)), {
      onNone: () => Either.left(`must be a duration such as 24h, at most ${Duration.format(longest)}`),
      onSome: Either.right
    })

/** CIDR blocks, one a line or separated by commas; none of them twice. */
export const readRanges =
  (most: number) =>
  (text: string): Field<ReadonlyArray<string>> => {
    const given = text.split(/[\s,]+/).filter((range) => range !== "")
    if (given.length > most) return Either.left(`must be ${most} at most`)
    return Either.map(
      Either.all(given.map((range) => Either.mapLeft(canonicalRange(range), (problem) => `${range}: ${problem}`))),
      (ranges) => [...new Set(ranges)]
    )
  }

/** A time in UTC as browsers' date fields send it, or as the API takes it. Unix milliseconds. */
export const readMoment = (text: string): Field<number> =>
  Option.match(parseMoment(/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(text) ? `${text}Z` : text), {
    onNone: () => Either.left("must be a time such as 2026-01-31T12:00, or a day such as 2026-01-31, in UTC"),
    onSome: (millis) => Either.right(Math.max(0, millis))
  })

/** One of some words. */
export const readOneOf =
  <const Word extends string>(words: ReadonlyArray<Word>) =>
  (text: string): Field<Word> => {
    const found = words.find((word) => word === text)
    return found === undefined ? Either.left(`must be one of ${words.join(", ")}`) : Either.right(found)
  }

/** At least one of some words, none twice. */
export const readSome =
  <const Word extends string>(words: ReadonlyArray<Word>) =>
  (given: ReadonlyArray<string>): Field<ReadonlyArray<Word>> => {
    const found = words.filter((word) => given.includes(word))
    if (found.length === 0) return Either.left("must have at least one")
    return given.every((text) => words.some((word) => word === text))
      ? Either.right(found)
      : Either.left(`must be of ${words.join(", ")}`)
  }
