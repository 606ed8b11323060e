/** People of an account, for its admins; of all accounts, for operators. */

import { Effect, Either, Schema } from "effect"
import { linkMinutes, linkPath } from "../../Auth/loginLinks.ts"
import * as PeopleRepo from "../../Auth/PeopleRepo.ts"
import {
  changeRole,
  disable,
  enable,
  endAll,
  endsAllOf,
  type Invited,
  invite,
  inviteAgain,
  madeBy
} from "../../Auth/people.ts"
import type { Keys } from "../../Auth.ts"
import type { Person, Role } from "../../Domain/Person.ts"
import { must } from "../../lib/annotations.ts"
import { type Actor, onPeople } from "../../Operations/auditLog.ts"
import { GivenName } from "../../Operations/inputFields.ts"
import type { Caller } from "../../Operations/operation.ts"
import { seeOther } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { actOn, confirmation, framedReply, missing, pageById } from "../answers.tsx"
import { Act, blank, type FormState, PostForm, Select, TextField } from "../components/Form.tsx"
import { CopyText, Notice, Status, Table, Time } from "../components/values.tsx"
import { Desk } from "../Desk.ts"
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
import { bodyOfForm, givenOf, mayAs, type Viewer } from "../Viewer.ts"

interface EndsAllProps {
  readonly of: Effect.Effect.Success<ReturnType<typeof madeBy>>
  readonly viewer: Viewer
  readonly whose: "Their" | "Your other"
}

/** What "End all" ends, by name: see `endAll`. */
export const EndsAll = ({ of: { keys, people }, viewer, whose }: EndsAllProps) => (
  <>
    <p>If somebody else may have used the session, end all that they may have made of it:</p>
    <ul>
      <li>{whose} sessions, every sign-in link, the password and all passkeys</li>
      <li>
        {people.length === 0
          ? `Nobody was let in within the last ${endsAllOf} days`
          : `The same of whom was let in within the last ${endsAllOf} days: ${people.map(({ name }) => name).join(", ")}`}
      </li>
      <li>
        {keys.length === 0
          ? "No API key was made in that time"
          : "API keys made in that time, whose requests are then refused: "}
        {keys.map(({ id, account, mode, name }, place) => (
          <>
            {place === 0 ? "" : ", "}
            <a key={id} href={pathOf({ owner: { account, mode } }, `/keys/${id}`)}>
              {name}
            </a>
          </>
        ))}
      </li>
    </ul>
    <p class="hint">
      What is older, and webhook endpoints, are yours to look through: <a href={pathOf(viewer, "/keys")}>API keys</a>,{" "}
      <a href={pathOf(viewer, "/webhooks")}>Webhooks</a>. The <a href={pathOf(viewer, "/audit")}>audit log</a> has who
      did what.
    </p>
  </>
)

const Acts = ({ person, viewer }: { readonly viewer: Viewer; readonly person: Person }) => {
  const act = (path: "enable" | "link" | "role", text: string, fields = {}) => (
    <Act to={`/people/${person.id}/${path}`} fields={fields}>
      {text} <span class="visually-hidden">{person.name}</span>
    </Act>
  )
  if (person.id === viewer.person) return <>(you)</>
  if (person.disabledAt !== undefined) return act("enable", "Enable")
  return (
    <div class="acts">
      {person.role === "admin" ? act("role", "Make a viewer", { role: "viewer" }) : null}
      {person.role === "viewer" ? act("role", "Make an admin", { role: "admin" }) : null}
      {act("link", "New link")}
      {Object.entries({ revoke: "End all", disable: "Disable" }).map(([path, text]) => (
        <a key={path} href={pathOf(viewer, `/people/${person.id}/${path}`)}>
          {text} <span class="visually-hidden">{person.name}</span>
        </a>
      ))}
    </div>
  )
}

type Services = Desk | Keys | Settings | Reader | Writer

const isOperator = ({ role }: Viewer) => mayAs(role, "operator")

/** The roles that a viewer may give. */
const rolesOf = (viewer: Viewer): ReadonlyArray<Role> =>
  isOperator(viewer) ? ["viewer", "admin", "operator"] : ["viewer", "admin"]

