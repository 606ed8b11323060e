/** What the pages of the portal share while it runs. */
import { Clock, Context, Effect } from "effect"
import { Challenges } from "../Auth/Challenges.ts"
import { FailedAttempts } from "../Auth/FailedAttempts.ts"
import { type RelyingParty, relyingPartyId } from "../Auth/passkeys.ts"
import { makePasswordHasher, type PasswordHasher } from "../Auth/passwordHash.ts"
import type { Visitor } from "../Auth/sessions.ts"
import { networkOf } from "../Http/clientAddress.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { Settings } from "../Settings.ts"
import { type SessionCookie, sessionCookie } from "./cookie.ts"

export interface DeskShape {
  readonly publicUrl: string
  readonly cookie: SessionCookie
  readonly hasher: PasswordHasher
  /** Undefined where passkeys cannot be used: see `relyingPartyId`. */
  readonly party: RelyingParty | undefined
  /** The browser of a request. */
  readonly visitorOf: (request: Pick<PageRequest, "client" | "headers">) => Visitor
  /** Waits before a failed attempt to sign in is answered: longer with each one from the same network. */
  readonly delayFailure: (client: string) => Effect.Effect<void>
}

/** For the handlers of routes; `Portal.ts` provides it. */
export class Desk extends Context.Tag("tilld/Portal/Desk")<Desk, DeskShape>() {}

export const makeDesk = Effect.gen(function* () {
  const { publicUrl } = (yield* Settings).server
  const failures = new FailedAttempts()
  const cookie = sessionCookie(publicUrl)
  const id = relyingPartyId(publicUrl)
  const desk: DeskShape = {
    publicUrl,
    cookie,
    hasher: yield* makePasswordHasher,
    party: id === undefined ? undefined : { id, origin: new URL(publicUrl).origin, challenges: new Challenges() },
    visitorOf: ({ client, headers }) => ({
      userAgent: headers["user-agent"] ?? "",
      address: client,
      secret: cookie.read(headers)
    }),
    delayFailure: (client) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sleep(failures.failed(networkOf(client), now)))
  }
  return desk
})
