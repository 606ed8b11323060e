import { Option, Predicate, Schema, SchemaAST } from "effect"
import { inLogOf } from "../lib/annotations.ts"
import { cut, cutToBytes } from "../lib/text.ts"

/** Maximum bytes of a request's body in the log, and maximum characters of a text in it with its ellipsis. */
export const mostBytes = 1024
const longestText = 65

/** Keys and signing secrets, wherever they were put by mistake. */
const secrets = /\b(svc_(?:live|test)|whsec)_[^"\\\s]+/g

const withoutSecrets = (text: string): string => text.replace(secrets, "$1_[redacted]")

/** Maximum number of unknown fields whose names the log keeps. */
const mostUnknown = 10

/** An unknown field's name may be a secret itself: the log keeps only the start of a word of it. */
const shownName = (name: string): string => {
  const [word = ""] = /^[A-Za-z_-]{0,12}/.exec(withoutSecrets(name.slice(0, longestText))) ?? []
  return word === name ? word : `${word}…`
}

const hidden = JSON.stringify("[redacted]")

/** A field of an endpoint's body. */
interface Field {
  /** Its name in JSON. */
  readonly name: string
  readonly isShown: boolean
  readonly isValid: (value: unknown) => boolean
}

const fieldOf = ({ name, type }: SchemaAST.PropertySignature): readonly [name: string, field: Field] => {
  const isShown = inLogOf(type) === "shown"
  // Hidden fields are not decoded: some need the request's key.
  const decode = isShown ? Schema.decodeUnknownOption(Schema.make<unknown, unknown, never>(type)) : Option.none
  return [String(name), { name: JSON.stringify(name), isShown, isValid: (value) => Option.isSome(decode(value)) }]
}

const shownValue = (value: unknown): string =>
  JSON.stringify(typeof value === "string" ? cut(withoutSecrets(value), longestText, "…") : value)

/**
 * The JSON of a request's body for its log: a field's value only where its schema says that the log may have it, and the
 * value has the form that the schema takes. Of an accepted request every value has it.
 */
export type Redact = (payload: unknown, isAccepted: boolean) => string

/** Makes the `Redact` of an endpoint that takes this body. */
export const redactor = (schema: Option.Option<Schema.Schema.All>): Redact => {
  const fields = Option.match(schema, { onNone: () => [], onSome: ({ ast }) => SchemaAST.getPropertySignatures(ast) })
  const known = new Map(fields.map(fieldOf))
  return (payload, isAccepted) => {
    if (!Predicate.isRecord(payload)) return hidden
    const members: Array<string> = []
    let unknown = 0
    for (const name of Object.keys(payload)) {
      const field = known.get(name)
      if (field !== undefined) {
        const value = payload[name]
        const isShown = field.isShown && (isAccepted || field.isValid(value))
        members.push(`${field.name}:${isShown ? shownValue(value) : hidden}`)
      } else if (++unknown <= mostUnknown) members.push(`${JSON.stringify(shownName(name))}:${hidden}`)
    }
    if (unknown > mostUnknown) members.push(`"…":"${unknown - mostUnknown} more"`)
    return cutToBytes(`{${members.join(",")}}`, mostBytes, "…")
  }
}
