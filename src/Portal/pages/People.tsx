/** People of an account, for its admins; of all accounts, for operators. */

import { Effect } from "effect"
import { linkMinutes, linkPath } from "../../Auth/loginLinks.ts"
import * as PeopleRepo from "../../Auth/PeopleRepo.ts"
import { changeRole, disable, enable, endSessions, type Invited, invite, inviteAgain } from "../../Auth/people.ts"
import * as SessionsRepo from "../../Auth/SessionsRepo.ts"
import type { TooMany } from "../../Domain/Account.ts"
import type { Person, Role } from "../../Domain/Person.ts"
import type { HttpReply } from "../../Http/HttpReply.ts"
import { type Actor, personName } from "../../Operations/auditLog.ts"
import { seeOther } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import { Reader, type StoreUnavailable, type Writer } from "../../Sql.ts"
import { CopyText } from "../components/CopyText.tsx"
import { Act, blank, Confirm, type FormState, PostForm, Select, TextField } from "../components/Form.tsx"
import { Paging, Table } from "../components/Table.tsx"
import { Notice, Status, Time } from "../components/values.tsx"
import { Desk } from "../Desk.ts"
import { framedReply } from "../framedReply.tsx"
import { pageSize } from "../query.ts"
import { afterDone, type Done, formRoute, type PortalRequest, type PortalRoute, pathOf, proofTo } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"

interface PeopleViewProps {
  readonly viewer: Viewer
  readonly people: ReadonlyArray<Person>
  /** Ids of people whom the viewer may not act on: themself, and who let them in. */
  readonly untouchable: ReadonlySet<string>
  /** The roles that the viewer may give. */
  readonly roles: ReadonlyArray<Role>
  readonly form: FormState
  /** A link that was just made, with its person's name. */
  readonly invited: { readonly name: string; readonly url: string } | undefined
  readonly first: string | undefined
  readonly next: string | undefined
}

const Acts = ({
  person,
  untouchable,
  viewer
}: Pick<PeopleViewProps, "untouchable" | "viewer"> & { readonly person: Person }) => {
  const act = (path: "enable" | "link" | "revoke" | "role", text: string, fields = {}) => (
    <Act action={pathOf(viewer, `/people/${person.id}/${path}`)} csrf={viewer.csrf} fields={fields}>
      {text} <span class="visually-hidden">{person.name}</span>
    </Act>
  )
  if (person.id === viewer.person) return <>(you)</>
  if (untouchable.has(person.id)) return <>let you in</>
  if (person.disabledAt !== undefined) return act("enable", "Enable")
  return (
    <div class="acts">
      {person.role === "admin" ? act("role", "Make a viewer", { role: "viewer" }) : null}
      {person.role === "viewer" ? act("role", "Make an admin", { role: "admin" }) : null}
      {act("link", "New link")}
      {act("revoke", "End sessions")}
      <a href={pathOf(viewer, `/people/${person.id}/disable`)}>
        Disable <span class="visually-hidden">{person.name}</span>
      </a>
    </div>
  )
}

const InvitedNotice = ({ name, url }: { readonly name: string; readonly url: string }) => (
  <Notice tone="good" isAnswer>
    <p>
      Hand this link to {name}. It is shown only now, works once, and for {linkMinutes} minutes, unless you sign out
      before:
    </p>
    <p>
      <CopyText text={url} />
    </p>
  </Notice>
)

