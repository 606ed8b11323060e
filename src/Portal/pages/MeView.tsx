import type { Passkey } from "../../Auth/PasskeysRepo.ts"
import type { Session } from "../../Auth/SessionsRepo.ts"
import type { Person } from "../../Domain/Person.ts"
import { type FormState, PostForm, TextField } from "../components/Form.tsx"
import { Facts, Table } from "../components/Table.tsx"
import { Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

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

interface ButtonProps {
  readonly viewer: Viewer
  readonly path: string
  readonly id?: string
  readonly text: string
}

/** A form of one button. */
const Button = ({ id, path, text, viewer }: ButtonProps) => (
  <form method="post" action={pathOf(viewer, path)}>
    <input type="hidden" name="csrf" value={viewer.csrf} />
    {id === undefined ? null : <input type="hidden" name="id" value={id} />}
    <button type="submit">{text}</button>
  </form>
)

const Password = ({ form, hasPassword, viewer }: MeViewProps) => (
  <section class="card" aria-labelledby="password-title">
    <h2 id="password-title">Password</h2>
    <p>
      {hasPassword
        ? "You can sign in with a name and a password. A new one ends your other sessions."
        : "None yet: with one you sign in without a link."}
    </p>
    <PostForm
      of={form}
      action={pathOf(viewer, "/me/password")}
      csrf={viewer.csrf}
      submit={hasPassword ? "Change the password" : "Set a password"}
      labels={{ name: "Sign-in name", password: "Password" }}
    >
      <TextField of={form} name="name" label="Sign-in name" autocomplete="username" required />
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
    {hasPassword ? <Button viewer={viewer} path="/me/password/remove" text="Remove the password" /> : null}
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
        { name: "Made", cell: ({ createdAt }) => <Time at={createdAt} /> },
        {
          name: "Last used",
          cell: ({ lastUsedAt }) => (lastUsedAt === undefined ? "never" : <Time at={lastUsedAt} />)
        },
        {
          name: "Remove",
          cell: ({ id, name }) => <Button viewer={viewer} path="/me/passkeys/remove" id={id} text={`Remove ${name}`} />
        }
      ]}
    />
    {hasPasskeys ? (
      <p>
        <a href={pathOf(viewer, "/me/passkeys/new")}>Make a passkey</a>
      </p>
    ) : (
      <p class="hint">
        Passkeys need the name of a host, over https: set server.public_url to it. On your own machine it can be
        http://localhost.
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
        { name: "Browser", cell: ({ userAgent }) => userAgent || "unknown" },
        { name: "Address", cell: ({ address }) => <code>{address}</code> },
        { name: "Signed in", cell: ({ createdAt }) => <Time at={createdAt} /> },
        { name: "Last seen", cell: ({ seenAt }) => <Time at={seenAt} /> },
        {
          name: "End",
          cell: ({ id }) =>
            id === viewer.session ? (
              "this session"
            ) : (
              <Button viewer={viewer} path="/me/sessions/revoke" id={id} text="End" />
            )
        }
      ]}
    />
    {sessions.length > 1 ? (
      <Button viewer={viewer} path="/me/sessions/revoke-others" text="End all other sessions" />
    ) : null}
  </section>
)

export const MeView = (props: MeViewProps) => (
  <>
    <Facts of={{ Role: props.person.role, Account: props.person.account, Id: <code>{props.person.id}</code> }} />
    <Password {...props} />
    <Passkeys {...props} />
    <Sessions {...props} />
  </>
)
