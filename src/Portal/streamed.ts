/**
 * The streamed bodies of the portal, files and events: only as long as their reader may see them. An export keeps rows in
 * memory until they are taken, so that few are made at a time.
 */
import { Effect, Stream } from "effect"
import { openSession, type SignedIn } from "../Auth/sessions.ts"
import type { HttpReply, Pieces } from "../Http/HttpReply.ts"
import type { ErrorText } from "../Pages/ErrorPage.tsx"
import { OpenStreams } from "../Pages/OpenStreams.ts"
import type { Db } from "../Sql.ts"
import { mayAs, type Role } from "./Viewer.ts"

export const tooManyExports: ErrorText = {
  status: 429,
  title: "Other exports are running",
  text: "You, or the people of your account, are exporting already: wait until a file is complete, and export again."
}

/** Of a person, and of an account: see `OpenStreams`. */
const limits = { ofAll: 20, ofSubject: 2, ofClient: 6 }

/** A reply whose body ends with the session, and with the role that its page needs; undefined beyond a limit. */
export const makeStreamed = (db: Db) => {
  const exports = new OpenStreams(limits)

  /** An event stream is complete where it breaks off; a file is cut off. */
  const whileAllowed = (rest: Pieces, { session }: SignedIn, role: Role): Pieces =>
    Stream.mapEffect(rest, (piece) =>
      Effect.flatMap(Effect.orDie(openSession(db, session.id)), (found) =>
        found !== undefined && mayAs(found.person.role, role) ? Effect.succeed(piece) : Effect.interrupt
      )
    )

  return (reply: HttpReply, signedIn: SignedIn, account: string, role: Role): HttpReply | undefined => {
    if (reply.rest === undefined) return reply
    const allowed = whileAllowed(reply.rest, signedIn, role)
    if (reply.headers["content-type"] === "text/event-stream") return { ...reply, rest: allowed }
    const { id } = signedIn.person
    // The body begins later, and many may begin at once.
    return exports.mayOpen(id, account)
      ? { ...reply, rest: exports.counted(id, account, allowed, Stream.fromEffect(Effect.interrupt)) }
      : undefined
  }
}
