import { linkMinutes } from "../../Auth/loginLinks.ts"
import type { Person, Role } from "../../Domain/Person.ts"
import { CopyText } from "../components/CopyText.tsx"
import { Act, type FormState, PostForm, Select, TextField } from "../components/Form.tsx"
import { Paging, Table } from "../components/Table.tsx"
import { Notice, Status, Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

export interface PeopleViewProps {
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

const Invited = ({ name, url }: { readonly name: string; readonly url: string }) => (
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

export const PeopleView = ({ first, form, invited, next, people, roles, untouchable, viewer }: PeopleViewProps) => (
  <>
    {invited === undefined ? null : <Invited {...invited} />}
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
        <TextField of={form} name="name" label="Name" required />
        <Select
          of={form}
          name="role"
          label="Role"
          hint={`Viewers can read this account, admins can change it${roles.includes("operator") ? ", operators manage all accounts" : ""}.`}
          options={roles.map((role) => [role, role] as const)}
        />
      </PostForm>
    </section>
  </>
)
