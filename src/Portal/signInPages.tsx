/**
 * Signing in by password or passkey, and signing out. Whether a name is wrong or a password, the answer is the same, and
 * takes as long: the password is hashed either way.
 */

import { Data, Effect, Option, Schema } from "effect"
import * as AccountsRepo from "../Auth/AccountsRepo.ts"
import { normalSignInName, type PasswordReplaced, realmOf, stillSet } from "../Auth/credentials.ts"
import { type LinkRefused, noteRefusal, personOfLink, useLink } from "../Auth/loginLinks.ts"
import * as PasswordsRepo from "../Auth/PasswordsRepo.ts"
import { askOptions, checkPasskey, type PasskeyRefused, type RelyingParty } from "../Auth/passkeys.ts"
import { begin, type SignedIn, signOut } from "../Auth/sessions.ts"
import { defaultAccount } from "../Auth.ts"
import { AccountId, newSessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { auditedWrite, personActor } from "../Operations/auditLog.ts"
import { errorPage, pageReply, seeOther } from "../Pages/reply.tsx"
import { Reader, type StoreUnavailable, type Tx, type Writer } from "../Sql.ts"
import { type FormState, TextField } from "./components/Form.tsx"
import { Notice } from "./components/values.tsx"
import type { DeskShape, TooManySignIns } from "./Desk.ts"
import { Outside, PasskeyForm } from "./Frame.tsx"

const origin = "http://portal.invalid"

/** Where a shop plugin sends the shop's admin: leads to the page of an account. */
export const pairingRoute = "/portal/pair"

/** Where to go on after signing in: a page of an account, and never another site. Undefined for anything else. */
export const nextPath = (given: string | null): string | undefined => {
  if (given === null || given.length > 4_000 || !given.startsWith("/") || !URL.canParse(given, origin)) return undefined
  // Parsed as the browser would: "/\evil.example", "//evil.example" and "/portal/a/../.." are not what they begin with.
  const url = new URL(given, origin)
  const isPage = url.pathname.startsWith("/portal/a/") || url.pathname === pairingRoute
  return url.origin === origin && isPage ? url.pathname + url.search : undefined
}

const purpose = "sign in"

export const signInRoute = "/portal/sign-in"

/** Where people go who are not signed in and see that something is not possible. */
export const toSignIn = { href: signInRoute, text: "Sign in" } as const

/** Where somebody who is not signed in is sent, to come back after it. */
export const signInPath = ({ path, search }: Pick<PageRequest, "path" | "search">): string =>
  `${signInRoute}?${new URLSearchParams({ next: search === "" ? path : `${path}?${search}` })}`

interface Problem {
  readonly status: number
  readonly text: string
}

const wrong: Problem = {
  status: 403,
  text: "That did not sign you in. Check the name and the password, or ask for a link."
}

const wrongPasskey: Problem = {
  status: 403,
  text: "This passkey did not sign you in: it is not known here, or it took longer than five minutes."
}

/** What a form of the page was sent with: where to go on, and who signs in. */
const typedIn = (form: URLSearchParams) => {
  const next = nextPath(form.get("next"))
  const account = form.get("account") ?? /^\/portal\/a\/([^/?]+)/.exec(next ?? "")?.[1] ?? ""
  return { next, account: account === defaultAccount ? "" : account, name: form.get("name") ?? "" }
}

/** @param form what was typed, and `next`: where to go on, if it is a page of the portal */
export const signInPage = Effect.fnUntraced(function* (desk: DeskShape, form: URLSearchParams, problem?: Problem) {
  const { account, name, next } = typedIn(form)
  const of: FormState = { id: "sign-in", typed: new URLSearchParams({ account, name }), problems: [] }
  const asksAccount = yield* AccountsRepo.areSeveral(yield* Reader)
  const onward = next === undefined ? null : <input type="hidden" name="next" value={next} />
  const options = desk.party && (yield* askOptions(desk.party, purpose))
  return pageReply(
    <Outside title="Sign in">
      {problem === undefined ? null : <Notice tone="bad">{problem.text}</Notice>}
      <form method="post" action="/portal/sign-in" class="fields">
        {onward}
        {asksAccount ? (
          <TextField of={of} name="account" label="Account" hint="Its id, unless you are of the operator’s own." />
        ) : null}
        <TextField of={of} name="name" label="Sign-in name" autocomplete="username" required />
        <TextField of={of} name="password" label="Password" type="password" autocomplete="current-password" required />
        <p class="actions">
          <button type="submit">Sign in</button>
        </p>
      </form>
      {options === undefined ? null : (
        <PasskeyForm action="/portal/sign-in" does="get" options={options} submit="Sign in with a passkey">
          {onward}
        </PasskeyForm>
      )}
      <p class="hint">
        The first time, and whenever you have lost these: whoever runs this tilld gives you a link that signs you in
        once. <code>tilld login</code> prints it.
      </p>
    </Outside>,
    { status: problem?.status ?? 200 }
  )
})

/** Begins a session for a person who has proven who they are; `also` is committed with it. */
const enter = <E = never>(
  desk: DeskShape,
  request: PageRequest,
  {
    also,
    by,
    next,
    person
  }: {
    readonly person: Person
    readonly by: "password" | "passkey" | "link"
    readonly next?: string | undefined
    readonly also: Effect.Effect<unknown, E | StoreUnavailable, Tx>
  }
) =>
  Effect.gen(function* () {
    const id = newSessionId()
    const act = { act: "portal login", detail: { session: id, by, address: request.client } }
    const entering = auditedWrite(personActor(person), act, begin(person, desk.visitorOf(request), id, also))
    // Each link signs in once, and making them is limited.
    const { secret } = yield* by === "link" ? entering : desk.admit(person, entering)
    return seeOther(next ?? "/portal", { "set-cookie": desk.cookie.set(secret) })
  })

/** Neither the name nor the password is said to be wrong. */
class NotSignedIn extends Data.TaggedError("NotSignedIn") {}

const byPassword = Effect.fnUntraced(function* (desk: DeskShape, request: PageRequest, form: URLSearchParams) {
  const { account, name, next } = typedIn(form)
  const realm = realmOf(Option.getOrUndefined(Schema.decodeOption(AccountId)(account.trim())))
  const found = yield* PasswordsRepo.bySignInName(yield* Reader, realm, normalSignInName(name))
  const claimant = yield* desk.claimantOf(request, found?.person)
  const check = Effect.gen(function* () {
    const isRight = yield* desk.hasher.verify(form.get("password") ?? "", claimant, found)
    if (isRight && found !== undefined && found.person.disabledAt === undefined) {
      const entering = { person: found.person, by: "password", next, also: stillSet(found) } as const
      return yield* enter<PasswordReplaced>(desk, request, entering)
    }
    if (found !== undefined) {
      yield* desk.noteRefused(found.person, request, { act: "portal login refused", by: "password" })
    }
    return yield* new NotSignedIn()
  })
  return yield* desk.guess(claimant, check)
})

const byPasskey = (desk: DeskShape, request: PageRequest, form: URLSearchParams, party: RelyingParty) => {
  const check = Effect.gen(function* () {
    const { person, use } = yield* checkPasskey(party, purpose, form.get("passkey") ?? "")
    return yield* enter<PasskeyRefused>(desk, request, { person, by: "passkey", next: typedIn(form).next, also: use })
  })
  return desk.unguessable(request, check)
}

/** POST: begins a session, or shows the page again. */
export const signIn = (desk: DeskShape, request: PageRequest, form: URLSearchParams) => {
  const again = (problem: Problem) => signInPage(desk, form, problem)
  const { party } = desk
  const isPasskey = (form.get("passkey") ?? "") !== "" && party !== undefined
  const later = ({ message }: { readonly message: string }) => again({ status: 429, text: message })
  if (isPasskey) {
    return Effect.catchTags(byPasskey(desk, request, form, party), {
      PasskeyRefused: () => again(wrongPasskey),
      TooManySignIns: later
    })
  }
  return Effect.catchTags(byPassword(desk, request, form), {
    NotSignedIn: () => again(wrong),
    PasswordReplaced: () => again(wrong),
    TooManySignIns: later,
    TooManyWaiting: later
  })
}

/** Ends the session. What the browser still shows of it is not to be shown again. */
export const leave = Effect.fnUntraced(function* (desk: DeskShape, signedIn: SignedIn | undefined) {
  if (signedIn !== undefined) yield* signOut(signedIn)
  return seeOther("/portal/sign-in", { "set-cookie": desk.cookie.clear, "clear-site-data": '"cache"' })
})

/** One-time links: a page with a button, since programs that look at links (mail filters, chats) would use up a GET. */

const roleText = ({ account, role }: Person) => (account === undefined ? "an operator" : `${role} of ${account}`)

const refusals: Readonly<Record<LinkRefused["reason"], string>> = {
  unknown: "This is no link of this tilld.",
  used: "This link was used already. If that was not you, tell the operator: it shows in the audit log.",
  expired: "This link has expired: it works for ten minutes.",
  disabled: "This person may not sign in any more."
}

const refused = Effect.fnUntraced(function* (request: PageRequest, token: string, { reason }: LinkRefused) {
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
    Effect.map(personOfLink(token), (person) =>
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
      const person = yield* personOfLink(token)
      return yield* enter<LinkRefused>(desk, request, { person, by: "link", also: useLink(token) })
    })
  )
