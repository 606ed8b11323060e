/**
 * Administration of people: invite, change role, disable. Each act takes effect at once, for sessions that are open
 * too, and is in the audit log. The caller decides who may do it to whom.
 */
import { Clock, Data, Effect, type Redacted } from "effect"
import { newPersonId, type SessionId } from "../Domain/Ids.ts"
import type { AccountRole, Person } from "../Domain/Person.ts"
import { type Actor, audited } from "../Operations/auditLog.ts"
import { Settings } from "../Settings.ts"
import { Tx, Writer } from "../Sql.ts"
import { endSessionsOf } from "./descent.ts"
import * as LinksRepo from "./LoginLinksRepo.ts"
import { addLink, roomForOne } from "./loginLinks.ts"
import * as PasskeysRepo from "./PasskeysRepo.ts"
import * as PasswordsRepo from "./PasswordsRepo.ts"
import * as Repo from "./PeopleRepo.ts"
import * as NetworksRepo from "./SignInNetworksRepo.ts"
import { stillOpen } from "./sessions.ts"
import { keepWithin } from "./UsageRepo.ts"

/** A person with the token of a new link, which is known only now. */
export interface Invited {
  readonly person: Pick<Person, "id" | "name">
  readonly token: Redacted.Redacted<string>
}

/** The account already has a person of this name. Nothing was changed. */
export class PersonExists extends Data.TaggedError("PersonExists")<{ readonly isDisabled: boolean }> {}

/** Where a link is made: in a session, with which it ends, by a client at this address. */
export interface Where {
  readonly session: SessionId
  readonly address: string
}

/** Makes a person with a link, within the quota. Existing people are not invited: a new link says whom it signs in. */
export const invite = Effect.fn("people.invite")(function* (
  actor: Actor,
  who: Pick<Person, "account" | "name" | "role">,
  { address, session }: Where
) {
  const writer = yield* Writer
  const { quotaBytes } = (yield* Settings).accounts
  const person: Person = {
    ...{ ...who, id: newPersonId() },
    ...{ createdAt: yield* Clock.currentTimeMillis, disabledAt: undefined }
  }
  const command = Effect.gen(function* () {
    yield* stillOpen(session)
    const present = yield* Repo.ofName(yield* Tx, who)
    if (present !== undefined) return yield* new PersonExists({ isDisabled: present.disabledAt !== undefined })
    yield* roomForOne(who.account)
    if (who.account !== undefined) yield* keepWithin({ account: who.account }, quotaBytes)
    yield* Repo.insert(person)
    return yield* addLink(person, session)
  })
  const detail = { name: who.name, role: who.role, account: who.account, person: person.id, address }
  const token = yield* audited(actor, { act: "people invite", detail }, () => writer.write(command))
  return { person, token } satisfies Invited
})

/** Makes another link for a person. */
export const inviteAgain = Effect.fn("people.inviteAgain")(function* (
  actor: Actor,
  person: Person,
  { address, session }: Where
) {
  const writer = yield* Writer
  const act = { act: "people link", detail: { person: person.id, name: person.name, address } }
  const command = Effect.zipRight(stillOpen(session), addLink(person, session))
  const token = yield* audited(actor, act, () => writer.write(command))
  return { person, token } satisfies Invited
})

/** @param address of the client */
export const changeRole = Effect.fn("people.changeRole")(function* (
  actor: Actor,
  person: Person,
  role: AccountRole,
  address: string
) {
  const writer = yield* Writer
  const detail = { person: person.id, name: person.name, from: person.role, to: role, address }
  const act = { act: "people role", detail }
  yield* audited(actor, act, () => writer.write(Repo.changeRole(person.id, role)))
})

/**
 * Ends a person's sessions, what came of them, and their links, and lets them sign in no more. Nothing of how they signed in
 * is kept: an account can have disabled people without number. Enabled again they need a new link.
 */
export const disable = Effect.fn("people.disable")(function* (actor: Actor, { id, name }: Person) {
  const writer = yield* Writer
  const command = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    yield* Repo.disable(id, now)
    yield* endSessionsOf(id, { credentials: true })
    yield* LinksRepo.end(id, now)
    yield* PasswordsRepo.remove(id)
    yield* PasskeysRepo.removeAll(id)
    yield* NetworksRepo.forget(id)
  })
  yield* audited(actor, { act: "people disable", detail: { person: id, name } }, () => writer.write(command))
})

/**
 * Lets a disabled person sign in again, by a link that is made next.
 *
 * @param address of the client
 */
export const enable = Effect.fn("people.enable")(function* (
  actor: Actor,
  { account, id, name }: Person,
  address: string
) {
  const writer = yield* Writer
  const act = { act: "people enable", detail: { person: id, name, address } }
  const command = Effect.zipRight(roomForOne(account), Repo.disable(id, undefined))
  yield* audited(actor, act, () => writer.write(command))
})

/** Ends all sessions of a person, and all that came of them. */
export const endSessions = Effect.fn("people.endSessions")(function* (actor: Actor, { id, name }: Person) {
  const writer = yield* Writer
  const act = { act: "people revoke", detail: { person: id, name } }
  yield* audited(actor, act, () => writer.write(endSessionsOf(id, { credentials: true })))
})
