/**
 * Signing in by password or passkey, and signing out. Whether a name is wrong or a password, the answer is the same, and
 * takes as long: the password is hashed either way.
 */
import { Effect } from "effect"
import { audited, personActor } from "../Auth/auditLog.ts"
import { normalSignInName, type PasswordReplaced, stillSet } from "../Auth/credentials.ts"
import * as PasswordsRepo from "../Auth/PasswordsRepo.ts"
import { askOptions, checkPasskey } from "../Auth/passkeys.ts"
import { begin, type SignedIn, signOut } from "../Auth/sessions.ts"
import { newSessionId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { networkOf } from "../Http/clientAddress.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { pageReply, seeOther } from "../Pages/reply.tsx"
import { Reader, type StoreUnavailable, type Tx, Writer } from "../Sql.ts"
import { type FormState, TextField } from "./components/Form.tsx"
import { Notice } from "./components/values.tsx"
import type { DeskShape } from "./Desk.ts"
import { nextPath } from "./nextPath.ts"
import { Outside } from "./Outside.tsx"
import { PasskeyForm } from "./PasskeyForm.tsx"

const purpose = "sign in"

/** Where somebody who is not signed in is sent, to come back after it. */
export const signInPath = ({ path, search }: Pick<PageRequest, "path" | "search">): string =>
  `/portal/sign-in?${new URLSearchParams({ next: search === "" ? path : `${path}?${search}` })}`

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

const busy: Problem = {
  status: 429,
  text: "Other attempts from your network are still being checked. Try again in a few seconds."
}

/** @param next where to go on, if it is a page of the portal */
export const signInPage = (desk: DeskShape, next: string | undefined, name = "", problem?: Problem) =>
  Effect.gen(function* () {
    const of: FormState = { id: "sign-in", typed: new URLSearchParams({ name }), problems: [] }
    const onward = next === undefined ? null : <input type="hidden" name="next" value={next} />
    const options = desk.party && (yield* askOptions(desk.party, purpose))
    return pageReply(
      <Outside title="Sign in">
        {problem === undefined ? null : <Notice tone="bad">{problem.text}</Notice>}
        <form method="post" action="/portal/sign-in" class="fields">
          {onward}
          <TextField of={of} name="name" label="Sign-in name" autocomplete="username" required />
          <TextField
            of={of}
            name="password"
            label="Password"
            type="password"
            autocomplete="current-password"
            required
          />
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
    readonly by: "password" | "passkey"
    readonly next: string | undefined
    readonly also: Effect.Effect<void, E | StoreUnavailable, Tx>
  }
) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const session = newSessionId()
    const act = { act: "portal login", detail: { session, by, address: request.client } }
    const { secret } = yield* audited(personActor(person), act, () =>
      writer.write(Effect.zipRight(also, begin(person, desk.visitorOf(request), session)))
    )
    return seeOther(next ?? "/portal", { "set-cookie": desk.cookie.set(secret) })
  })

const byPassword = (desk: DeskShape, { client }: PageRequest, form: URLSearchParams) =>
  Effect.gen(function* () {
    const name = normalSignInName(form.get("name") ?? "")
    const stored = yield* PasswordsRepo.bySignInName(yield* Reader, name)
    const isRight = yield* desk.hasher.verify(form.get("password") ?? "", networkOf(client), stored)
    return isRight && stored !== undefined && stored.person.disabledAt === undefined ? stored : undefined
  })

const refused = (desk: DeskShape, request: PageRequest, form: URLSearchParams) =>
  Effect.zipRight(
    desk.delayFailure(request.client),
    signInPage(desk, nextPath(form.get("next")), form.get("name") ?? "", wrong)
  )

/** POST: begins a session, or shows the page again. */
export const signIn = (desk: DeskShape, request: PageRequest, form: URLSearchParams) =>
  Effect.gen(function* () {
    const next = nextPath(form.get("next"))
    const passkey = form.get("passkey") ?? ""
    if (passkey !== "" && desk.party !== undefined) {
      const { person, use } = yield* checkPasskey(desk.party, purpose, passkey)
      return yield* enter(desk, request, { person, by: "passkey", next, also: use })
    }
    const found = yield* byPassword(desk, request, form)
    if (found === undefined) return yield* refused(desk, request, form)
    const entering = { person: found.person, by: "password", next, also: stillSet(found) } as const
    return yield* enter<PasswordReplaced>(desk, request, entering)
  }).pipe(
    Effect.catchTags({
      PasswordReplaced: () => refused(desk, request, form),
      PasskeyRefused: () =>
        Effect.zipRight(
          desk.delayFailure(request.client),
          signInPage(desk, nextPath(form.get("next")), "", wrongPasskey)
        ),
      TooManyWaiting: () => signInPage(desk, nextPath(form.get("next")), form.get("name") ?? "", busy)
    })
  )

/** Ends the session. What the browser still shows of it is not to be shown again. */
export const leave = (desk: DeskShape, signedIn: SignedIn | undefined) =>
  Effect.gen(function* () {
    if (signedIn !== undefined) yield* signOut(signedIn)
    return seeOther("/portal/sign-in", { "set-cookie": desk.cookie.clear, "clear-site-data": '"cache"' })
  })