/** Acts on people belong to the account that they are of, not to a mode of it. */
const actorFor = ({ actor: { who } }: Caller, account: Person["account"]) => onPeople(who, account)

interface Shown {
  readonly query?: URLSearchParams
  readonly given?: FormState
  /** A link that was just made, with its person's name. */
  readonly invited?: { readonly name: string; readonly url: string }
  readonly status?: number
}

const shown = Effect.fnUntraced(function* (viewer: Viewer, { given, invited, query, status }: Shown) {
  const reader = yield* Reader
  const account = isOperator(viewer) ? undefined : viewer.owner.account
  const page = yield* pageById(viewer, "/people", query ?? new URLSearchParams(), (part) =>
    PeopleRepo.list(reader, part, account)
  )
  const roles = rolesOf(viewer)
  return framedReply(
    viewer,
    { section: "/people", title: "People" },
    <>
      {invited === undefined ? null : (
        <Notice tone="good" isAnswer>
          <p>
            Hand this link to {invited.name}. It is shown only now, works once, and for {linkMinutes} minutes:
          </p>
          <p>
            <CopyText text={invited.url} />
          </p>
        </Notice>
      )}
      <Table
        caption={account === undefined ? "People of all accounts" : `People of ${account}`}
        empty="Nobody."
        rows={page.rows}
        keyOf={({ id }) => id}
        columns={[
          { name: "Name", cell: ({ name }) => name },
          { name: "Role", cell: ({ account, role }) => (account === undefined ? role : `${role} of ${account}`) },
          { name: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            name: "Status",
            cell: ({ disabledAt }) => <Status of={disabledAt === undefined ? "active" : "disabled"} />
          },
          { name: "Change", cell: (person) => <Acts viewer={viewer} person={person} /> }
        ]}
      />
      {page.paging}
      <section class="card" aria-labelledby="invite-title">
        <h2 id="invite-title">Invite somebody</h2>
        <PostForm
          of={given ?? blank("invite", { role: "viewer" })}
          to="/people"
          submit="Create a link"
          labels={{ name: "Name", role: "Role" }}
        >
          <TextField name="name" required />
          <Select
            name="role"
            hint={`Viewers can read this account, admins can change it${isOperator(viewer) ? ", operators manage all accounts" : ""}.`}
            options={roles.map((role) => [role, role] as const)}
          />
        </PostForm>
      </section>
    </>,
    status
  )
})

const whereOf = ({ session }: Viewer, address: string) => ({ session, address })

const taken = (isDisabled: boolean): string =>
  isDisabled
    ? "is the name of somebody who is disabled: press Enable beside it"
    : "is the name of somebody who is here: press New link beside it. For you another admin does, or tilld login on the server makes one"

/** The link, which is shown only now. */
const handedOver = (viewer: Viewer, { person, token }: Invited) =>
  Effect.flatMap(Desk, ({ publicUrl }) =>
    shown(viewer, { invited: { name: person.name, url: publicUrl + linkPath(token) } })
  )

export const signedOut = () => seeOther("/portal/sign-in")

const refused = (viewer: Viewer, typed?: URLSearchParams) => (problems: FormState["problems"]) =>
  shown(viewer, { given: { ...blank("invite"), ...(typed && { typed }), problems }, status: 422 })

const invitationOf = (viewer: Viewer) => {
  const roles = rolesOf(viewer)
  return Schema.Struct({ name: GivenName, role: must(`be one of ${roles.join(", ")}`, Schema.Literal(...roles)) })
}

const inviting = (viewer: Viewer, { client, form }: PortalRequest) =>
  actOn(
    viewer,
    bodyOfForm(invitationOf(viewer), { name: "", role: "", ...givenOf(form) }, 0),
    ({ name, role }, caller) => {
      const account = role === "operator" ? undefined : viewer.owner.account
      return invite(actorFor(caller, account), { name, role, account }, whereOf(viewer, client))
    },
    {
      done: (invited) => handedOver(viewer, invited),
      refused: refused(viewer, form),
      on: {
        SessionEnded: signedOut,
        PersonExists: ({ isDisabled }) => ({ path: "name", message: taken(isDisabled) })
      }
    }
  )

