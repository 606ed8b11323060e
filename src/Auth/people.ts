/**
 * Administration of people: invite, change role, disable. Each act takes effect at once, for sessions that are open
 * too, and is in the audit log. The caller decides who may do it to whom.
 */
import { Clock, Data, Effect, type Redacted } from "effect"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { newPersonId, type PersonId, type SessionId } from "../Domain/Ids.ts"
import type { AccountRole, Person } from "../Domain/Person.ts"
import * as AuditRepo from "../Operations/AuditRepo.ts"
import { type Actor, audited, auditedWrite } from "../Operations/auditLog.ts"
import { Settings } from "../Settings.ts"
import { type Db, Tx, Writer } from "../Sql.ts"
import { isExpiredOrRevoked, Keys } from "./Keys.ts"
import { byId as keyById } from "./KeysRepo.ts"
import * as LinksRepo from "./LoginLinksRepo.ts"
import { addLink, roomForOne } from "./loginLinks.ts"
import * as PasskeysRepo from "./PasskeysRepo.ts"
import * as PasswordsRepo from "./PasswordsRepo.ts"
import * as Repo from "./PeopleRepo.ts"
import * as SessionsRepo from "./SessionsRepo.ts"
import * as NetworksRepo from "./SignInNetworksRepo.ts"
import { renew, stillOpen } from "./sessions.ts"
import { keepWithin } from "./UsageRepo.ts"

/** A person with the token of a new link, which is known only now. */
export interface Invited {
  readonly person: Pick<Person, "id" | "name">
  readonly token: Redacted.Redacted<string>
}

/** The account already has a person of this name. Nothing was changed. */
export class PersonExists extends Data.TaggedError("PersonExists")<{ readonly isDisabled: boolean }> {}

/** Where a link is made: in a session, which has to be open still, by a client at this address. */
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
    return yield* addLink(person)
  })
  const detail = { name: who.name, role: who.role, account: who.account, person: person.id, address }
  const token = yield* auditedWrite(actor, { act: "people invite", detail }, command)
  return { person, token } satisfies Invited
})

/** Makes another link for a person. */
export const inviteAgain = Effect.fn("people.inviteAgain")(function* (
  actor: Actor,
  person: Person,
  { address, session }: Where
) {
  const act = { act: "people link", detail: { person: person.id, name: person.name, address } }
  const token = yield* auditedWrite(actor, act, Effect.zipRight(stillOpen(session), addLink(person)))
  return { person, token } satisfies Invited
})

/** @param address of the client */
export const changeRole = Effect.fn("people.changeRole")(
  (actor: Actor, person: Person, role: AccountRole, address: string) => {
    const detail = { person: person.id, name: person.name, from: person.role, to: role, address }
    return auditedWrite(actor, { act: "people role", detail }, Repo.changeRole(person.id, role))
  }
)

/** Ends a person's sessions, and removes all that signs them in: links, password, passkeys. In the caller's transaction. */
const endAccess = Effect.fnUntraced(function* (id: PersonId, kept?: SessionId) {
  yield* SessionsRepo.endAllOf(id, kept)
  yield* LinksRepo.end(id, yield* Clock.currentTimeMillis)
  yield* PasswordsRepo.remove(id)
  yield* PasskeysRepo.removeAll(id)
})

/**
 * Ends a person's sessions and lets them sign in no more. Nothing of how they signed in is kept: an account can have disabled
 * people without number. Enabled again they need a new link.
 */
export const disable = Effect.fn("people.disable")((actor: Actor, { id, name }: Person) => {
  const command = Effect.gen(function* () {
    yield* Repo.disable(id, yield* Clock.currentTimeMillis)
    yield* endAccess(id)
    yield* NetworksRepo.forget(id)
  })
  return auditedWrite(actor, { act: "people disable", detail: { person: id, name } }, command)
})

/**
 * Lets a disabled person sign in again, by a link that is made next.
 *
 * @param address of the client
 */
export const enable = Effect.fn("people.enable")((actor: Actor, { account, id, name }: Person, address: string) =>
  auditedWrite(
    actor,
    { act: "people enable", detail: { person: id, name, address } },
    Effect.zipRight(roomForOne(account), Repo.disable(id, undefined))
  )
)

/** How far back `endAll` looks for what was made in a stolen session, in days: as long as a session lasts. */
export const endsAllOf = 7

/** Whom a person has let in within that time, whom these have, and so on; and the working API keys that any of them made. */
export const madeBy = Effect.fnUntraced(function* (db: Db, { id }: Pick<Person, "id">) {
  const now = yield* Clock.currentTimeMillis
  const made = yield* AuditRepo.madeBy(db, id, now - endsAllOf * 24 * 60 * 60_000)
  const people: Array<Person> = []
  const keys: Array<ApiKey> = []
  for (const { key, person } of made) {
    const found = person === null || person === id ? undefined : yield* Repo.byId(db, person)
    if (found !== undefined && found.disabledAt === undefined) people.push(found)
    const record = key === null ? undefined : yield* keyById(db, key)
    if (record !== undefined && !isExpiredOrRevoked(record, now)) keys.push(record)
  }
  return { people, keys }
})

/**
 * Ends what a thief of a person's session may have: the person's access and that of whom they let in, and revokes the API
 * keys that `madeBy` names. `kept`: a session of theirs that stays, with the new secret that this gives.
 */
export const endAll = Effect.fn("people.endAll")(function* (actor: Actor, { id, name }: Person, kept?: SessionId) {
  const writer = yield* Writer
  const keys = yield* Keys
  const command = Effect.gen(function* () {
    if (kept !== undefined) yield* stillOpen(kept)
    const made = yield* madeBy(yield* Tx, { id })
    yield* endAccess(id, kept)
    for (const person of made.people) yield* endAccess(person.id)
    return { ...made, secret: kept === undefined ? undefined : yield* renew(kept) }
  })
  return yield* audited(actor, { act: "people revoke", detail: { person: id, name } }, (note) =>
    Effect.gen(function* () {
      const { keys: found, secret } = yield* writer.write(
        Effect.tap(command, (made) => {
          note({ people: made.people.map((one) => one.id), keys: made.keys.map((one) => one.id) })
        })
      )
      yield* Effect.forEach(found, (key) => keys.revoke(key.id))
      return secret
    })
  )
})
