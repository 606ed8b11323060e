/** How a person signs in: password, passkeys, and the sessions that are open. */
import { Effect } from "effect"
import { endOthers, normalSignInName, ownAct, passwordLength, setPassword } from "../../Auth/credentials.ts"
import { endOpenSessions } from "../../Auth/descent.ts"
import * as PasskeysRepo from "../../Auth/PasskeysRepo.ts"
import { knownPerson } from "../../Auth/PasswordQueue.ts"
import * as PasswordsRepo from "../../Auth/PasswordsRepo.ts"
import * as PeopleRepo from "../../Auth/PeopleRepo.ts"
import { addPasskey, makeOptions } from "../../Auth/passkeys.ts"
import * as SessionsRepo from "../../Auth/SessionsRepo.ts"
import type { Person } from "../../Domain/Person.ts"
import type { HttpReply } from "../../Http/HttpReply.ts"
import { pageReply, seeOther } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import { Reader, type StoreUnavailable, type Writer } from "../../Sql.ts"
import { blank, type FormState, TextField } from "../components/Form.tsx"
import { Notice } from "../components/values.tsx"
import { Desk } from "../Desk.ts"
import type { Done } from "../doneTexts.ts"
import { Frame } from "../Frame.tsx"
import { PasskeyForm } from "../PasskeyForm.tsx"
import { afterDone, type PortalRequest, type PortalRoute, pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"
import { MeView } from "./MeView.tsx"

type Services = Desk | Reader | Settings | Writer

/** The person who looks at the page. Their row is never deleted. */
const self = (viewer: Viewer) =>
  Effect.gen(function* () {
    const person = yield* PeopleRepo.byId(yield* Reader, viewer.person)
    return person ?? (yield* Effect.dieMessage(`the person ${viewer.person} is gone`))
  })

const passwordForm = (signInName: string | undefined): FormState => blank("password", { name: signInName ?? "" })

const show = (viewer: Viewer, given?: FormState): Effect.Effect<HttpReply, StoreUnavailable, Reader | Desk> =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const person = yield* self(viewer)
    const password = yield* PasswordsRepo.ofPerson(reader, person.id)
    const passkeys = yield* PasskeysRepo.list(reader, person.id)
    const sessions = yield* SessionsRepo.list(reader, person.id)
    const { party } = yield* Desk
    const form = given ?? passwordForm(password?.signInName)
    return pageReply(
      <Frame viewer={viewer} section="/me" title={viewer.name}>
        <MeView
          viewer={viewer}
          person={person}
          form={form}
          hasPassword={password !== undefined}
          hasPasskeys={party !== undefined}
          passkeys={passkeys}
          sessions={sessions}
        />
      </Frame>,
      { status: form.problems.length === 0 ? 200 : 422 }
    )
  })

const isPrintable = (text: string) => /^\P{C}+$/u.test(text) && text.length <= 100

const problemsOf = (name: string, password: string) => [
  ...(isPrintable(name) ? [] : [{ path: "name", message: "must be 1 to 100 printable characters" }]),
  ...(Array.from(password).length >= passwordLength.least && password.length <= passwordLength.most
    ? []
    : [{ path: "password", message: `must have ${passwordLength.least} to ${passwordLength.most} characters` }])
]

/** Back to the page, with the session's new secret. */
const renewed = (viewer: Viewer, secret: string, done: Done) =>
  Effect.map(Desk, ({ cookie }) => seeOther(afterDone(viewer, "/me", done), { "set-cookie": cookie.set(secret) }))

const signedOut = () => Effect.succeed(seeOther("/portal/sign-in"))

const changePassword = (viewer: Viewer, { client, form }: PortalRequest) =>
  Effect.gen(function* () {
    const typed = new URLSearchParams({ name: form.get("name") ?? "" })
    const name = normalSignInName(typed.get("name") ?? "")
    const password = form.get("password") ?? ""
    const refused = (path: string, message: string) =>
      show(viewer, { id: "password", typed, problems: [{ path, message }] })
    const problems = problemsOf(name, password)
    if (problems.length > 0) return yield* show(viewer, { id: "password", typed, problems })
    const { hasher } = yield* Desk
    const person = yield* self(viewer)
    return yield* hasher.hash(password, knownPerson(person, viewer.session)).pipe(
      Effect.flatMap((hashed) =>
        setPassword(person, { signInName: name, hashed, session: viewer.session, address: client })
      ),
      Effect.flatMap((secret) => renewed(viewer, secret, "password")),
      Effect.catchTags({
        SessionEnded: signedOut,
        SignInNameTaken: () => refused("name", "is somebody else’s"),
        TooManyWaiting: ({ message }) => refused("", message)
      })
    )
  })

