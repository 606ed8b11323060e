/** How a person signs in: password, passkeys, and the sessions that are open. */

import { Effect, Either, Schema } from "effect"
import { normalSignInName, ownAct, passwordLength, setPassword } from "../../Auth/credentials.ts"
import type { Passkey } from "../../Auth/PasskeysRepo.ts"
import * as PasskeysRepo from "../../Auth/PasskeysRepo.ts"
import * as PasswordsRepo from "../../Auth/PasswordsRepo.ts"
import * as PeopleRepo from "../../Auth/PeopleRepo.ts"
import { addPasskey, makeOptions, PasskeyRefused } from "../../Auth/passkeys.ts"
import { knownPerson } from "../../Auth/passwordHash.ts"
import { endAll, madeBy } from "../../Auth/people.ts"
import type { Session } from "../../Auth/SessionsRepo.ts"
import * as SessionsRepo from "../../Auth/SessionsRepo.ts"
import type { Keys } from "../../Auth.ts"
import type { Person } from "../../Domain/Person.ts"
import { must } from "../../lib/annotations.ts"
import { cut } from "../../lib/text.ts"
import { GivenName } from "../../Operations/inputFields.ts"
import { seeOther } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { actOn, framedReply } from "../answers.tsx"
import { Act, blank, type FormState, Onward, PostForm, TextField } from "../components/Form.tsx"
import { CopyText, Facts, LastTime, Table, Time, Unplaced } from "../components/values.tsx"
import { Desk } from "../Desk.ts"
import { PasskeyForm } from "../Frame.tsx"
import {
  afterDone,
  type Done,
  formRoute,
  type PortalHandler,
  type PortalRequest,
  type PortalRoute,
  pageRoute,
  pathOf,
  proofTo
} from "../route.ts"
import { bodyOfForm, mayAs, textOf, type Viewer } from "../Viewer.ts"
import { EndsAll, signedOut } from "./People.tsx"

