import { linkMinutes } from "../../Auth/loginLinks.ts"
import type { Person, Role } from "../../Domain/Person.ts"
import { type FormState, PostForm, Select, TextField } from "../components/Form.tsx"
import { Paging, Table } from "../components/Table.tsx"
import { Notice, Status, Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

export interface PeopleViewProps {
  readonly viewer: Viewer
  readonly people: ReadonlyArray<Person>
  /** The roles that the viewer may give. */
  readonly roles: ReadonlyArray<Role>
  readonly form: FormState
  /** A link that was just made, with its person's name. */
  readonly invited: { readonly name: string; readonly url: string } | undefined
  readonly first: string | undefined
  readonly next: string | undefined
}

interface ActProps {
  readonly viewer: Viewer
  readonly person: Person
  readonly act: "disable" | "enable" | "link" | "revoke" | "role"
  readonly text: string
  readonly to?: Role
}

const Act = ({ act, person, text, to, viewer }: ActProps) => (
  <form method="post" action={pathOf(viewer, `/people/${person.id}/${act}`)}>
    <input type="hidden" name="csrf" value={viewer.csrf} />
    {to === undefined ? null : <input type="hidden" name="role" value={to} />}
    <button type="submit">
      {text} <span class="visually-hidden">{person.name}</span>
    </button>
  </form>
)

const Acts = ({ person, viewer }: Pick<ActProps, "person" | "viewer">) => {
  if (person.id === viewer.person) return <>you</>
  if (person.disabledAt !== undefined) return <Act viewer={viewer} person={person} act="enable" text="Enable" />
  return (
    <div class="acts">
      {person.role === "operator" ? null : person.role === "admin" ? (
        <Act viewer={viewer} person={person} act="role" to="viewer" text="Make a viewer" />
      ) : (
        <Act viewer={viewer} person={person} act="role" to="admin" text="Make an admin" />
      )}
      <Act viewer={viewer} person={person} act="link" text="New link" />
      <Act viewer={viewer} person={person} act="revoke" text="End sessions" />
      <Act viewer={viewer} person={person} act="disable" text="Disable" />
    </div>
  )
}

const Invited = ({ name, url }: { readonly name: string; readonly url: string }) => (
  <Notice tone="good">
    <p>
      Hand this link to {name}. It is shown only now, works once, and for {linkMinutes} minutes:
    </p>
    <p>
      <code>{url}</code>
    </p>
  </Notice>
)

export const PeopleView = ({ first, form, invited, next, people, roles, viewer }: PeopleViewProps) => (
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
        { name: "Since", cell: ({ createdAt }) => <Time at={createdAt} /> },
        { name: "State", cell: ({ disabledAt }) => <Status of={disabledAt === undefined ? "active" : "disabled"} /> },
        { name: "Change", cell: (person) => <Acts viewer={viewer} person={person} /> }
      ]}
    />
    <Paging first={first} next={next} />
    <section class="card" aria-labelledby="invite-title">
      <h2 id="invite-title">Invite somebody</h2>
      <PostForm
        of={form}
        action={pathOf(viewer, "/people")}
        csrf={viewer.csrf}
        submit="Make a link"
        labels={{ name: "Name", role: "Role" }}
      >
        <TextField of={form} name="name" label="Name" required />
        <Select
          of={form}
          name="role"
          label="Role"
          hint={`A viewer reads ${viewer.owner.account}, an admin administers it${roles.includes("operator") ? ", an operator everything" : ""}.`}
          options={roles.map((role) => [role, role] as const)}
        />
      </PostForm>
    </section>
  </>
)
