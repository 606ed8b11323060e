/**
 * Sessions of the portal: 256 random bits in a cookie, of which only the SHA-256 is stored. One ends twelve hours after its
 * last request and seven days after it began, at sign-out, when it is revoked, or with its person. Every sign-in makes a new
 * one, so that a secret that was planted in a browser is worth nothing.
 */
import { Clock, Data, Effect, Redacted } from "effect"
import type { SessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { cut } from "../lib/text.ts"
import { auditedWrite, personActor } from "../Operations/auditLog.ts"
import { type Db, Reader, type StoreUnavailable, type Tx, Writer } from "../Sql.ts"
import { hashOf } from "./keyFormat.ts"
import { isSecret, newSecret } from "./loginLinks.ts"
import * as Repo from "./SessionsRepo.ts"
import * as NetworksRepo from "./SignInNetworksRepo.ts"

const hour = 60 * 60_000
/** How long a session lasts without a request, and at most, in milliseconds. */
const maximumIdle = 12 * hour
const maximumAge = 7 * 24 * hour
/** A session that was last used before this has ended, also by its age: it is used no more then. Unix milliseconds. */
export const unusedSince = (now: number): number => now - maximumIdle

/** `seenAt` is stored at most this often. */
const seenEvery = 60_000
/** How long a proof of identity counts as fresh, in milliseconds. */
export const freshFor = 30 * 60_000

const longestAgent = 200

/** The browser that signs in. */
export interface Visitor {
  readonly userAgent: string
  readonly address: string
  readonly network: string
  /** The secret of the session that the browser has had, which a sign-in ends. */
  readonly secret: string | undefined
}

/** A session with its person; `secret` is what the cookie holds. */
export interface SignedIn {
  readonly secret: string
  readonly session: Repo.Session
  readonly person: Person
}

/** Ends the session of a secret, in the caller's transaction. */
const endOf = (secret: string | undefined): Effect.Effect<unknown, StoreUnavailable, Tx> =>
  secret !== undefined && isSecret(secret) ? Repo.endByHash(hashOf(secret)) : Effect.void

/**
 * Begins a session, in the caller's transaction, with a proof of identity just given. The one that the browser has had ends.
 *
 * @param prove uses the proof up
 */
export const begin = Effect.fnUntraced(function* <E = never>(
  person: Person,
  visitor: Visitor,
  id: SessionId,
  prove: Effect.Effect<unknown, E | StoreUnavailable, Tx>
) {
  yield* endOf(visitor.secret)
  yield* prove
  const now = yield* Clock.currentTimeMillis
  const secret = Redacted.value(newSecret())
  yield* Repo.makeRoom(person.id, now - maximumIdle, now - maximumAge)
  const session: Repo.Session = {
    id,
    ...{ createdAt: now, seenAt: now, proofAt: now, address: visitor.address },
    userAgent: cut(visitor.userAgent, longestAgent)
  }
  yield* Repo.insert(session, person.id, hashOf(secret))
  yield* NetworksRepo.seen(person.id, visitor.network, now)
  return { secret, session, person } satisfies SignedIn
})

/** The session with its person, unless it is over. */
const unlessOver = (found: Effect.Effect.Success<ReturnType<typeof Repo.byHash>>, now: number) => {
  if (found === undefined || found.person.disabledAt !== undefined) return undefined
  const { createdAt, seenAt } = found.session
  return now - seenAt >= maximumIdle || now - createdAt >= maximumAge ? undefined : found
}

/** A session with its person as they are now, without counting as used; undefined when it has ended. */
export const openSession = (db: Db, id: SessionId) =>
  Effect.zipWith(Repo.withItsPerson(db, id), Clock.currentTimeMillis, unlessOver)

/** The session of a cookie's secret, which counts as used now; undefined when it has ended. */
export const sessionOf = Effect.fn("sessions.of")(function* (secret: string | undefined) {
  if (secret === undefined || !isSecret(secret)) return undefined
  const now = yield* Clock.currentTimeMillis
  const found = unlessOver(yield* Repo.byHash(yield* Reader, hashOf(secret)), now)
  if (found === undefined) return undefined
  const { session } = found
  if (now - session.seenAt >= seenEvery) {
    const writer = yield* Writer
    // A full disk must not keep anybody from reading.
    yield* Effect.ignore(writer.write(Repo.seen(session.id, now)))
  }
  return { secret, ...found } satisfies SignedIn
})

/** The session ended after its request had arrived. Nothing was changed. */
export class SessionEnded extends Data.TaggedError("SessionEnded") {}

/**
 * The session, if it is open in the caller's transaction: data created in it must not outlast it because of waiting.
 */
export const stillOpen = Effect.fnUntraced(function* (id: SessionId) {
  return (yield* Repo.open(id)) ?? (yield* new SessionEnded())
})

/** Rotates an open session's secret, in the caller's transaction: others who have the old one are signed out. */
export const renew = Effect.fnUntraced(function* (id: SessionId) {
  const secret = Redacted.value(newSecret())
  yield* Repo.rehash(id, hashOf(secret))
  return secret
})

/** Whether the last proof of identity is fresh. */
export const isFresh = ({ session }: SignedIn) =>
  Effect.map(Clock.currentTimeMillis, (now) => now - session.proofAt < freshFor)

/** Ends the session. */
export const signOut = Effect.fn("sessions.signOut")(({ person, secret, session }: SignedIn) =>
  auditedWrite(personActor(person), { act: "portal logout", detail: { session: session.id } }, endOf(secret))
)
