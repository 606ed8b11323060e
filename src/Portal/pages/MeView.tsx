import type { Passkey } from "../../Auth/PasskeysRepo.ts"
import type { Session } from "../../Auth/SessionsRepo.ts"
import type { Person } from "../../Domain/Person.ts"
import { browserName } from "../browserName.ts"
import { CopyText } from "../components/CopyText.tsx"
import { Act, type FormState, PostForm, TextField } from "../components/Form.tsx"
import { Facts, Table } from "../components/Table.tsx"
import { Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"

export interface MeViewProps {
  readonly viewer: Viewer
  readonly person: Person
  /** The form of the password. */
  readonly form: FormState
  readonly hasPassword: boolean
  /** Whether passkeys can be used at this address. */
  readonly hasPasskeys: boolean
  readonly passkeys: ReadonlyArray<Passkey>
  readonly sessions: ReadonlyArray<Session>
}

/** A form of one button, about one of several things or about all. */
const act = (viewer: Viewer, path: string, text: string, id?: string) => (
  <Act action={pathOf(viewer, path)} csrf={viewer.csrf} fields={id === undefined ? {} : { id }}>
    {text}
  </Act>
)

const Password = ({ form, hasPassword, person, viewer }: MeViewProps) => (
  <section class="card" aria-labelledby="password-title">
    <h2 id="password-title">Password</h2>
    <p>
      {hasPassword
        ? "You can sign in with a name and a password. A new password signs you out everywhere else."
        : "None yet: with one you sign in without a link."}
    </p>
    <PostForm
      of={form}
      action={pathOf(viewer, "/me/password")}
      csrf={viewer.csrf}
      submit={hasPassword ? "Change the password" : "Set a password"}
      labels={{ name: "Sign-in name", password: "Password" }}
    >
      <TextField
        of={form}
        name="name"
        label="Sign-in name"
        hint={person.account === undefined ? undefined : `Your own within the account ${person.account}.`}
        autocomplete="username"
        required
      />
      <TextField
        of={form}
        name="password"
        label="Password"
        type="password"
        autocomplete="new-password"
        hint="At least 10 characters"
        required
      />
    </PostForm>
    {hasPassword ? act(viewer, "/me/password/remove", "Remove the password") : null}
  </section>
)

const Passkeys = ({ hasPasskeys, passkeys, viewer }: MeViewProps) => (
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
        {
          name: "Last used",
          cell: ({ lastUsedAt }) => (lastUsedAt === undefined ? "never" : <Time at={lastUsedAt} />)
        },
        {
          name: "Remove",
          cell: ({ id, name }) => act(viewer, "/me/passkeys/remove", `Remove ${name}`, id)
        }
      ]}
    />
    {hasPasskeys ? (
      <p>
        <a href={pathOf(viewer, "/me/passkeys/new")}>Create a passkey</a>
      </p>
    ) : (
      <p class="hint">
        Passkeys need https: {mayAs(viewer.role, "operator") ? "set" : "ask the operator to set"}{" "}
        <code>server.public_url</code>. On your own machine it can be http://localhost.
      </p>
    )}
  </section>
)

const Sessions = ({ sessions, viewer }: MeViewProps) => (
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
          cell: ({ id }) => (id === viewer.session ? "this session" : act(viewer, "/me/sessions/revoke", "End", id))
        }
      ]}
    />
    <p class="hint">
      Ending a session also cancels the links made in it, and signs out whoever used one. If somebody else may have used
      a session of yours, end all others: people whom you let in within the last week then need a new link.
    </p>
    {act(viewer, "/me/sessions/revoke-others", "End all other sessions")}
  </section>
)

export const MeView = (props: MeViewProps) => (
  <>
    <section class="card" aria-label="You">
      <Facts of={{ Role: props.person.role, Account: props.person.account, Id: <CopyText text={props.person.id} /> }} />
    </section>
    <Password {...props} />
    <Passkeys {...props} />
    <Sessions {...props} />
  </>
)
