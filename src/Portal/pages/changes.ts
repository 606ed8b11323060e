/**
 * The stream by which an open page learns that something of its account and mode has changed, as server-sent events without
 * contents: the page is then read again, which checks the session.
 */
import { Effect, Option, Stream } from "effect"
import { waitAtMost } from "../../Domain/waitAtMost.ts"
import { Outbox } from "../../Events/Outbox.ts"
import type { HttpReply } from "../../Http/HttpReply.ts"
import { OpenStreams, streamHeaders } from "../../Pages/OpenStreams.ts"
import type { PortalHandler, PortalRoute } from "../route.ts"

/** A comment, so that proxies and browsers can tell a quiet stream from a dead one. */
const keepAlive = ":\n\n"

/** A stream ends after so many messages, at the latest in ten minutes of silence; the next one needs a session again. */
const mostMessages = 40

const open = new OpenStreams()

/** A browser opens no other one after a 204. */
const none: HttpReply = { status: 204, headers: {}, text: "" }

const changes: PortalHandler<Outbox> = Effect.fnUntraced(function* ({ owner, session }) {
  const outbox = yield* Outbox
  if (!open.mayOpen(session, owner.account)) return none
  const follow = Effect.gen(function* () {
    const changed = yield* outbox.listen(owner)
    const next = waitAtMost(changed, "15 seconds").pipe(
      Effect.map((woken) => (Option.isSome(woken) ? "data: changed\n\n" : keepAlive))
    )
    return Stream.concat(Stream.make(keepAlive), Stream.take(Stream.repeatEffect(next), mostMessages))
  })
  const rest = open.counted(session, owner.account, Stream.unwrapScoped(follow))
  const reply: HttpReply = { status: 200, headers: streamHeaders, text: "", rest }
  return reply
})

export const changeRoutes: ReadonlyArray<PortalRoute<Outbox>> = [
  { method: "GET", path: "/changes", role: "viewer", handle: changes }
]