const browsers: ReadonlyArray<readonly [name: string, token: RegExp]> = [
  // Each names those below it as well.
  ["Edge", /\bEdg(e|A|iOS)?\//],
  ["Opera", /\bOPR\//],
  ["Samsung Internet", /\bSamsungBrowser\//],
  ["Firefox", /\b(Firefox|FxiOS)\//],
  ["Chrome", /\b(Chrome|Chromium|CriOS|HeadlessChrome)\//],
  ["Safari", /\bSafari\//]
]

const systems: ReadonlyArray<readonly [name: string, token: RegExp]> = [
  ["iPhone", /\biPhone\b/],
  ["iPad", /\biPad\b/],
  ["Android", /\bAndroid\b/],
  ["Windows", /\bWindows\b/],
  ["ChromeOS", /\bCrOS\b/],
  ["macOS", /\bMac OS X\b|\bMacintosh\b/],
  ["Linux", /\bLinux\b/]
]

/** What a User-Agent header says, in words: `Firefox on Windows`. The start of the header where it names no browser. */
export const browserName = (userAgent: string): string => {
  const named = (names: typeof browsers) => names.find(([, token]) => token.test(userAgent))?.[0]
  const browser = named(browsers)
  const system = named(systems)
  if (browser === undefined) return cut(userAgent, 60) || "unknown"
  return system === undefined ? browser : `${browser} on ${system}`
}

interface MeProps {
  readonly viewer: Viewer
  readonly person: Person
  /** The form of the password. */
  readonly form: FormState
  readonly hasPassword: boolean
  /** Whether passkeys can be used at this address. */
  readonly hasPasskeys: boolean
  readonly passkeys: ReadonlyArray<Passkey>
  readonly sessions: ReadonlyArray<Session>
  /** What ends with all. */
  readonly made: Effect.Effect.Success<ReturnType<typeof madeBy>>
}

/** A form of one button, about one of several things or about all. */
const button = (path: string, text: string, id?: string) => (
  <Act to={path} fields={id === undefined ? {} : { id }}>
    {text}
  </Act>
)

const Password = ({ form, hasPassword, person }: MeProps) => (
  <section class="card" aria-labelledby="password-title">
    <h2 id="password-title">Password</h2>
    <p>
      {hasPassword
        ? "You can sign in with a name and a password. A new password signs you out everywhere else."
        : "None yet: with one you sign in without a link."}
    </p>
    <PostForm
      of={form}
      to="/me/password"
      submit={hasPassword ? "Change the password" : "Set a password"}
      labels={{ name: "Sign-in name", password: "Password" }}
    >
      <TextField
        name="name"
        hint={person.account === undefined ? undefined : `Your own within the account ${person.account}.`}
        autocomplete="username"
        required
      />
      <TextField name="password" type="password" autocomplete="new-password" hint="At least 10 characters" required />
    </PostForm>
    {hasPassword ? button("/me/password/remove", "Remove the password") : null}
  </section>
)

const Passkeys = ({ hasPasskeys, passkeys, viewer }: MeProps) => (
  <section class="card" aria-labelledby="passkeys-title">
    <h2 id="passkeys-title">Passkeys</h2>
    <Table
      caption="Your passkeys"
      empty="None yet: a passkey signs you in with your fingerprint, face or PIN."
      rows={passkeys}
      keyOf={({ id }) => id}
      columns={[
        { name: "Name", cell: ({ name }) => name },
        { name: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
        { name: "Last used", cell: ({ lastUsedAt }) => <LastTime at={lastUsedAt} /> },
        { name: "Remove", cell: ({ id, name }) => button("/me/passkeys/remove", `Remove ${name}`, id) }
      ]}
    />
    {hasPasskeys ? (
      <Onward to="/me/passkeys/new">Create a passkey</Onward>
    ) : (
      <p class="hint">
        Passkeys need https: {mayAs(viewer.role, "operator") ? "set" : "ask the operator to set"}{" "}
        <code>server.public_url</code>. On your own machine it can be http://localhost.
      </p>
    )}
  </section>
)

const Sessions = ({ made, sessions, viewer }: MeProps) => (
  <section class="card" aria-labelledby="sessions-title">
    <h2 id="sessions-title">Sessions</h2>
    <Table
      caption="Browsers that are signed in as you"
      empty="None."
      rows={sessions}
      keyOf={({ id }) => id}
      columns={[
        { name: "Browser", cell: ({ userAgent }) => <span title={userAgent}>{browserName(userAgent)}</span> },
        { name: "Address", cell: ({ address }) => <code>{address}</code> },
        { name: "Signed in", cell: ({ createdAt }) => <Time at={createdAt} /> },
        { name: "Last seen", cell: ({ seenAt }) => <Time at={seenAt} /> },
        {
          name: "End",
          cell: ({ id }) => (id === viewer.session ? "this session" : button("/me/sessions/revoke", "End", id))
        }
      ]}
    />
    <h3>End all</h3>
    <EndsAll of={made} viewer={viewer} whose="Your other" />
    {button("/me/sessions/revoke-others", "End all but this session")}
  </section>
)

type Services = Desk | Keys | Reader | Settings | Writer

/** The person who looks at the page. Their row is never deleted. */
const self = Effect.fnUntraced(function* (viewer: Viewer) {
  const person = yield* PeopleRepo.byId(yield* Reader, viewer.person)
  return person ?? (yield* Effect.dieMessage(`the person ${viewer.person} is gone`))
})

const show = Effect.fnUntraced(function* (viewer: Viewer, given?: FormState) {
  const reader = yield* Reader
  const person = yield* self(viewer)
  const password = yield* PasswordsRepo.ofPerson(reader, person.id)
  const form = given ?? blank("password", { name: password?.signInName ?? "" })
  const props: MeProps = {
    ...{ viewer, person, form, hasPassword: password !== undefined },
    passkeys: yield* PasskeysRepo.list(reader, person.id),
    sessions: yield* SessionsRepo.list(reader, person.id),
    made: yield* madeBy(reader, person),
    hasPasskeys: (yield* Desk).party !== undefined
  }
  return framedReply(
    viewer,
    { section: "/me", title: viewer.name },
    <>
      <section class="card" aria-label="You">
        <Facts of={{ Role: person.role, Account: person.account, Id: <CopyText text={person.id} /> }} />
      </section>
      <Password {...props} />
      <Passkeys {...props} />
      <Sessions {...props} />
    </>,
    form.problems.length === 0 ? 200 : 422
  )
})

const { least, most } = passwordLength
const Credentials = Schema.Struct({
  name: GivenName,
  password: must(
    `have ${least} to ${most} characters`,
    Schema.String.pipe(
      Schema.maxLength(most),
      Schema.filter((text) => Array.from(text).length >= least)
    )
  )
})

/** Back to the page, with the session's new secret. */
const renewed = (viewer: Viewer, secret: string, done: Done) =>
  Effect.map(Desk, ({ cookie }) => seeOther(afterDone(viewer, "/me", done), { "set-cookie": cookie.set(secret) }))

const changePassword = Effect.fnUntraced(function* (viewer: Viewer, { client, form }: PortalRequest) {
  const { hasher } = yield* Desk
  const person = yield* self(viewer)
  const typed = new URLSearchParams({ name: textOf(form, "name") })
  return yield* actOn(
    viewer,
    bodyOfForm(Credentials, { name: normalSignInName(textOf(form, "name")), password: form.get("password") ?? "" }, 0),
    ({ name, password }) =>
      Effect.flatMap(hasher.hash(password, knownPerson(person, viewer.session)), (hashed) =>
        setPassword(person, { signInName: name, hashed, session: viewer.session, address: client })
      ),
    {
      done: (secret) => renewed(viewer, secret, "password"),
      refused: (problems) => show(viewer, { id: "password", typed, problems }),
      on: { SessionEnded: signedOut, SignInNameTaken: () => ({ path: "name", message: "is somebody else’s" }) }
    }
  )
})

/** An act on what is the person's own, and back to the page. */
const own =
  (
    act: string,
    done: Done,
    command: (person: Person, id: string) => Parameters<typeof ownAct>[3]
  ): PortalHandler<Reader | Writer> =>
  (viewer, { form }) =>
    Effect.flatMap(self(viewer), (person) => {
      const back = () => seeOther(afterDone(viewer, "/me", done))
      return actOn(
        viewer,
        Either.right(form.get("id") ?? ""),
        (id) => ownAct(person, act, id === "" ? {} : { id }, command(person, id)),
        { done: back, refused: back }
      )
    })

const newPasskey = Effect.fnUntraced(function* (viewer: Viewer, problems: FormState["problems"] = []) {
  const { party } = yield* Desk
  if (party === undefined) return seeOther(pathOf(viewer, "/me"))
  const options = yield* makeOptions(party, viewer.session, yield* self(viewer))
  const of = { ...blank("passkey"), problems }
  return framedReply(
    viewer,
    { section: "/me", title: "New passkey" },
    <>
      <Unplaced of={problems} />
      <p>Your device asks for your fingerprint, face or PIN, and keeps the passkey. It works for this address only.</p>
      <noscript>
        <p>Passkeys need JavaScript.</p>
      </noscript>
      <PasskeyForm
        action={pathOf(viewer, "/me/passkeys")}
        csrf={viewer.csrf}
        does="create"
        options={options}
        submit="Make a passkey"
      >
        <TextField of={of} name="name" label="Name" hint="Where it is, such as the name of your phone" required />
      </PasskeyForm>
      <Onward to="/me">Back</Onward>
    </>,
    problems.length === 0 ? 200 : 422
  )
})

const revokeOthers = (viewer: Viewer) =>
  Effect.flatMap(self(viewer), (person) =>
    actOn(viewer, Either.right(person), (_, { actor }) => endAll(actor, person, viewer.session), {
      done: (secret = "") => renewed(viewer, secret, "others"),
      refused: signedOut
    })
  )

const wrongPasskey = "The passkey was not accepted: it is known already, or it took longer than five minutes."

const makePasskey = Effect.fnUntraced(function* (viewer: Viewer, { client, form }: PortalRequest) {
  const { party } = yield* Desk
  const person = yield* self(viewer)
  const given = { name: textOf(form, "name") || "Passkey", passkey: form.get("passkey") ?? "" }
  const input = bodyOfForm(Schema.Struct({ name: GivenName, passkey: Schema.String }), given, 0)
  const add = ({ name, passkey: text }: typeof given) =>
    party === undefined
      ? new PasskeyRefused()
      : addPasskey(party, viewer.session, { person, name, text, address: client })
  return yield* actOn(viewer, input, add, {
    done: () => seeOther(afterDone(viewer, "/me", "passkey")),
    refused: (problems) => newPasskey(viewer, problems),
    on: { SessionEnded: signedOut, PasskeyRefused: () => ({ path: "", message: wrongPasskey }) }
  })
})

const always = (to: string) => proofTo(to, "always")

export const meRoutes: ReadonlyArray<PortalRoute<Services>> = [
  pageRoute("/me", "viewer", (viewer) => show(viewer)),
  formRoute("/me/password", "viewer", changePassword, always("set a password")),
  formRoute(
    "/me/password/remove",
    "viewer",
    own("portal password --remove", "removed", ({ id }) => PasswordsRepo.remove(id)),
    always("remove your password")
  ),
  pageRoute("/me/passkeys/new", "viewer", (viewer) => newPasskey(viewer), always("make a passkey")),
  formRoute("/me/passkeys", "viewer", makePasskey, always("make a passkey")),
  formRoute(
    "/me/passkeys/remove",
    "viewer",
    own("portal passkey --remove", "removed", (person, id) => PasskeysRepo.remove(person.id, id)),
    always("remove a passkey")
  ),
  formRoute(
    "/me/sessions/revoke",
    "viewer",
    own("portal session revoke", "session", (person, id) => SessionsRepo.endOne(person.id, id))
  ),
  formRoute("/me/sessions/revoke-others", "viewer", revokeOthers, always("end all but this session"))
]