/** Only operators act on operators, and no one on themself. */
const mayActOn = (viewer: Viewer, { account, id }: Person): boolean =>
  id !== viewer.person && (isOperator(viewer) || account === viewer.owner.account)

type Handle<R> = (viewer: Viewer, person: Person, request: PortalRequest) => ReturnType<PortalHandler<R>>

/** Handles what is about one person whom the viewer may act on. */
const about =
  <R,>(handle: Handle<R>, isFor: (person: Person) => boolean = () => true): PortalHandler<R | Reader> =>
  (viewer, request) =>
    Effect.gen(function* () {
      const person = yield* PeopleRepo.byId(yield* Reader, request.params.id ?? "")
      if (person === undefined || !mayActOn(viewer, person) || !isFor(person))
        return missing(viewer, "/people", "person whom you may change")
      return yield* handle(viewer, person, request)
    })

const isEnabled = ({ disabledAt }: Person) => disabledAt === undefined

/** A form about one person, and back to the list. */
const changing = <E extends { readonly _tag: string; readonly message: string }, R>(
  done: Done,
  run: (actor: Actor, person: Person, request: PortalRequest) => Effect.Effect<unknown, E, R>
) =>
  about<R | Reader>((viewer, person, request) =>
    actOn(viewer, Either.right(person), (_, caller) => run(actorFor(caller, person.account), person, request), {
      done: () => seeOther(afterDone(viewer, "/people", done)),
      refused: refused(viewer)
    })
  )

const relink = about<Desk | Reader | Writer>(
  (viewer, person, { client }) =>
    actOn(
      viewer,
      Either.right(person),
      (_, caller) => inviteAgain(actorFor(caller, person.account), person, whereOf(viewer, client)),
      {
        done: (invited) => handedOver(viewer, invited),
        refused: refused(viewer),
        on: { SessionEnded: signedOut }
      }
    ),
  isEnabled
)

/** Between the two roles of an account: an operator belongs to none. */
const rerole = (actor: Actor, person: Person, { client, form }: PortalRequest) => {
  const role = form.get("role")
  const isOther = person.role !== "operator" && role !== person.role
  return isOther && (role === "admin" || role === "viewer") ? changeRole(actor, person, role, client) : Effect.void
}

/** Asks before what ends a person's access. */
const confirming = (act: "disable" | "revoke") =>
  about(
    Effect.fnUntraced(function* (viewer, person) {
      const [title, submit] = act === "revoke" ? ["End all of", "End all"] : ["Disable", "Disable them"]
      const frame = { section: "/people", title: `${title} ${person.name}?` } as const
      return confirmation(
        viewer,
        { ...frame, to: `/people/${person.id}/${act}`, submit, back: "/people" },
        act === "revoke" ? (
          <EndsAll viewer={viewer} of={yield* madeBy(yield* Reader, person)} whose="Their" />
        ) : (
          <p>
            Their sessions end at once, and their password and passkeys are removed. Once enabled again, they need a new
            link. Was a session of theirs stolen?{" "}
            <a href={pathOf(viewer, `/people/${person.id}/revoke`)}>End all of it first</a>
          </p>
        )
      )
    }),
    isEnabled
  )

const acting = (path: string, to: string, handle: PortalRoute<Services>["handle"]) =>
  formRoute(path, "admin", handle, proofTo(to, "always"))

export const peopleRoutes: ReadonlyArray<PortalRoute<Services>> = [
  pageRoute("/people", "admin", (viewer, { query }) => shown(viewer, { query })),
  acting("/people", "invite somebody", inviting),
  acting("/people/:id/link", "make a link for somebody", relink),
  acting("/people/:id/role", "change somebody’s role", changing("role", rerole)),
  pageRoute("/people/:id/disable", "admin", confirming("disable")),
  pageRoute("/people/:id/revoke", "admin", confirming("revoke")),
  acting("/people/:id/disable", "disable somebody", changing("disabled", disable)),
  acting(
    "/people/:id/enable",
    "enable somebody again",
    changing("enabled", (actor, person, { client }) => enable(actor, person, client))
  ),
  acting(
    "/people/:id/revoke",
    "end all of somebody’s access",
    changing("sessions", (actor, person) => endAll(actor, person))
  )
]
