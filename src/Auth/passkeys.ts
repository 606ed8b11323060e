/**
 * Passkeys: WebAuthn credentials that the authenticator keeps with the person's id, so that no one types a name, and
 * with user verification always required. `@simplewebauthn/server` makes the options and checks what comes back; it is
 * loaded with the first page that offers a passkey.
 */

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { Clock, Data, Effect, Schema } from "effect"
import type { SessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { BoundedMap } from "../lib/BoundedMap.ts"
import { auditedWrite, personActor } from "../Operations/auditLog.ts"
import { Settings } from "../Settings.ts"
import { Reader, Tx } from "../Sql.ts"
import * as Repo from "./PasskeysRepo.ts"
import * as PeopleRepo from "./PeopleRepo.ts"
import { stillOpen } from "./sessions.ts"
import { keepWithin } from "./UsageRepo.ts"

/** The site that passkeys are for. */
export interface RelyingParty {
  readonly id: string
  readonly origin: string
  readonly challenges: Challenges
}

/** The browser's answer is not of a known passkey, or comes too late. */
export class PasskeyRefused extends Data.TaggedError("PasskeyRefused") {}

/** The relying party's id for a public URL: its host's name. Undefined for an IP address, which WebAuthn does not take. */
export const relyingPartyId = (publicUrl: string): string | undefined => {
  const { hostname, protocol } = new URL(publicUrl)
  if (protocol !== "https:" && hostname !== "localhost") return undefined
  return /^[\d.]+$|^\[/.test(hostname) ? undefined : hostname
}

const library = Effect.promise(() => import("@simplewebauthn/server"))

/** The options for the browser to ask for any passkey of this site. */
export const askOptions = Effect.fn("passkeys.askOptions")(function* (party: RelyingParty, purpose: string) {
  const { generateAuthenticationOptions } = yield* library
  const challenge = party.challenges.issue(purpose, yield* Clock.currentTimeMillis)
  return yield* Effect.promise(() =>
    generateAuthenticationOptions({
      rpID: party.id,
      challenge: new Uint8Array(Buffer.from(challenge, "base64url")),
      userVerification: "required"
    })
  )
})

/** The options for the browser to make a passkey for a person. */
export const makeOptions = Effect.fn("passkeys.makeOptions")(function* (
  party: RelyingParty,
  purpose: string,
  person: Person
) {
  const { generateRegistrationOptions } = yield* library
  const present = yield* Repo.list(yield* Reader, person.id)
  const challenge = party.challenges.issue(purpose, yield* Clock.currentTimeMillis)
  return yield* Effect.promise(() =>
    generateRegistrationOptions({
      rpName: "tilld",
      rpID: party.id,
      userName: person.name,
      userDisplayName: person.name,
      userID: new Uint8Array(Buffer.from(person.id)),
      challenge: new Uint8Array(Buffer.from(challenge, "base64url")),
      attestationType: "none",
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
      excludeCredentials: present.map(({ id }) => ({ id }))
    })
  )
})

const Base64Url = Schema.String.pipe(Schema.pattern(/^[\w-]+$/), Schema.maxLength(16_384))

/** The browser's message (WebAuthn, 5.1: PublicKeyCredential.toJSON), as far as it is used. */
const credential = <Fields extends Schema.Struct.Fields>(response: Fields) =>
  Schema.parseJson(
    Schema.Struct({
      id: Base64Url.pipe(Schema.maxLength(Repo.longestId)),
      rawId: Base64Url,
      type: Schema.Literal("public-key"),
      response: Schema.Struct({ clientDataJSON: Base64Url, ...response })
    })
  )

/** The answer of a passkey. */
export const Assertion = credential({ authenticatorData: Base64Url, signature: Base64Url })

/** A new passkey. */
export const Registration = credential({ attestationObject: Base64Url })

const sent = <A>(schema: Schema.Schema<A, string>, text: string) =>
  Schema.decode(schema)(text).pipe(
    Effect.mapBoth({
      onSuccess: (answer) => ({ ...answer, clientExtensionResults: {} }),
      onFailure: () => new PasskeyRefused()
    })
  )

const checked = <A>(check: () => Promise<A>): Effect.Effect<A, PasskeyRefused> =>
  Effect.tryPromise({ try: check, catch: () => new PasskeyRefused() })

/** The values to verify against, and the consumer of a verified answer. */
const expecting = ({ challenges, id, origin }: RelyingParty, purpose: string, now: number) => {
  let answered = ""
  const expected = {
    expectedChallenge: (challenge: string) => {
      answered = challenge
      return challenges.isOpen(challenge, purpose, now)
    },
    expectedOrigin: origin,
    expectedRPID: id,
    requireUserVerification: true
  }
  const take = Effect.suspend(() => (challenges.answer(answered, purpose, now) ? Effect.void : new PasskeyRefused()))
  return { expected, take }
}

/**
 * The person of a passkey's answer, `text` in JSON. The counter is stored with `use`, in the transaction that the answer
 * allows.
 */
export const checkPasskey = Effect.fn("passkeys.check")(function* (party: RelyingParty, purpose: string, text: string) {
  const { verifyAuthenticationResponse } = yield* library
  const response = yield* sent(Assertion, text)
  const reader = yield* Reader
  const passkey = yield* Repo.byId(reader, response.id)
  const person = passkey && (yield* PeopleRepo.byId(reader, passkey.person))
  if (passkey === undefined || person === undefined || person.disabledAt !== undefined) {
    return yield* new PasskeyRefused()
  }
  const now = yield* Clock.currentTimeMillis
  const { expected, take } = expecting(party, purpose, now)
  const { authenticationInfo, verified } = yield* checked(() =>
    verifyAuthenticationResponse({
      ...expected,
      response,
      credential: { id: passkey.id, publicKey: new Uint8Array(passkey.publicKey), counter: passkey.counter }
    })
  )
  if (!verified) return yield* new PasskeyRefused()
  yield* take
  const use = Effect.gen(function* () {
    // It may have been removed while it was verified.
    if (!(yield* Repo.used(passkey.id, authenticationInfo.newCounter, now))) return yield* new PasskeyRefused()
  })
  return { person, use }
})

export interface NewPasskey {
  readonly person: Person
  readonly name: string
  /** What the browser sent, in JSON. */
  readonly text: string
  readonly address: string
}

/** Stores the passkey that a browser made in a session. */
export const addPasskey = Effect.fn("passkeys.add")(function* (
  party: RelyingParty,
  session: SessionId,
  { address, name, person, text }: NewPasskey
) {
  const { verifyRegistrationResponse } = yield* library
  const response = yield* sent(Registration, text)
  const now = yield* Clock.currentTimeMillis
  const { expected, take } = expecting(party, session, now)
  const { registrationInfo } = yield* checked(() => verifyRegistrationResponse({ ...expected, response }))
  if (registrationInfo === undefined) return yield* new PasskeyRefused()
  const { counter, id, publicKey } = registrationInfo.credential
  // Both as the browser sent them: the id may differ from the answer's, and the key may have fields of any length.
  if (id.length > Repo.longestId || publicKey.length > Repo.longestKey) return yield* new PasskeyRefused()
  yield* take
  const { quotaBytes } = (yield* Settings).accounts
  const command = Effect.gen(function* () {
    const tx = yield* Tx
    yield* stillOpen(session)
    const present = yield* Repo.list(tx, person.id)
    if (present.length >= Repo.mostPasskeys || (yield* Repo.byId(tx, id)) !== undefined) {
      return yield* new PasskeyRefused()
    }
    if (person.account !== undefined) yield* keepWithin({ account: person.account }, quotaBytes)
    yield* Repo.insert({ id, person: person.id, name, publicKey, counter, createdAt: now })
  })
  yield* auditedWrite(personActor(person), { act: "portal passkey", detail: { id, name, address } }, command)
})

/** Lifetime of a challenge, milliseconds. */
const lifetime = 5 * 60_000
const nonceBytes = 16
const timeBytes = 8
/** Answered challenges in memory: more than passkeys can be checked within the lifetime of one. */
const mostAnswered = 100_000

/**
 * Challenges for passkeys. One is answered once, within five minutes, and for the purpose that it was made for: signing
 * in, or something within one session. A challenge proves itself (random bits, time, HMAC with a key of this process),
 * and only correctly answered ones are remembered: a client that requests challenges endlessly takes no memory, and
 * evicts no others. After a restart, a person who is signing in has to start again.
 */
export class Challenges {
  readonly #key = randomBytes(32)
  readonly #answered = new BoundedMap<string, true>(mostAnswered)

  #proof(issued: Uint8Array, purpose: string): Buffer {
    return createHmac("sha256", this.#key).update(issued).update(purpose).digest()
  }

  /** A new one, in base64url. `now` in Unix milliseconds. */
  issue(purpose: string, now: number): string {
    const issued = randomBytes(nonceBytes + timeBytes)
    issued.writeDoubleBE(now, nonceBytes)
    return Buffer.concat([issued, this.#proof(issued, purpose)]).toString("base64url")
  }

  /** Whether a challenge was made for this purpose, and may still have its answer. */
  isOpen(challenge: string, purpose: string, now: number): boolean {
    const bytes = Buffer.from(challenge, "base64url")
    const issued = bytes.subarray(0, nonceBytes + timeBytes)
    const given = bytes.subarray(issued.length)
    const proof = this.#proof(issued, purpose)
    if (given.length !== proof.length || !timingSafeEqual(given, proof)) return false
    return now - issued.readDoubleBE(nonceBytes) < lifetime && !this.#answered.has(bytes.toString("base64url"))
  }

  /** Accepts the right answer to a challenge; false when it is not open, since a concurrent one was faster. */
  answer(challenge: string, purpose: string, now: number): boolean {
    if (!this.isOpen(challenge, purpose, now)) return false
    this.#answered.set(Buffer.from(challenge, "base64url").toString("base64url"), true)
    return true
  }
}