const PeopleView = ({ first, form, invited, next, people, roles, untouchable, viewer }: PeopleViewProps) => (
  <>
    {invited === undefined ? null : <InvitedNotice {...invited} />}
    <Table
      caption={viewer.role === "operator" ? "People of all accounts" : `People of ${viewer.owner.account}`}
      empty="Nobody."
      rows={people}
      keyOf={({ id }) => id}
      columns={[
        { name: "Name", cell: ({ name }) => name },
        { name: "Role", cell: ({ account, role }) => (account === undefined ? role : `${role} of ${account}`) },
        { name: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
        { name: "Status", cell: ({ disabledAt }) => <Status of={disabledAt === undefined ? "active" : "disabled"} /> },
        { name: "Change", cell: (person) => <Acts viewer={viewer} person={person} untouchable={untouchable} /> }
      ]}
    />
    <Paging first={first} next={next} />
    <section class="card" aria-labelledby="invite-title">
      <h2 id="invite-title">Invite somebody</h2>
      <PostForm
        of={form}
        action={pathOf(viewer, "/people")}
        csrf={viewer.csrf}
        submit="Create a link"
        labels={{ name: "Name", role: "Role" }}
      >
        <TextField name="name" required />
        <Select
          name="role"
          hint={`Viewers can read this account, admins can change it${roles.includes("operator") ? ", operators manage all accounts" : ""}.`}
          options={roles.map((role) => [role, role] as const)}
        />
      </PostForm>
    </section>
  </>
)

type Services = Desk | Settings | Reader | Writer

const isOperator = ({ role }: Viewer) => mayAs(role, "operator")

/** The roles that a viewer may give. */
const rolesOf = (viewer: Viewer): ReadonlyArray<Role> =>
  isOperator(viewer) ? ["viewer", "admin", "operator"] : ["viewer", "admin"]

/** Acts on people belong to the account that they are of, not to a mode of it. */
const actorFor = ({ name, person }: Viewer, account: Person["account"]): Actor => ({
  via: "portal",
  who: personName({ id: person as Person["id"], name }),
  account
})

const shown = (
  viewer: Viewer,
  {
    after,
    given,
    invited,
    status
  }: {
    readonly after?: string | undefined
    readonly given?: FormState
    readonly invited?: { readonly name: string; readonly url: string }
    readonly status?: number
  }
): Effect.Effect<HttpReply, StoreUnavailable, Reader> =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const page = { limit: pageSize + 1, ...(after === undefined ? {} : { after }) }
    const people = yield* PeopleRepo.list(reader, page, isOperator(viewer) ? undefined : viewer.owner.account)
    const rows = people.slice(0, pageSize)
    const untouchable = yield* SessionsRepo.lineOf(reader, viewer.session)
    return framedReply(
      viewer,
      { section: "/people", title: "People" },
      <PeopleView
        {...{ viewer, untouchable, invited }}
        people={rows}
        roles={rolesOf(viewer)}
        form={given ?? blank("invite", { role: "viewer" })}
        first={after === undefined ? undefined : pathOf(viewer, "/people")}
        next={people.length > pageSize ? `${pathOf(viewer, "/people")}?after=${rows.at(-1)?.id}` : undefined}
      />,
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

const signedOut = () => Effect.succeed(seeOther("/portal/sign-in"))

const inviting = (viewer: Viewer, { client, form }: PortalRequest) =>
  Effect.gen(function* () {
    const name = (form.get("name") ?? "").trim()
    const role = rolesOf(viewer).find((each) => each === form.get("role"))
    const refused = (problems: FormState["problems"]) =>
      shown(viewer, { given: { id: "invite", typed: form, problems }, status: 422 })
    const problems = [
      ...(/^\P{C}+$/u.test(name) && name.length <= 100
        ? []
        : [{ path: "name", message: "must be 1 to 100 printable characters" }]),
      ...(role === undefined ? [{ path: "role", message: `must be one of ${rolesOf(viewer).join(", ")}` }] : [])
    ]
    if (role === undefined || problems.length > 0) return yield* refused(problems)
    const account = role === "operator" ? undefined : viewer.owner.account
    return yield* invite(actorFor(viewer, account), { name, role, account }, whereOf(viewer, client)).pipe(
      Effect.flatMap((invited) => handedOver(viewer, invited)),
      Effect.catchTags({
        SessionEnded: signedOut,
        PersonExists: ({ isDisabled }) => refused([{ path: "name", message: taken(isDisabled) }]),
        TooMany: ({ message }) => refused([{ path: "", message }]),
        QuotaExceeded: ({ message }) => refused([{ path: "", message }])
      })
    )
  })

/**
 * The person of a request, if the viewer may act on them: only operators on operators, no one on themself, nor on the person
 * who let them in. Otherwise a thief of a session could make another person, and by them a link for its owner.
 */
const personFor = (viewer: Viewer, { params }: PortalRequest) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const person = yield* PeopleRepo.byId(reader, params.id ?? "")
    if (person === undefined || (yield* SessionsRepo.lineOf(reader, viewer.session)).has(person.id)) return undefined
    return isOperator(viewer) || person.account === viewer.owner.account ? person : undefined
  })

