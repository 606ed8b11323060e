/**
 * What came of a session (its descendants): links made in it, sessions begun by those, links made there, and so on. It
 * ends with the session, so that a thief gets no access that outlasts it. A password or a passkey that was set in a
 * session that came of another one came of that one too, for a week: then it counts as its person's own.
 */
import { Clock, Effect } from "effect"
import type { PersonId, SessionId } from "../Domain/Ids.ts"
import * as LinksRepo from "./LoginLinksRepo.ts"
import * as PasskeysRepo from "./PasskeysRepo.ts"
import * as PasswordsRepo from "./PasswordsRepo.ts"
import * as SessionsRepo from "./SessionsRepo.ts"

/** How long a password or a passkey counts as come of a session, in milliseconds. */
export const week = 7 * 24 * 60 * 60_000

/** The session that a password or a passkey came of, while that still counts. */
export const origin = ({ cameOf, createdAt }: { readonly cameOf: SessionId | undefined; readonly createdAt: number }) =>
  Effect.map(Clock.currentTimeMillis, (now) => (createdAt >= now - week ? cameOf : undefined))

const end = Effect.fnUntraced(function* (ids: string, kept: SessionId | undefined) {
  const now = yield* Clock.currentTimeMillis
  yield* LinksRepo.expireOf(ids, now)
  yield* SessionsRepo.end(ids, kept, now - week)
})

/**
 * Ends open sessions with the sessions and links that came of them, in the caller's transaction. Whether there were
 * any. Passwords and passkeys stay: an admin who signs out does not lock out the people whom they invited that day.
 */
export const endOpenSessions = Effect.fnUntraced(function* (start: SessionsRepo.OpenStart) {
  const ids = yield* SessionsRepo.withDescendants(start)
  yield* end(JSON.stringify(ids), undefined)
  return ids.length > 0
})

/**
 * Ends all sessions of a person but `kept`, with the sessions and links that came of any of them, in the caller's
 * transaction; `credentials`: with the passwords and passkeys too.
 */
export const endSessionsOf = Effect.fnUntraced(function* (
  person: PersonId,
  { credentials, kept }: { readonly kept?: SessionId; readonly credentials: boolean }
) {
  const ids = JSON.stringify(yield* SessionsRepo.withDescendants({ person }))
  if (credentials) {
    const since = (yield* Clock.currentTimeMillis) - week
    yield* PasswordsRepo.removeOf(ids, since)
    yield* PasskeysRepo.removeOf(ids, since)
  }
  yield* end(ids, kept)
})
