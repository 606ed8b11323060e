/**
 * A fresh proof of identity, before what can do most harm. The page that asks for it posts to where the form was going, with
 * what was typed in hidden fields, and then it goes on there.
 */

import { Clock, Data, Effect } from "effect"
import { type PasswordReplaced, stillSet } from "../Auth/credentials.ts"
import { type LinkRefused, noteRefusal, useLink } from "../Auth/loginLinks.ts"
import * as PasskeysRepo from "../Auth/PasskeysRepo.ts"
import * as PasswordsRepo from "../Auth/PasswordsRepo.ts"
import { askOptions, checkPasskey, type PasskeyRefused } from "../Auth/passkeys.ts"
import { type Claimant, knownPerson } from "../Auth/passwordHash.ts"
import * as SessionsRepo from "../Auth/SessionsRepo.ts"
import type { SignedIn } from "../Auth/sessions.ts"
import type { Owner } from "../Domain/Account.ts"
import type { Person } from "../Domain/Person.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import type { PageRequest } from "../Http/PageHandler.ts"
import { auditedWrite, personActor } from "../Operations/auditLog.ts"
import { pageReply } from "../Pages/reply.tsx"
import { Reader, type StoreUnavailable, type Tx, type Writer } from "../Sql.ts"
import { blank, TextField } from "./components/Form.tsx"
import { Notice } from "./components/values.tsx"
import { csrfTokenOf, type DeskShape } from "./Desk.ts"
import { Outside, PasskeyForm } from "./Frame.tsx"

const own = ["csrf", "proof_password", "proof_link", "proof_passkey", "proof_for"] as const

/** Whether a form only proves who sends it, to see a page afterwards. */
export const isForPage = (form: URLSearchParams): boolean => form.get("proof_for") === "GET"

/** What was typed before the proof was asked for. */
const typedIn = (form: URLSearchParams): URLSearchParams => {
  const rest = new URLSearchParams(form)
  for (const name of own) rest.delete(name)
  return rest
}

/** Characters that the page keeps: escaped, one takes up to six bytes. */
const mostTyped = 16_384

/** Whether what was typed is more than the page keeps. */
export const isTooLong = (form: URLSearchParams): boolean =>
  Array.from(typedIn(form), ([name, value]) => name.length + value.length).reduce((sum, length) => sum + length, 0) >
  mostTyped

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

/** What a proof is asked for: what is about to be done, and where. */
interface ProofFor {
  readonly to: string
  readonly owner: Owner
}

/** The page that asks for a proof. */
export const asking = (
  desk: DeskShape,
  request: PageRequest,
  { person, secret, session }: SignedIn,
  { owner, to }: ProofFor,
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
          You are signed in as <strong>{person.name}</strong>, account {owner.account}, {owner.mode} mode, and about to{" "}
          <strong>{to}</strong>. This needs a proof of the last half hour that it is still you; then it goes on where
          you were. If it was not you who began this, close the page: nothing is done.
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
                {password === undefined && options === undefined
                  ? "You have set neither a password nor a passkey, so it takes a new link for you: put its address here. "
                  : "A new one for you. "}
                {person.account === undefined
                  ? "On the server this command prints it: "
                  : "Another admin of your account makes it on the page People, or whoever runs this tilld by "}
                <code>{command(person)}</code>
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

interface GivenProof {
  readonly by: "passkey" | "password" | "link"
  readonly text: string
}

/** The proof that a form brings. */
const proofIn = (desk: DeskShape, form: URLSearchParams): GivenProof | undefined => {
  const passkey = desk.party === undefined ? "" : (form.get("proof_passkey") ?? "")
  if (passkey !== "") return { by: "passkey", text: passkey }
  const password = form.get("proof_password") ?? ""
  if (password !== "") return { by: "password", text: password }
  const link = (form.get("proof_link") ?? "").trim()
  return link === "" ? undefined : { by: "link", text: link.slice(link.lastIndexOf("/") + 1) }
}

/** Whether a form brings a proof. */
export const bringsProof = (desk: DeskShape, form: URLSearchParams): boolean => proofIn(desk, form) !== undefined

/** What uses a proof up, or checks it once more, in the transaction that stores it. */
type StoreProof = Effect.Effect<
  unknown,
  NotProven | LinkRefused | PasskeyRefused | PasswordReplaced | StoreUnavailable,
  Tx
>

/** Checks a proof by `claimant`, and gives what stores it. */
const check = (
  { hasher, party }: DeskShape,
  { person, session }: SignedIn,
  claimant: Claimant,
  { by, text }: GivenProof
) =>
  Effect.gen(function* () {
    const ofPerson =
      (problem: string) =>
      ({ id }: Person) =>
        id === person.id ? Effect.void : new NotProven({ problem })
    if (by === "passkey" && party !== undefined) {
      const found = yield* checkPasskey(party, session.id, text)
      yield* ofPerson("This is the passkey of somebody else.")(found.person)
      const store: StoreProof = found.use
      return store
    }
    if (by === "password") {
      const stored = yield* PasswordsRepo.ofPerson(yield* Reader, person.id)
      const isRight = yield* hasher.verify(text, claimant, stored)
      if (isRight && stored !== undefined) {
        const store: StoreProof = stillSet(stored)
        return store
      }
      return yield* new NotProven({ problem: "This is not your password." })
    }
    const isOwn = ofPerson("This is the link of somebody else. It was not used up.")
    const store: StoreProof = Effect.flatMap(useLink(text), isOwn)
    return store
  })

/**
 * Asks for a proof, unless the form brings one: then it is stored, and the rest of the form is what the request is about.
 */
export const prove = (
  desk: DeskShape,
  request: PageRequest,
  signedIn: SignedIn,
  needed: ProofFor,
  form: URLSearchParams
): Effect.Effect<
  { readonly asks: HttpReply } | { readonly form: URLSearchParams },
  StoreUnavailable,
  Reader | Writer
> => {
  const ask = (problem?: string) =>
    Effect.map(asking(desk, request, signedIn, needed, form, problem), (asks) => ({ asks }))
  const proof = proofIn(desk, form)
  if (proof === undefined) return ask()
  const { by } = proof
  const { person, session } = signedIn
  const again = (problem: string) =>
    Effect.zipRight(desk.noteRefused(person, request, { act: "portal proof refused", by }), ask(problem))
  const claimant = knownPerson(person, session.id)
  const given = Effect.gen(function* () {
    const store: StoreProof = yield* check(desk, signedIn, claimant, proof)
    const proven = SessionsRepo.proven(session.id, yield* Clock.currentTimeMillis)
    const act = { act: "portal proof", detail: { session: session.id, by } }
    yield* auditedWrite(personActor(person), act, Effect.zipRight(store, proven))
    return { form: typedIn(form) }
  })
  return (by === "password" ? desk.guess(claimant, given) : desk.unguessable(request, given)).pipe(
    Effect.catchTags({
      NotProven: ({ problem }) => again(problem),
      PasswordReplaced: () => again("Your password was changed meanwhile."),
      PasskeyRefused: () => again("The passkey was not accepted, or it took longer than five minutes."),
      LinkRefused: () =>
        Effect.zipRight(
          noteRefusal(proof.text, request.client),
          again("This link does not work any more, or never did.")
        ),
      TooManyWaiting: ({ message }) => ask(message)
    })
  )
}