const missing = (viewer: Viewer) =>
  framedReply(
    viewer,
    { section: "/people", title: "Not found" },
    <p>
      There is no such person, or you may not change them, as nobody may themself or whoever let them in:{" "}
      <a href={pathOf(viewer, "/people")}>see whom you may</a>.
    </p>,
    404
  )

/** A form about one person, and back to the list. */
const about =
  (
    done: Done,
    act: (
      actor: Actor,
      person: Person,
      request: PortalRequest
    ) => Effect.Effect<void, StoreUnavailable | TooMany, Writer>
  ) =>
  (viewer: Viewer, request: PortalRequest) =>
    Effect.gen(function* () {
      const person = yield* personFor(viewer, request)
      if (person === undefined) return missing(viewer)
      return yield* act(actorFor(viewer, person.account), person, request).pipe(
        Effect.as(seeOther(afterDone(viewer, "/people", done))),
        Effect.catchTag("TooMany", ({ message }) =>
          shown(viewer, { given: { ...blank("invite"), problems: [{ path: "", message }] }, status: 422 })
        )
      )
    })

const relink = (viewer: Viewer, request: PortalRequest) =>
  Effect.gen(function* () {
    const person = yield* personFor(viewer, request)
    if (person === undefined || person.disabledAt !== undefined) return missing(viewer)
    return yield* inviteAgain(actorFor(viewer, person.account), person, whereOf(viewer, request.client)).pipe(
      Effect.flatMap((invited) => handedOver(viewer, invited)),
      Effect.catchTag("SessionEnded", signedOut)
    )
  })

/** Between the two roles of an account: an operator belongs to none. */
const rerole = (actor: Actor, person: Person, { client, form }: PortalRequest) => {
  const role = form.get("role")
  const isOther = person.role !== "operator" && role !== person.role
  return isOther && (role === "admin" || role === "viewer") ? changeRole(actor, person, role, client) : Effect.void
}

const confirmDisabling = (viewer: Viewer, request: PortalRequest) =>
  Effect.map(personFor(viewer, request), (person) =>
    person === undefined || person.disabledAt !== undefined
      ? missing(viewer)
      : framedReply(
          viewer,
          { section: "/people", title: `Disable ${person.name}?` },
          <>
            <p>
              Their sessions end at once, and their password and passkeys are removed for good. Once enabled again, they
              need a new link.
            </p>
            <Confirm
              id="disable"
              action={pathOf(viewer, `/people/${person.id}/disable`)}
              csrf={viewer.csrf}
              submit="Disable them"
              back={pathOf(viewer, "/people")}
            />
          </>
        )
  )

const acting = (path: string, to: string, handle: PortalRoute<Services>["handle"]) =>
  formRoute(path, "admin", handle, proofTo(to, "always"))

export const peopleRoutes: ReadonlyArray<PortalRoute<Services>> = [
  {
    ...{ method: "GET", path: "/people", role: "admin" },
    handle: (viewer, { query }) => shown(viewer, { after: query.get("after") ?? undefined })
  },
  acting("/people", "invite somebody", inviting),
  acting("/people/:id/link", "make a link for somebody", relink),
  acting("/people/:id/role", "change somebody’s role", about("role", rerole)),
  { method: "GET", path: "/people/:id/disable", role: "admin", handle: confirmDisabling },
  acting("/people/:id/disable", "disable somebody", about("disabled", disable)),
  acting(
    "/people/:id/enable",
    "enable somebody again",
    about("enabled", (actor, person, { client }) => enable(actor, person, client))
  ),
  acting("/people/:id/revoke", "end somebody’s sessions", about("sessions", endSessions))
]
