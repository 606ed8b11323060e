/** Who looks at a page, and what forms and queries have: their fields, decoded as the API decodes them. */
import { Data, Effect, Either, Schema } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { ApiError, FieldProblem } from "../Domain/ApiError.ts"
import type { PersonId, SessionId } from "../Domain/Ids.ts"
import type { Role } from "../Domain/Person.ts"
import { problemsOf } from "../Http/validationProblems.ts"
import type { Actor } from "../Operations/auditLog.ts"
import type { Caller } from "../Operations/operation.ts"

export type { Role } from "../Domain/Person.ts"

const ranks: Readonly<Record<Role, number>> = { viewer: 0, admin: 1, operator: 2 }

/** Whether a person of `role` may do what needs `least`. */
export const mayAs = (role: Role, least: Role): boolean => ranks[role] >= ranks[least]

/** Before this is done, a person has to prove who they are. Nothing was done. */
export class ProofNeeded extends Data.TaggedError("ProofNeeded") {}

/** The person who looks at a page, with the account and mode that the page is about. */
export interface Viewer {
  /** Id of the person. */
  readonly person: PersonId
  readonly name: string
  readonly role: Role
  /** The account and mode of the page; one that the person may see. */
  readonly owner: Owner
  /** What every form has to send as the field `csrf`. */
  readonly csrf: string
  /** Who acts, for the audit log. Fails where the route needs a proof of identity that was not given. */
  readonly actor: Effect.Effect<Actor & { readonly owner: Owner }, ProofNeeded>
  /** Id of the session. */
  readonly session: SessionId
  /** What the form before this page has done. */
  readonly done?: string | undefined
  /** What needs a person, by its section. */
  readonly badges: Badges
}

/** Counts up to `mostInBadge`. */
interface Badges {
  readonly "/exceptions": number
  /** Deliveries that have failed and are tried again. */
  readonly "/deliveries": number
}

export const mostInBadge = 100

/** The viewer as the caller of an operation. */
export const callerOf = ({ actor, role }: Viewer): Effect.Effect<Caller, ProofNeeded> =>
  Effect.map(actor, (who) => ({ actor: who, isOperator: mayAs(role, "operator") }))

/** Rows of a page of the portal. */
export const pageSize = 50

/** The address of a page with parameters. Empty ones are left out. */
export const withQuery = (path: string, parameters: Readonly<Record<string, string | undefined>>): string => {
  const kept = Object.entries(parameters).filter((entry): entry is [string, string] => !!entry[1])
  return kept.length === 0 ? path : `${path}?${new URLSearchParams(kept)}`
}

/** The text of a field or a parameter without the space around it; empty where it is missing. */
export const textOf = (given: URLSearchParams, name: string): string => (given.get(name) ?? "").trim()

/** The text that a parameter names; undefined for a name that there is none of. */
export const namedIn = <A>(texts: Readonly<Record<string, A>>, name: string | null): A | undefined =>
  name !== null && Object.hasOwn(texts, name) ? texts[name] : undefined

/** The first value of each parameter, without surrounding blanks; empty ones are left out, and the token of a form. */
export const givenOf = (parameters: URLSearchParams): Record<string, string> => {
  const given: Record<string, string> = {}
  for (const [name, value] of parameters) {
    const text = value.trim()
    if (text !== "" && name !== "csrf" && given[name] === undefined) given[name] = text
  }
  return given
}

const isProblems = Schema.is(Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String })))

/** Why the API would refuse it, for beside the fields of a form; a reason of the whole form has an empty path. */
export const problemsOfRefusal = ({ details, message }: ApiError): ReadonlyArray<FieldProblem> =>
  isProblems(details) ? details : [{ path: "", message }]

/** A decimal as people type it, with a point: a comma is one where it can be nothing else (`12,50`, but not `1,234`). */
export const decimalOf = (text: string): string =>
  /^[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})$/.test(text) ? text.replace(",", ".") : text

/** Base units of an amount as people type it, e.g. `54.615517`; undefined for what is none with so many decimals. */
export const baseUnitsOf = (text: string, decimals: number): string | undefined => {
  const [, whole = "", fraction = ""] = /^([0-9]{1,78})(?:[.]([0-9]+))?$/.exec(decimalOf(text)) ?? []
  if (whole === "" || fraction.length > decimals) return undefined
  return (whole + fraction.padEnd(decimals, "0")).replace(/^0+/, "") || "0"
}

/** The rule that `baseUnitsOf` applies, for a message. */
const amountRule = (decimals: number): string =>
  decimals === 0
    ? "must be a whole number above zero"
    : `must be a number above zero such as 12.5, with at most ${decimals} digits after the point, and no separator of thousands`

/** The fields of a form, as the API's `schema` takes them: the amount in base units. */
export const bodyOfForm = <A, I>(
  schema: Schema.Schema<A, I>,
  { amount, ...others }: { readonly amount?: string; readonly [name: string]: unknown },
  decimals: number
): Either.Either<A, ReadonlyArray<FieldProblem>> => {
  const units = amount === undefined ? undefined : baseUnitsOf(amount, decimals)
  const isAmount = units !== undefined && units !== "0"
  const fields = amount === undefined ? others : { ...others, amount: isAmount ? units : "1" }
  const decoded = Schema.decodeUnknownEither(schema, { errors: "all" })(fields)
  const problems = [
    ...(amount === undefined || isAmount ? [] : [{ path: "amount", message: amountRule(decimals) }]),
    ...(Either.isRight(decoded) ? [] : problemsOf(decoded.left, { kind: "field", known: [] }))
  ]
  return Either.isRight(decoded) && problems.length === 0 ? Either.right(decoded.right) : Either.left(problems)
}
