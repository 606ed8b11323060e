/**
 * What is done to people: invited, given another role, disabled. Each act takes effect at once, for sessions that are open
 * too, and is in the audit log. Whoever may do it to whom is decided by the caller.
 */
import { Clock, Effect, type Redacted } from "effect"
import type { AccountRole, Person } from "../Domain/Person.ts"
import { Writer } from "../Sql.ts"
import { type Actor, audited } from "./auditLog.ts"
import * as LinksRepo from "./LoginLinksRepo.ts"
import { addLink, makeLink, roomForOne } from "./loginLinks.ts"
import * as Repo from "./PeopleRepo.ts"
import * as SessionsRepo from "./SessionsRepo.ts"

/** A person with the token of a new link, which is known only now. */
export interface Invited {
  readonly person: Pick<Person, "id" | "name">
  readonly token: Redacted.Redacted<string>
}

/** Makes a link for the person with this name, role and account, who is made where there is none. */
export const invite = Effect.fn("people.invite")(function* (
  actor: Actor,
  who: Pick<Person, "account" | "name" | "role">
) {
  const act = { act: "people invite", detail: { name: who.name, role: who.role, account: who.account } }
  return yield* audited(actor, act, (note) => makeLink(who, ({ id }) => note({ person: id })))
})

/** Makes another link for a person. */
export const inviteAgain = Effect.fn("people.inviteAgain")(function* (actor: Actor, person: Person) {
  const writer = yield* Writer
  const act = { act: "people link", detail: { person: person.id, name: person.name } }
  const token = yield* audited(actor, act, () => writer.write(addLink(person)))
  return { person, token } satisfies Invited
})

export const changeRole = Effect.fn("people.changeRole")(function* (actor: Actor, person: Person, role: AccountRole) {
  const writer = yield* Writer
  const act = { act: "people role", detail: { person: person.id, name: person.name, from: person.role, to: role } }
  yield* audited(actor, act, () => writer.write(Repo.changeRole(person.id, role)))
})

/** Ends a person's sessions and links, and lets them sign in no more. */
export const disable = Effect.fn("people.disable")(function* (actor: Actor, { id, name }: Person) {
  const writer = yield* Writer
  const command = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    yield* Repo.disable(id, now)
    yield* SessionsRepo.endAll(id, undefined)
    yield* LinksRepo.end(id, now)
  })
  yield* audited(actor, { act: "people disable", detail: { person: id, name } }, () => writer.write(command))
})

/** Lets a disabled person sign in again. */
export const enable = Effect.fn("people.enable")(function* (actor: Actor, { account, id, name }: Person) {
  const writer = yield* Writer
  const act = { act: "people enable", detail: { person: id, name } }
  const command = Effect.zipRight(roomForOne(account), Repo.disable(id, undefined))
  yield* audited(actor, act, () => writer.write(command))
})

/** Ends all sessions of a person. */
export const endSessions = Effect.fn("people.endSessions")(function* (actor: Actor, { id, name }: Person) {
  const writer = yield* Writer
  const act = { act: "people revoke", detail: { person: id, name } }
  yield* audited(actor, act, () => writer.write(SessionsRepo.endAll(id, undefined)))
})
