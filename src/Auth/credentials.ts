/** What a person changes about how they sign in: password, sessions. Each act is in the audit log, with nothing secret. */
import { Clock, Data, Effect } from "effect"
import type { AccountId, SessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { defaultAccount } from "./Accounts.ts"
import { audited, personActor } from "./auditLog.ts"
import * as PasswordsRepo from "./PasswordsRepo.ts"
import type { SaltedHash } from "./passwordHash.ts"
import * as SessionsRepo from "./SessionsRepo.ts"
import { mostTyped, normalText } from "./typedText.ts"

/**
 * Within which a sign-in name is unique: an account, so that nobody learns the names of another. Operators share the realm
 * of the default account: where there is no other, a name is all that is asked for.
 */
export const realmOf = (account: AccountId | undefined): AccountId => account ?? defaultAccount

/** Somebody else of this realm signs in with this name. Nothing was changed. */
export class SignInNameTaken extends Data.TaggedError("SignInNameTaken") {}

/** A sign-in name in its normal form, by which it is found. */
export const normalSignInName = (text: string): string => normalText(text).trim().toLowerCase()

/** The least characters of a password, and the most. */
export const passwordLength = { least: 10, most: mostTyped }

/** The password was changed or removed, or its person disabled, after it was verified. */
export class PasswordReplaced extends Data.TaggedError("PasswordReplaced") {}

/**
 * Checks in the caller's transaction that a password that was verified is still its person's. Verifying takes its turn, and
 * whoever changes a stolen password must not be overtaken by the thief's attempt.
 */
export const stillSet = Effect.fnUntraced(function* ({ hash, person }: PasswordsRepo.Password) {
  const now = yield* PasswordsRepo.ofPerson(yield* Tx, person.id)
  const isSame = now !== undefined && Buffer.compare(now.hash, hash) === 0 && now.person.disabledAt === undefined
  if (!isSame) return yield* new PasswordReplaced()
})

/** Sets a person's password, and ends their other sessions: whoever knew the old one is out. */
export const setPassword = Effect.fn("credentials.setPassword")(function* (
  person: Person,
  signInName: string,
  hashed: SaltedHash,
  session: SessionId
) {
  const writer = yield* Writer
  const command = Effect.gen(function* () {
    const tx = yield* Tx
    const realm = realmOf(person.account)
    const holder = yield* PasswordsRepo.bySignInName(tx, realm, signInName)
    if (holder !== undefined && holder.person.id !== person.id) return yield* new SignInNameTaken()
    yield* PasswordsRepo.set(realm, { ...hashed, person, signInName }, yield* Clock.currentTimeMillis)
    yield* SessionsRepo.endAll(person.id, session)
  })
  const act = { act: "portal password", detail: { signInName } }
  return yield* audited(personActor(person), act, () => writer.write(command))
})

class NothingDone extends Data.TaggedError("NothingDone") {}

/** Carries out an act of a person on what is their own. `command` gives whether it did anything: else there is no row. */
export const ownAct = Effect.fn("credentials.ownAct")(function* (
  person: Person,
  act: string,
  detail: Readonly<Record<string, string>>,
  command: Effect.Effect<boolean, StoreUnavailable, Tx>
) {
  const writer = yield* Writer
  const done = Effect.filterOrFail(command, Boolean, () => new NothingDone())
  yield* audited(personActor(person), { act, detail }, () => writer.write(done)).pipe(
    Effect.catchTag("NothingDone", () => Effect.void)
  )
})
