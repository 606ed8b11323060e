/** People of an account, for its admins; of all accounts, for operators. */
import { Effect } from "effect"
import { type Actor, personName } from "../../Auth/auditLog.ts"
import { linkPath } from "../../Auth/loginLinks.ts"
import * as PeopleRepo from "../../Auth/PeopleRepo.ts"
import { changeRole, disable, enable, endSessions, type Invited, invite, inviteAgain } from "../../Auth/people.ts"
import type { TooMany } from "../../Domain/AccountErrors.ts"
import type { Person, Role } from "../../Domain/Person.ts"
import type { HttpReply } from "../../Http/HttpReply.ts"
import { pageReply, seeOther } from "../../Pages/reply.tsx"
import { Reader, type StoreUnavailable, type Writer } from "../../Sql.ts"
import { blank, type FormState } from "../components/Form.tsx"
import { Desk } from "../Desk.ts"
import { Frame } from "../Frame.tsx"
import { type PortalRequest, type PortalRoute, pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { PeopleView } from "./PeopleView.tsx"

type Services = Desk | Reader | Writer

const pageSize = 50

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
    return pageReply(
      <Frame viewer={viewer} section="/people" title="People">
        <PeopleView
          viewer={viewer}
          people={rows}
          roles={rolesOf(viewer)}
          form={given ?? blank("invite", { role: "viewer" })}
          invited={invited}
          first={after === undefined ? undefined : pathOf(viewer, "/people")}
          next={people.length > pageSize ? `${pathOf(viewer, "/people")}?after=${rows.at(-1)?.id}` : undefined}
        />
      </Frame>,
      { status: status ?? 200 }
    )
  })

/** The link, which is shown only now. */
const handedOver = (viewer: Viewer, { person, token }: Invited) =>
  Effect.flatMap(Desk, ({ publicUrl }) =>
    shown(viewer, { invited: { name: person.name, url: publicUrl + linkPath(token) } })
  )

const inviting = (viewer: Viewer, { form }: PortalRequest) =>
  Effect.gen(function* () {
    const name = (form.get("name") ?? "").trim()
    const role = rolesOf(viewer).find((each) => each === form.get("role"))
    const problems = [
      ...(/^\P{C}+$/u.test(name) && name.length <= 100
        ? []
        : [{ path: "name", message: "must be 1 to 100 printable characters" }]),
      ...(role === undefined ? [{ path: "role", message: `must be one of ${rolesOf(viewer).join(", ")}` }] : [])
    ]
    if (role === undefined || problems.length > 0) {
      return yield* shown(viewer, { given: { id: "invite", typed: form, problems }, status: 422 })
    }
    const account = role === "operator" ? undefined : viewer.owner.account
    // The account of the page is there: the person may see it.
    return yield* invite(actorFor(viewer, account), { name, role, account }).pipe(
      Effect.flatMap((invited) => handedOver(viewer, invited)),
      Effect.catchTags({
        UnknownAccount: Effect.die,
        TooMany: ({ message }) =>
          shown(viewer, { given: { id: "invite", typed: form, problems: [{ path: "", message }] }, status: 422 })
      })
    )
  })

/** The person of a request, if the viewer may act on them: nobody acts on themselves, and only operators on operators. */
const personFor = (viewer: Viewer, { params }: PortalRequest) =>
  Effect.gen(function* () {
    const person = yield* PeopleRepo.byId(yield* Reader, params.id ?? "")
    if (person === undefined || person.id === viewer.person) return undefined
    return isOperator(viewer) || person.account === viewer.owner.account ? person : undefined
  })

const missing = (viewer: Viewer) =>
  pageReply(
    <Frame viewer={viewer} section="/people" title="Not found">
      <p>
        There is no such person, or you may not change them: <a href={pathOf(viewer, "/people")}>see whom you may</a>.
      </p>
    </Frame>,
    { status: 404 }
  )

/** A form about one person, and back to the list. */
const about =
  (
    act: (
      actor: Actor,
      person: Person,
      form: URLSearchParams
    ) => Effect.Effect<void, StoreUnavailable | TooMany, Writer>
  ) =>
  (viewer: Viewer, request: PortalRequest) =>
    Effect.gen(function* () {
      const person = yield* personFor(viewer, request)
      if (person === undefined) return missing(viewer)
      return yield* act(actorFor(viewer, person.account), person, request.form).pipe(
        Effect.as(seeOther(pathOf(viewer, "/people"))),
        Effect.catchTag("TooMany", ({ message }) =>
          shown(viewer, { given: { ...blank("invite"), problems: [{ path: "", message }] }, status: 422 })
        )
      )
    })

const relink = (viewer: Viewer, request: PortalRequest) =>
  Effect.gen(function* () {
    const person = yield* personFor(viewer, request)
    if (person === undefined || person.disabledAt !== undefined) return missing(viewer)
    return yield* handedOver(viewer, yield* inviteAgain(actorFor(viewer, person.account), person))
  })

/** Between the two roles of an account: an operator belongs to none. */
const rerole = (actor: Actor, person: Person, form: URLSearchParams) => {
  const role = form.get("role")
  const isOther = person.role !== "operator" && role !== person.role
  return isOther && (role === "admin" || role === "viewer") ? changeRole(actor, person, role) : Effect.void
}

const acting = (path: string, handle: PortalRoute<Services>["handle"]): PortalRoute<Services> => ({
  ...{ method: "POST", path, role: "admin", fresh: true, handle }
})

export const peopleRoutes: ReadonlyArray<PortalRoute<Services>> = [
  {
    ...{ method: "GET", path: "/people", role: "admin" },
    handle: (viewer, { query }) => shown(viewer, { after: query.get("after") ?? undefined })
  },
  acting("/people", inviting),
  acting("/people/:id/link", relink),
  acting("/people/:id/role", about(rerole)),
  acting("/people/:id/disable", about(disable)),
  acting("/people/:id/enable", about(enable)),
  acting("/people/:id/revoke", about(endSessions))
]
