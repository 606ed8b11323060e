import { Data, Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { PersonId, SessionId } from "../Domain/Ids.ts"
import type { Role } from "../Domain/Person.ts"
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
  readonly actor: Effect.Effect<Extract<Actor, { readonly owner: Owner }>, ProofNeeded>
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
