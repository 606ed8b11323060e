/**
 * A fresh proof of identity, before what can do most harm. The page that asks for it posts to where the form was going, with
 * what was typed in hidden fields, and then it goes on there.
 */
import { Clock, Data, Effect } from "effect"
import { type PasswordReplaced, stillSet } from "../Auth/credentials.ts"
import { type LinkRefused, useLink } from "../Auth/loginLinks.ts"
import * as PasskeysRepo from "../Auth/PasskeysRepo.ts"
import * as PasswordsRepo from "../Auth/PasswordsRepo.ts"
import { askOptions, checkPasskey } from "../Auth/passkeys.ts"
import * as SessionsRepo from "../Auth/SessionsRepo.ts"
import type { SignedIn } from "../Auth/sessions.ts"
import type { Person } from "../Domain/Person.ts"
import { networkOf } from "../Http/clientAddress.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { pageReply } from "../Pages/reply.tsx"
import { Reader, type StoreUnavailable, type Tx, Writer } from "../Sql.ts"
import { blank, TextField } from "./components/Form.tsx"
import { Notice } from "./components/values.tsx"
import { csrfTokenOf } from "./csrf.ts"
import type { DeskShape } from "./Desk.ts"
import { Outside } from "./Outside.tsx"
import { PasskeyForm } from "./PasskeyForm.tsx"

const own = ["csrf", "proof_password", "proof_link", "proof_passkey", "proof_for"] as const

/** Whether a form only proves who sends it, to see a page afterwards. */
export const isForPage = (form: URLSearchParams): boolean => form.get("proof_for") === "GET"

/** What was typed before the proof was asked for. */
const typedIn = (form: URLSearchParams): URLSearchParams => {
  const rest = new URLSearchParams(form)
  for (const name of own) rest.delete(name)
  return rest
}

/** A proof that is none. */
class NotProven extends Data.TaggedError("NotProven")<{ readonly problem: string }> {}

/** A word of a command line for a shell. */
const quoted = (text: string): string => (/^[\w-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

const command = ({ account, name, role }: Person): string =>
  [
    "tilld login",
    ...(account === undefined ? [] : [`--account ${account} --role ${role}`]),
    `--name ${quoted(name)}`
  ].join(" ")

const ask = (
  desk: DeskShape,
  request: PageRequest,
  { person, secret, session }: SignedIn,
  form: URLSearchParams,
  problem?: string
) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const password = yield* PasswordsRepo.ofPerson(reader, person.id)
    const passkeys = yield* PasskeysRepo.list(reader, person.id)
    const options = passkeys.length > 0 && desk.party ? yield* askOptions(desk.party, session.id) : undefined
    const hidden = (
      <>
        {Array.from(typedIn(form), ([name, value], index) => (
          <input key={index} type="hidden" name={name} value={value} />
        ))}
        {request.method === "POST" && !isForPage(form) ? null : <input type="hidden" name="proof_for" value="GET" />}
      </>
    )
    const of = blank("proof")
    return pageReply(
      <Outside title="Is it still you?">
        {problem === undefined ? null : <Notice tone="bad">{problem}</Notice>}
        <p>
          You are signed in as <strong>{person.name}</strong>. This needs a proof of the last five minutes that it is
          still you; then it goes on where you were.
        </p>
        {options === undefined ? null : (
          <PasskeyForm
            does="get"
            field="proof_passkey"
            options={options}
            submit="Use a passkey"
            csrf={csrfTokenOf(secret)}
          >
            {hidden}
          </PasskeyForm>
        )}
        <form method="post" class="fields">
          <input type="hidden" name="csrf" value={csrfTokenOf(secret)} />
          {hidden}
          {password === undefined ? null : (
            <TextField of={of} name="proof_password" label="Password" type="password" autocomplete="current-password" />
          )}
          <TextField
            of={of}
            name="proof_link"
            label={password === undefined ? "Link" : "Or a link"}
            hint={
              <>
                A new one for you, as this command prints it: <code>{command(person)}</code>
              </>
            }
          />
          <p class="actions">
            <button type="submit">Go on</button>
          </p>
        </form>
      </Outside>,
      { status: problem === undefined ? 200 : 403 }
    )
  })

/** What uses a proof up, or checks it once more, in the transaction that stores it. */
type StoreProof = Effect.Effect<unknown, NotProven | LinkRefused | PasswordReplaced | StoreUnavailable, Tx>

const provenBy = (store: StoreProof) => ({ store })

/** Checks the proof that a form brings, and gives what stores it; undefined when it brings none. */
const check = (desk: DeskShape, request: PageRequest, { person, session }: SignedIn, form: URLSearchParams) =>
  Effect.gen(function* () {
    const password = form.get("proof_password") ?? ""
    const link = (form.get("proof_link") ?? "").trim()
    const passkey = form.get("proof_passkey") ?? ""
    if (passkey !== "" && desk.party !== undefined) {
      const found = yield* checkPasskey(desk.party, session.id, passkey)
      return found.person.id === person.id
        ? provenBy(found.use)
        : yield* new NotProven({ problem: "This is the passkey of somebody else." })
    }
    if (password !== "") {
      const stored = yield* PasswordsRepo.ofPerson(yield* Reader, person.id)
      const isRight = yield* desk.hasher.verify(password, networkOf(request.client), stored)
      return isRight && stored !== undefined
        ? provenBy(stillSet(stored))
        : yield* new NotProven({ problem: "This is not your password." })
    }
    if (link === "") return undefined
    return provenBy(
      Effect.filterOrFail(
        useLink(link.slice(link.lastIndexOf("/") + 1)),
        ({ id }) => id === person.id,
        () => new NotProven({ problem: "This is the link of somebody else. It was not used up." })
      )
    )
  })

/**
 * Asks for a proof, unless the form brings one: then it is stored, and the rest of the form is what the request is about.
 */
export const prove = (
  desk: DeskShape,
  request: PageRequest,
  signedIn: SignedIn,
  form: URLSearchParams
): Effect.Effect<
  { readonly asks: HttpReply } | { readonly form: URLSearchParams },
  StoreUnavailable,
  Reader | Writer
> => {
  const again = (problem: string) =>
    Effect.map(
      Effect.zipRight(desk.delayFailure(request.client), ask(desk, request, signedIn, form, problem)),
      (asks) => ({ asks })
    )
  return Effect.gen(function* () {
    const proof = yield* check(desk, request, signedIn, form)
    if (proof === undefined) return { asks: yield* ask(desk, request, signedIn, form) }
    const writer = yield* Writer
    const now = yield* Clock.currentTimeMillis
    yield* writer.write(Effect.zipRight(proof.store, SessionsRepo.proven(signedIn.session.id, now)))
    return { form: typedIn(form) }
  }).pipe(
    Effect.catchTags({
      NotProven: ({ problem }) => again(problem),
      PasswordReplaced: () => again("Your password was changed meanwhile."),
      PasskeyRefused: () => again("The passkey was not accepted, or it took longer than five minutes."),
      LinkRefused: () => again("This link does not work any more, or never did."),
      TooManyWaiting: () =>
        Effect.map(
          ask(desk, request, signedIn, form, "Other attempts from your network are still being checked. Try again."),
          (asks) => ({ asks })
        )
    })
  )
}
