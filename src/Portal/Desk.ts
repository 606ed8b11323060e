/** What the pages of the portal share while it runs. */
import { Clock, Effect } from "effect"
import { FailedAttempts } from "../Auth/FailedAttempts.ts"
import type { Visitor } from "../Auth/sessions.ts"
import { networkOf } from "../Http/clientAddress.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { Settings } from "../Settings.ts"
import { type SessionCookie, sessionCookie } from "./cookie.ts"

export interface Desk {
  readonly publicUrl: string
  readonly cookie: SessionCookie
  /** The browser of a request. */
  readonly visitorOf: (request: PageRequest) => Visitor
  /** Waits before a failed attempt to sign in is answered: longer with each one from the same network. */
  readonly delayFailure: (request: PageRequest) => Effect.Effect<void>
}

export const makeDesk = Effect.gen(function* () {
  const { publicUrl } = (yield* Settings).server
  const failures = new FailedAttempts()
  const cookie = sessionCookie(publicUrl)
  const desk: Desk = {
    publicUrl,
    cookie,
    visitorOf: ({ client, headers }) => ({
      userAgent: headers["user-agent"] ?? "",
      address: client,
      secret: cookie.read(headers)
    }),
    delayFailure: ({ client }) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sleep(failures.failed(networkOf(client), now)))
  }
  return desk
})