/** An act on what is the person's own, and back to the page. */
const own =
  (act: string, done: Done, command: (person: Person, id: string) => Parameters<typeof ownAct>[3]) =>
  (viewer: Viewer, { form }: PortalRequest) =>
    Effect.gen(function* () {
      const id = form.get("id") ?? ""
      const person = yield* self(viewer)
      yield* ownAct(person, act, id === "" ? {} : { id }, command(person, id))
      return seeOther(afterDone(viewer, "/me", done))
    })

const newPasskey = (viewer: Viewer, problem?: string) =>
  Effect.gen(function* () {
    const { party } = yield* Desk
    if (party === undefined) return seeOther(pathOf(viewer, "/me"))
    const options = yield* makeOptions(party, viewer.session, yield* self(viewer))
    const of = { ...blank("passkey"), problems: problem === undefined ? [] : [{ path: "", message: problem }] }
    return pageReply(
      <Frame viewer={viewer} section="/me" title="New passkey">
        {problem === undefined ? null : (
          <Notice tone="bad" isAnswer>
            {problem}
          </Notice>
        )}
        <p>
          Your device asks for your fingerprint, face or PIN, and keeps the passkey. It works for this address only.
        </p>
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
        <p>
          <a href={pathOf(viewer, "/me")}>Back</a>
        </p>
      </Frame>,
      { status: problem === undefined ? 200 : 422 }
    )
  })

const revokeOthers = (viewer: Viewer) =>
  Effect.flatMap(self(viewer), (person) => endOthers(person, viewer.session)).pipe(
    Effect.flatMap((secret) => renewed(viewer, secret, "others")),
    Effect.catchTag("SessionEnded", signedOut)
  )

const makePasskey = (viewer: Viewer, { client, form }: PortalRequest) =>
  Effect.gen(function* () {
    const { party } = yield* Desk
    const name = (form.get("name") ?? "").trim() || "Passkey"
    if (party === undefined || !isPrintable(name)) return yield* newPasskey(viewer, "The name is not printable.")
    const person = yield* self(viewer)
    yield* addPasskey(party, viewer.session, { person, name, text: form.get("passkey") ?? "", address: client })
    return seeOther(afterDone(viewer, "/me", "passkey"))
  }).pipe(
    Effect.catchTags({
      SessionEnded: signedOut,
      QuotaExceeded: ({ message }) => newPasskey(viewer, message),
      PasskeyRefused: () =>
        newPasskey(viewer, "The passkey was not accepted: it is known already, or it took longer than five minutes.")
    })
  )

const route = (route: Omit<PortalRoute<Services>, "role">): PortalRoute<Services> => ({ role: "viewer", ...route })

export const meRoutes: ReadonlyArray<PortalRoute<Services>> = [
  route({ method: "GET", path: "/me", handle: (viewer) => show(viewer) }),
  route({
    method: "POST",
    path: "/me/password",
    proof: { when: "always", to: "set a password" },
    handle: changePassword
  }),
  route({
    ...{ method: "POST", path: "/me/password/remove", proof: { when: "always", to: "remove your password" } },
    handle: own("portal password --remove", "removed", ({ id }) => PasswordsRepo.remove(id))
  }),
  route({
    method: "GET",
    path: "/me/passkeys/new",
    proof: { when: "always", to: "make a passkey" },
    handle: (viewer) => newPasskey(viewer)
  }),
  route({ method: "POST", path: "/me/passkeys", proof: { when: "always", to: "make a passkey" }, handle: makePasskey }),
  route({
    ...{ method: "POST", path: "/me/passkeys/remove", proof: { when: "always", to: "remove a passkey" } },
    handle: own("portal passkey --remove", "removed", (person, id) => PasskeysRepo.remove(person.id, id))
  }),
  route({
    ...{ method: "POST", path: "/me/sessions/revoke" },
    handle: own("portal session revoke", "session", (person, id) => endOpenSessions({ person: person.id, id }))
  }),
  route({
    method: "POST",
    path: "/me/sessions/revoke-others",
    proof: { when: "always", to: "end all other sessions of yours" },
    handle: revokeOthers
  })
]
