/**
 * One-time links into the portal. A link is 256 random bits, of which only the SHA-256 is stored; it works once and for
 * ten minutes, and using it up happens in the writer: of two uses one is refused. `tilld login` and admins make links;
 * no one makes one for themself in the portal.
 */
import { randomBytes } from "node:crypto"
import { Clock, Data, Effect, Redacted } from "effect"
import { TooMany, UnknownAccount } from "../Domain/Account.ts"
import { newPersonId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { noteOf } from "../Operations/auditLog.ts"
import { type Db, Reader, Tx, Writer } from "../Sql.ts"
import * as AccountsRepo from "./AccountsRepo.ts"
import { hashOf } from "./keyFormat.ts"
import * as Repo from "./LoginLinksRepo.ts"
import * as PeopleRepo from "./PeopleRepo.ts"

/** How long a link works. */
export const linkMinutes = 10

/** A link that signs no one in: it is unknown, expired or used, or its person is disabled. */
export class LinkRefused extends Data.TaggedError("LinkRefused")<{
  readonly reason: "unknown" | "used" | "expired" | "disabled"
}> {}

/** 256 random bits, URL-safe; a bearer token. */
export const newSecret = (): Redacted.Redacted<string> => Redacted.make(randomBytes(32).toString("base64url"))

/** Whether a text can be a secret of a link or a session. Only such texts are looked up in the store. */
export const isSecret = (text: string): boolean => /^[\w-]{43}$/.test(text)

/** Where a link leads, below `server.public_url`. */
export const linkPath = (token: Redacted.Redacted<string>): string => `/portal/login/${Redacted.value(token)}`

/** Stores a new link of a person, in the caller's transaction. */
export const addLink = Effect.fnUntraced(function* (person: Pick<Person, "id">) {
  const token = newSecret()
  const now = yield* Clock.currentTimeMillis
  const link = { person: person.id, expiresAt: now + linkMinutes * 60_000 }
  yield* Repo.insert(hashOf(Redacted.value(token)), link, now)
  return token
})

/** Fails, in the caller's transaction, where an account has as many people as it may. Operators have no account. */
export const roomForOne = Effect.fnUntraced(function* (account: Person["account"]) {
  if (account === undefined) return
  const count = yield* PeopleRepo.countOf(yield* Tx, account)
  if (count >= PeopleRepo.mostPeople) return yield* TooMany.people(PeopleRepo.mostPeople)
})

/**
 * A link for the person with this name, role and account, created if missing: for the command line, whose user owns the
 * store. `noted` gets the person in the transaction.
 */
export const makeLink = Effect.fn("loginLinks.make")(function* (
  who: Pick<Person, "account" | "name" | "role">,
  noted: (person: Person) => void = () => {}
) {
  const writer = yield* Writer
  const command = Effect.gen(function* () {
    const tx = yield* Tx
    if (who.account !== undefined && !(yield* AccountsRepo.exists(tx, who.account))) {
      return yield* UnknownAccount.of(who.account)
    }
    const known = yield* PeopleRepo.named(tx, who)
    const createdAt = yield* Clock.currentTimeMillis
    const person = known ?? { ...who, id: newPersonId(), createdAt, disabledAt: undefined }
    if (known === undefined) yield* Effect.zipRight(roomForOne(who.account), PeopleRepo.insert(person))
    noted(person)
    return { person, token: yield* addLink(person) }
  })
  return yield* writer.write(command)
})

/** The person whom a link signs in at `now`, Unix milliseconds, or why it signs in no one. */
const check = Effect.fnUntraced(function* (db: Db, token: string, now: number) {
  const hash = isSecret(token) ? hashOf(token) : undefined
  const link = hash && (yield* Repo.byHash(db, hash))
  const person = link && (yield* PeopleRepo.byId(db, link.person))
  if (hash === undefined || link === undefined || person === undefined) return { reason: "unknown" as const }
  if (person.disabledAt !== undefined) return { reason: "disabled" as const, hash, link, person }
  if (link.usedAt !== undefined) return { reason: "used" as const, hash, link, person }
  if (link.expiresAt <= now) return { reason: "expired" as const, hash, link, person }
  return { reason: undefined, hash, link, person }
})

/** The person whom a link would sign in. It is not used up. */
export const personOfLink = Effect.fn("loginLinks.person")(function* (token: string) {
  const found = yield* check(yield* Reader, token, yield* Clock.currentTimeMillis)
  if (found.reason !== undefined) return yield* new LinkRefused({ reason: found.reason })
  return found.person
})

/** Uses a link up, in the caller's transaction, and gives its person. */
export const useLink = Effect.fnUntraced(function* (token: string) {
  const now = yield* Clock.currentTimeMillis
  const found = yield* check(yield* Tx, token, now)
  if (found.reason !== undefined) return yield* new LinkRefused({ reason: found.reason })
  yield* Repo.use(found.hash, now)
  return found.person
})

/**
 * Puts the refused use of a link into the audit log: only the first one of a link that existed: its holder has taken it
 * from somewhere. Unknown links are guesses, of which anyone can make as many as they like.
 */
export const noteRefusal = Effect.fn("loginLinks.noteRefusal")(function* (token: string, address: string) {
  const writer = yield* Writer
  const command = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const { hash, link, person, reason } = yield* check(yield* Tx, token, now)
    if (reason === undefined || hash === undefined || link.refusedAt !== undefined) return
    yield* Repo.refuse(hash, now)
    yield* noteOf(person, { act: "portal login refused", detail: { reason, address } })
  })
  yield* writer.write(command)
})
