/** What the pages of API keys show: a list, one key, the forms. */
import { type ApiKey, highestLimits, type Permission, permissions } from "../../Domain/ApiKey.ts"
import { CopyField } from "../components/CopyText.tsx"
import { Checks, type FormState, Hidden, PostForm, Radios, Select, TextArea, TextField } from "../components/Form.tsx"
import { Facts, Table } from "../components/Table.tsx"
import { Notice, Status, Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"

/** What a key can still do at `now`, Unix milliseconds. */
const stateOf = ({ expiresAt, revokedAt, rolledTo }: ApiKey, now: number): string => {
  if (revokedAt !== undefined) return "revoked"
  if (expiresAt !== undefined && expiresAt <= now) return "expired"
  return rolledTo === undefined ? "active" : "rolled"
}

/** Whether a key still authenticates. */
export const isWorking = (key: ApiKey, now: number): boolean => ["active", "rolled"].includes(stateOf(key, now))

export const shortKey = ({ lastFour, mode }: ApiKey): string => `svc_${mode}_…${lastFour}`

const permissionsOf = (key: ApiKey): string =>
  key.permissions.length === permissions.length ? "all" : key.permissions.join(", ") || "none"

const limitsOf = ({ perHour, perMinute }: ApiKey): string =>
  [
    ...(perMinute === undefined ? [] : [`${perMinute} a minute`]),
    ...(perHour === undefined ? [] : [`${perHour} an hour`])
  ].join(", ") || "as configured"

const LastUse = ({ of: { lastUsedAt } }: { readonly of: ApiKey }) =>
  lastUsedAt === undefined ? <>never</> : <Time at={lastUsedAt} />

export interface KeyTableProps {
  readonly viewer: Viewer
  readonly keys: ReadonlyArray<ApiKey>
  readonly now: number
}

export const KeyTable = ({ keys, now, viewer }: KeyTableProps) => (
  <Table
    caption={`API keys of the ${viewer.owner.mode} mode, newest first`}
    rows={keys}
    keyOf={({ id }) => id}
    hrefOf={({ id }) => pathOf(viewer, `/keys/${id}`)}
    empty="No key yet. Your server sends one with every request, in the header X-API-Key."
    columns={[
      { name: "Name", cell: ({ name }) => name },
      { name: "Key", cell: (key) => <code>{shortKey(key)}</code> },
      { name: "Status", cell: (key) => <Status of={stateOf(key, now)} /> },
      { name: "Last used", cell: (key) => <LastUse of={key} /> },
      { name: "Permissions", cell: permissionsOf },
      { name: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> }
    ]}
  />
)

const labels = {
  name: "Name",
  preset: "What it is for",
  permissions: "What it may do",
  expires: "Expires",
  ips: "Only from these addresses",
  perMinute: "Requests a minute",
  perHour: "Requests an hour"
}

/** What a limit may be. An admin of the account sets lower ones than the operator has, and no others. */
const limitHint = ({ role }: Viewer, highest: number, granted: number | undefined): string => {
  if (mayAs(role, "operator")) return `1 to ${highest.toLocaleString("en-US")}. Leave blank for the default.`
  return granted === undefined
    ? "At most as configured; the operator may give more. Leave blank for the default."
    : `1 to ${granted.toLocaleString("en-US")}, as the operator set it. Leave blank for that.`
}

interface TermFieldsProps {
  readonly viewer: Viewer
  readonly granted?: ApiKey["granted"]
}

/** Where a key may be used from, and how often. */
const TermFields = ({ granted, viewer }: TermFieldsProps) => (
  <>
    <TextArea
      name="ips"
      hint="Addresses or blocks such as 203.0.113.0/24, one a line. Leave blank to allow every address."
    />
    <TextField
      name="perMinute"
      inputMode="numeric"
      hint={limitHint(viewer, highestLimits.perMinute, granted?.perMinute)}
    />
    <TextField name="perHour" inputMode="numeric" hint={limitHint(viewer, highestLimits.perHour, granted?.perHour)} />
  </>
)

interface KeyFormProps {
  readonly viewer: Viewer
  readonly of: FormState
}

const permissionTexts: Readonly<Record<Permission, string>> = {
  "payments:read": "read payments",
  "payments:write": "create and cancel payments",
  "webhooks:read": "read webhooks and deliveries",
  "webhooks:write": "change webhooks, send deliveries again",
  "quotes:read": "ask for quotes",
  "exceptions:read": "read exceptions",
  "exceptions:write": "decide on exceptions"
}

/** What most keys are for. */
export const keyPresets = {
  shop: ["payments:read", "payments:write", "quotes:read", "exceptions:read"],
  reader: ["payments:read", "webhooks:read", "quotes:read", "exceptions:read"]
} as const satisfies Readonly<Record<string, ReadonlyArray<Permission>>>

const inWords = (given: ReadonlyArray<Permission>): string => given.map((each) => permissionTexts[each]).join(", ")

/** Makes a key. Its id is drawn with the form, so that a form that is sent twice makes one key. */
export const NewKeyForm = ({ of, viewer }: KeyFormProps) => (
  <section class="card" aria-label="The key">
    <PostForm of={of} action={pathOf(viewer, "/keys")} csrf={viewer.csrf} submit="Create the key" labels={labels}>
      <Hidden name="id" />
      <TextField name="name" hint="For you: what uses it, such as “shop server”." required isStart />
      <Radios
        name="preset"
        options={[
          ["shop", `Your shop’s server: ${inWords(keyPresets.shop)}`],
          ["reader", `Read only: ${inWords(keyPresets.reader)}`],
          ["custom", "Custom: what you choose below"]
        ]}
      />
      <Checks name="permissions" options={permissions.map((each) => [each, permissionTexts[each]])} />
      <Select
        name="expires"
        options={[
          ["", "never, until it is revoked"],
          ["1d", "in a day"],
          ["30d", "in 30 days"],
          ["90d", "in 90 days"],
          ["365d", "in a year"]
        ]}
      />
      <TermFields viewer={viewer} />
    </PostForm>
  </section>
)

/** The text of a key, the only time that it is shown. */
export const MadeKey = ({ text, viewer }: { readonly text: string; readonly viewer: Viewer }) => (
  <>
    <Notice tone="warning" isAnswer>
      <p>This is the only time that the key is shown. Keep it where only your server can read it.</p>
    </Notice>
    <CopyField id="new-key" label="The key" value={text} />
    <p>
      <a href={pathOf(viewer, "/keys")}>I have kept it: to the list</a>
    </p>
  </>
)

export interface OneKeyProps {
  readonly viewer: Viewer
  readonly of: ApiKey
  readonly now: number
  readonly terms: FormState
  readonly roll: FormState
}

/** One key, and for an admin what can be done with it. */
export const OneKey = ({ now, of: key, roll, terms, viewer }: OneKeyProps) => (
  <>
    <section class="card">
      <Facts
        of={{
          Status: <Status of={stateOf(key, now)} />,
          Key: <code>{shortKey(key)}</code>,
          Identifier: <code>{key.id}</code>,
          "Last used": <LastUse of={key} />,
          "May do": permissionsOf(key),
          "From addresses": key.ips.length === 0 ? "everywhere" : key.ips.join(", "),
          Limits: limitsOf(key),
          Created: <Time at={key.createdAt} />,
          Ends: key.expiresAt === undefined ? undefined : <Time at={key.expiresAt} />,
          Revoked: key.revokedAt === undefined ? undefined : <Time at={key.revokedAt} />,
          "Replaced by":
            key.rolledTo === undefined ? undefined : (
              <a href={pathOf(viewer, `/keys/${key.rolledTo}`)}>
                <code>{key.rolledTo}</code>
              </a>
            )
        }}
      />
      <p>
        <a href={`${pathOf(viewer, "/requests")}?key=${key.id}`}>Its requests</a>
      </p>
    </section>
    {mayAs(viewer.role, "admin") && isWorking(key, now) ? (
      <KeyActions of={key} viewer={viewer} terms={terms} roll={roll} />
    ) : null}
  </>
)

const KeyActions = ({ of: key, roll, terms, viewer }: Omit<OneKeyProps, "now">) => {
  const path = pathOf(viewer, `/keys/${key.id}`)
  return (
    <>
      {key.rolledTo === undefined ? (
        <section class="card">
          <h2>Roll</h2>
          <p>Makes a key like this one. This one works for the overlap, in which you put the new one into use.</p>
          <PostForm of={roll} action={`${path}/roll`} csrf={viewer.csrf} submit="Roll the key">
            <Hidden name="to" />
            <Select
              name="overlap"
              label="This one ends"
              options={[
                ["1h", "in an hour"],
                ["24h", "in 24 hours"],
                ["7d", "in 7 days"],
                ["30d", "in 30 days"],
                ["0s", "at once"]
              ]}
            />
          </PostForm>
        </section>
      ) : null}
      <section class="card">
        <h2>Change where it works and how often</h2>
        <PostForm of={terms} action={`${path}/terms`} csrf={viewer.csrf} submit="Change" labels={labels}>
          <TermFields viewer={viewer} granted={key.granted} />
        </PostForm>
      </section>
      <p>
        <a href={`${path}/revoke`}>Revoke this key</a>
      </p>
    </>
  )
}
