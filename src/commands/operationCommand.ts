/**
 * The command of an operation: its options and arguments come from the fields of the operation's input, whose schema
 * says what is wrong with them.
 */
import { Args, Command, Options } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import type { Invocation } from "../Control/Invocation.ts"
import type { FieldProblem } from "../Domain/ApiError.ts"
import { closest } from "../lib/suggestion.ts"
import { decodeInput, type Flag, fieldsOf, type InputField, jsonOf, type Operation } from "../Operations/operation.ts"
import { ask, type ControlTarget } from "./askDaemon.ts"
import { complain, print } from "./Output.ts"
import { type Common, common, controlTargetOf, repeatedTexts, UsageError } from "./options.ts"

/** What was given for a field; none where it was not. */
type Given = Option.Option<string | boolean | ReadonlyArray<string>>

/** A field that the command line takes. */
interface TakenField extends InputField {
  readonly flag: Flag
  /** `--overlap`, or `ID` of an argument. */
  readonly shown: string
}

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

const takenFieldsOf = (fields: Schema.Struct.Fields): ReadonlyArray<TakenField> =>
  fieldsOf(fields).flatMap(({ flag, name, ...field }) =>
    flag === undefined
      ? []
      : [{ ...field, flag, name, shown: flag.isArgument ? (flag.value ?? name) : `--${flag.name ?? kebab(name)}` }]
  )

const optionOf = ({ flag, isOptional, kind, shown }: TakenField): Options.Options<Given> | Args.Args<Given> => {
  const { isArgument, isFile, value = isFile ? "FILE" : "TEXT" } = flag
  const about = isFile ? `${flag.about}: a file, or - for standard input` : flag.about
  if (isArgument) {
    const argument = Args.withDescription(Args.text({ name: value }), about)
    return isOptional ? Args.optional(argument) : Args.map(argument, Option.some)
  }
  const name = shown.slice(2)
  if (kind.is === "flag") {
    return Options.map(Options.withDescription(Options.boolean(name), about), (isGiven) =>
      isGiven ? Option.some(true) : Option.none()
    )
  }
  // As text, so that the schema says what is wrong with it.
  const option = Options.withPseudoName(Options.text(name), kind.is === "word" ? kind.of.join("|") : value)
  const described = Options.withDescription(option, about)
  if (kind.is === "list") {
    return Options.map(repeatedTexts(name, described), (given) =>
      given.length > 0 ? Option.some(given) : Option.none()
    )
  }
  return isOptional || flag.isOptional ? Options.optional(described) : Options.map(described, Option.some)
}

const jsonGiven = (field: TakenField, given: string | boolean | ReadonlyArray<string>): unknown => {
  if (typeof given === "boolean") return given
  if (typeof given === "string") return jsonOf(field, given)
  const [only, another] = given
  return only !== undefined && another === undefined ? jsonOf(field, only) : given
}

/** What is wrong with a command line, in the names of its options. */
const wordingOf = (
  taken: ReadonlyArray<TakenField>,
  json: Readonly<Record<string, unknown>>,
  { message, path }: FieldProblem
) => {
  const [name, at] = path.split(".")
  const found = taken.find((field) => field.name === name)
  if (found === undefined) return message
  const { flag, kind, shown } = found
  const list: unknown = at === undefined ? undefined : json[found.name]
  const item = Array.isArray(list) ? String(list[Number(at)]) : undefined
  if (item === undefined) return `${shown} ${[message, ...Object.keys(flag.words ?? {})].join(", or ")}`
  if (kind.is !== "words") return `${shown} ${JSON.stringify(item)} ${message}`
  const meant = closest(item, kind.of)
  return `${shown}: ${JSON.stringify(item)} is none of ${kind.of.join(", ")}${meant ? `; did you mean ${meant}?` : ""}`
}

