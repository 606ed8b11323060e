/** One-time links: a page with a button, since programs that look at links (mail filters, chats) would use up a GET. */
import { Effect } from "effect"
import { type LinkRefused, noteRefusal, personOfLink, useLink } from "../Auth/loginLinks.ts"
import { begin } from "../Auth/sessions.ts"
import { newSessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { audited, personActor } from "../Operations/auditLog.ts"
import { errorPage } from "../Pages/ErrorPage.tsx"
import { pageReply, seeOther } from "../Pages/reply.tsx"
import { type Reader, type StoreUnavailable, Writer } from "../Sql.ts"
import type { DeskShape, TooManySignIns } from "./Desk.ts"
import { Outside } from "./Outside.tsx"
import { toSignIn } from "./signInPages.tsx"

const roleText = ({ account, role }: Person) => (account === undefined ? "an operator" : `${role} of ${account}`)

const refusals: Readonly<Record<LinkRefused["reason"], string>> = {
  unknown: "This is no link of this tilld.",
  used: "This link was used already. If that was not you, tell the operator: it shows in the audit log.",
  expired:
    "This link has expired: it works for ten minutes, until whoever made it signs out, and not in the browser in which it was made.",
  disabled: "This person may not sign in any more."
}

const refused = (request: PageRequest, token: string, { reason }: LinkRefused) =>
  Effect.gen(function* () {
    yield* noteRefusal(token, request.client)
    return errorPage(
      "portal",
      {
        status: reason === "unknown" ? 404 : 410,
        title: "This link signs nobody in",
        text: `${refusals[reason]} Ask for another one: tilld login prints it. Whoever has a password or a passkey signs in without.`,
        onward: toSignIn
      },
      request.requestId
    )
  })

/** Looks at a link or uses it. */
const attempt = (
  desk: DeskShape,
  request: PageRequest,
  token: string,
  use: Effect.Effect<HttpReply, LinkRefused | TooManySignIns | StoreUnavailable, Reader | Writer>
) =>
  Effect.catchTags(desk.unguessable(request, use), {
    LinkRefused: (error) => refused(request, token, error),
    TooManySignIns: ({ message }) =>
      Effect.succeed(errorPage("portal", { status: 429, title: "Not yet", text: message }, request.requestId))
  })

/** GET: says whom the link signs in. */
export const loginPage = (desk: DeskShape, request: PageRequest, token: string) =>
  attempt(
    desk,
    request,
    token,
    Effect.map(personOfLink(token), ({ person }) =>
      pageReply(
        <Outside title="Sign in">
          <p>
            This link signs you in as <strong>{person.name}</strong>, {roleText(person)}.
          </p>
          <form method="post" class="fields">
            <p class="actions">
              <button type="submit">Sign in</button>
            </p>
          </form>
        </Outside>
      )
    )
  )

/** POST: uses the link up, and begins a session. */
export const login = (desk: DeskShape, request: PageRequest, token: string) =>
  attempt(
    desk,
    request,
    token,
    Effect.gen(function* () {
      const { isOfCommand, person } = yield* personOfLink(token)
      const writer = yield* Writer
      const id = newSessionId()
      const act = { act: "portal login", detail: { session: id, by: "link", address: request.client } }
      const using = Effect.map(useLink(token), ({ cameOf }) => cameOf)
      const entering = audited(personActor(person), act, () =>
        writer.write(begin(person, desk.visitorOf(request), id, using))
      )
      // An operator may let anyone in.
      const { secret } = yield* isOfCommand ? entering : desk.admit(person, entering)
      return seeOther("/portal", { "set-cookie": desk.cookie.set(secret) })
    })
  )
