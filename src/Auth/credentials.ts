/** A person's changes to their own sign-in: password, sessions. Each act is in the audit log, without secrets. */
import { Clock, Data, Effect } from "effect"
import type { AccountId, SessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { auditedWrite, personActor } from "../Operations/auditLog.ts"
import { type StoreUnavailable, Tx } from "../Sql.ts"
import { defaultAccount } from "./Accounts.ts"
import * as PasswordsRepo from "./PasswordsRepo.ts"
import { mostTyped, normalText, type SaltedHash } from "./passwordHash.ts"
import * as SessionsRepo from "./SessionsRepo.ts"
import { renew, stillOpen } from "./sessions.ts"

/**
 * The scope of a unique sign-in name: an account, so that no one learns the names of another. Operators share the realm
 * of the default account: without other accounts, sign-in asks only for a name.
 */
export const realmOf = (account: AccountId | undefined): AccountId => account ?? defaultAccount

/** Somebody else of this realm signs in with this name. Nothing was changed. */
export class SignInNameTaken extends Data.TaggedError("SignInNameTaken") {}

/** A sign-in name in its normal form, by which it is found. */
export const normalSignInName = (text: string): string => normalText(text).trim().toLowerCase()

/** Minimum and maximum length of a password, in characters. */
export const passwordLength = { least: 10, most: mostTyped }

/** The password was changed or removed, or its person disabled, after it was verified. */
export class PasswordReplaced extends Data.TaggedError("PasswordReplaced") {}

/**
 * Checks in the caller's transaction that a password that was verified is still its person's. Verification is queued: a
 * thief's attempt must not overtake the change of a stolen password.
 */
export const stillSet = Effect.fnUntraced(function* ({ hash, person }: PasswordsRepo.Password) {
  const now = yield* PasswordsRepo.ofPerson(yield* Tx, person.id)
  const isSame = now !== undefined && Buffer.compare(now.hash, hash) === 0 && now.person.disabledAt === undefined
  if (!isSame) return yield* new PasswordReplaced()
})

export interface PasswordChange {
  readonly signInName: string
  readonly hashed: SaltedHash
  /** In which it is set. */
  readonly session: SessionId
  readonly address: string
}

/**
 * Sets a person's password, and ends their other sessions: anyone who knew the old one is signed out. Gives the new secret
 * of the session.
 */
export const setPassword = Effect.fn("credentials.setPassword")(
  (person: Person, { address, hashed, session, signInName }: PasswordChange) => {
    const command = Effect.gen(function* () {
      const tx = yield* Tx
      yield* stillOpen(session)
      const realm = realmOf(person.account)
      const holder = yield* PasswordsRepo.bySignInName(tx, realm, signInName)
      if (holder !== undefined && holder.person.id !== person.id) return yield* new SignInNameTaken()
      yield* SessionsRepo.endAllOf(person.id, session)
      const createdAt = yield* Clock.currentTimeMillis
      yield* PasswordsRepo.set(realm, { ...hashed, person, signInName, createdAt })
      return yield* renew(session)
    })
    return auditedWrite(personActor(person), { act: "portal password", detail: { signInName, address } }, command)
  }
)

class NothingDone extends Data.TaggedError("NothingDone") {}

/** Carries out a person's act on their own credentials. `command` returns whether it had an effect: else no row. */
export const ownAct = Effect.fn("credentials.ownAct")(
  (
    person: Person,
    act: string,
    detail: Readonly<Record<string, string>>,
    command: Effect.Effect<boolean, StoreUnavailable, Tx>
  ) => {
    const done = Effect.filterOrFail(command, Boolean, () => new NothingDone())
    return Effect.catchTag(auditedWrite(personActor(person), { act, detail }, done), "NothingDone", () => Effect.void)
  }
)