/** How the result of an operation is printed without `--json`, and what makes its command fail. */
export interface Printing<OutJson, In> {
  /** On standard output. */
  readonly print: (
    result: OutJson,
    input: In,
    place: ControlTarget
  ) => string | Effect.Effect<string, never, Invocation>
  /** On standard error, with `--json` never. */
  readonly explain?: (result: OutJson, input: In) => string | undefined
  /** Its output is printed, and is not what was wanted. */
  readonly failure?: (result: OutJson) => { readonly _tag: string; readonly message: string } | undefined
}

type Json = Readonly<Record<string, unknown>>

/** Decodes an input that a command line gives, and says what is wrong with it by its options' names. */
export const decoded = <In, InJson>(
  operation: Pick<Operation<In, InJson, unknown, unknown, unknown, unknown>, "check" | "fields" | "input">,
  json: Json
): Effect.Effect<In, UsageError> =>
  Effect.mapError(decodeInput(operation, json), (problems) => {
    const taken = takenFieldsOf(operation.fields)
    return new UsageError({ message: problems.map((problem) => wordingOf(taken, json, problem)).join("\n") })
  })

/** Has an operation carried out, with what stands for absent fields and the ids that are drawn here. */
export const askFor = <In, InJson extends object, Out, OutJson, E extends { readonly message: string }, R>(
  place: ControlTarget,
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  input: In
) =>
  Effect.gen(function* () {
    const whole = yield* Effect.orDie(Schema.encode(operation.input)(input))
    const result = yield* ask(place, operation, whole)
    return yield* Effect.orDie(Schema.encode(operation.output)(result))
  })

/** Decodes an input that a command line gives, has the operation carried out and prints its result. */
export const printOperation = <In, InJson extends object, Out, OutJson, E extends { readonly message: string }, R>(
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  { explain, failure, print: wording }: Printing<OutJson, In>,
  json: Json,
  target: Common
) =>
  Effect.gen(function* () {
    const input = yield* decoded(operation, json)
    const place = yield* controlTargetOf(target)
    const encoded = yield* askFor(place, operation, input)
    const text = target.json ? JSON.stringify(encoded) : wording(encoded, input, place)
    yield* print(typeof text === "string" ? text : yield* text)
    const explanation = target.json ? undefined : explain?.(encoded, input)
    if (explanation !== undefined) yield* complain(explanation)
    const failed = failure?.(encoded)
    if (failed !== undefined) return yield* Effect.fail(failed)
  })

/** A command with the options of some fields. `run` gets what was given of them, as JSON. */
export const commandWith = <E, R>(
  name: string,
  summary: string,
  fields: Schema.Struct.Fields,
  run: (json: Json, target: Common) => Effect.Effect<void, E, R>
) => {
  const taken = takenFieldsOf(fields)
  const options = Object.fromEntries(taken.map((each) => [each.name, optionOf(each)]))
  return Command.make(name, { ...common, options }, ({ options, ...target }) => {
    const json = taken.flatMap((each) => {
      const given = options[each.name] ?? Option.none()
      return Option.isSome(given) ? [[each.name, jsonGiven(each, given.value)]] : []
    })
    return run(Object.fromEntries(json), target)
  }).pipe(Command.withDescription(summary))
}

/**
 * The command of an operation.
 *
 * @param prepare changes what was given: reads files, or gives what the command line has for absent fields
 */
export const commandOf = <
  In,
  InJson extends object,
  Out,
  OutJson,
  E extends { readonly message: string },
  R,
  PE = never,
  PR = never
>(
  operation: Operation<In, InJson, Out, OutJson, E, R>,
  printing: Printing<OutJson, In>,
  prepare: (json: Json) => Effect.Effect<Json, PE, PR> = Effect.succeed
) =>
  commandWith(operation.name.split(" ").at(-1) ?? "", operation.summary, operation.fields, (json, target) =>
    Effect.flatMap(prepare(json), (prepared) => printOperation(operation, printing, prepared, target))
  )

/** Says of a full page how to see what comes after it. */
export const moreAfter = (
  rows: ReadonlyArray<{ readonly id: string }>,
  { limit }: { readonly limit: number }
): string | undefined => (rows.length < limit ? undefined : `There may be more: --after ${rows.at(-1)?.id}`)
