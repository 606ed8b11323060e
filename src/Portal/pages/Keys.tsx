/** API keys: list, make, roll, change, revoke. A key's text is on the answer to the form that made it, and nowhere else. */
import { Clock, Effect } from "effect"
import { changeKey, createKey, type NewKeyJson, revokeKey, rollKey } from "../../Auth/keyOperations.ts"
import { Keys } from "../../Auth.ts"
import type { LimitRefused } from "../../Domain/Account.ts"
import {
  type ApiKey,
  defaultOverlapHours,
  highestLimits,
  isPluginKey,
  type Permission,
  permissions
} from "../../Domain/ApiKey.ts"
import { newApiKeyId } from "../../Domain/Ids.ts"
import { commonPluginPermissions, pluginPermissions, pluginPermissionTexts, storeIdOf } from "../../Domain/Plugin.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { Settings } from "../../Settings.ts"
import type { Writer } from "../../Sql.ts"
import { aboutOne, act, confirmation, framedReply, missing, pageById } from "../answers.tsx"
import {
  blank,
  Checks,
  type FormState,
  Hidden,
  Onward,
  PostForm,
  Radios,
  Select,
  TextArea,
  TextField
} from "../components/Form.tsx"
import { CopyField, Facts, LastTime, Notice, Status, Table, Time, Unplaced } from "../components/values.tsx"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pageRoute, pathOf, proofTo } from "../route.ts"
import { mayAs, namedIn, textOf, type Viewer } from "../Viewer.ts"

/** What a key can still do at `now`, Unix milliseconds. */
const stateOf = ({ expiresAt, revokedAt, rolledTo }: ApiKey, now: number): string => {
  if (revokedAt !== undefined) return "revoked"
  if (expiresAt !== undefined && expiresAt <= now) return "expired"
  return rolledTo === undefined ? "active" : "rolled"
}

/** Whether a key still authenticates. */
const isWorking = (key: ApiKey, now: number): boolean => ["active", "rolled"].includes(stateOf(key, now))

const shortKey = ({ lastFour, mode }: ApiKey): string => `svc_${mode}_…${lastFour}`

const permissionsOf = (key: ApiKey): string =>
  isPluginKey(key)
    ? "shop plugin"
    : key.permissions.length === permissions.length
      ? "all"
      : key.permissions.join(", ") || "none"

const limitsOf = ({ perHour, perMinute }: ApiKey): string =>
  [
    ...(perMinute === undefined ? [] : [`${perMinute} a minute`]),
    ...(perHour === undefined ? [] : [`${perHour} an hour`])
  ].join(", ") || "as configured"

const labels = {
  name: "Name",
  preset: "What it is for",
  permissions: "What it may do",
  pluginPermissions: "What the shop plugin may do",
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
const keyPresets = {
  shop: ["payments:read", "payments:write", "quotes:read", "exceptions:read"],
  reader: ["payments:read", "webhooks:read", "quotes:read", "exceptions:read"]
} as const satisfies Readonly<Record<string, ReadonlyArray<Permission>>>

const inWords = (given: ReadonlyArray<Permission>): string => given.map((each) => permissionTexts[each]).join(", ")

interface KeyActionsProps {
  readonly viewer: Viewer
  readonly of: ApiKey
  readonly terms: FormState
  readonly roll: FormState
}

const KeyActions = ({ of: key, roll, terms, viewer }: KeyActionsProps) => {
  const path = `/keys/${key.id}`
  return (
    <>
      {key.rolledTo === undefined ? (
        <section class="card">
          <h2>Roll</h2>
          <p>Makes a key like this one. This one works for the overlap, in which you put the new one into use.</p>
          <PostForm of={roll} to={`${path}/roll`} submit="Roll the key">
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
        <PostForm of={terms} to={`${path}/terms`} submit="Change" labels={labels}>
          <TermFields viewer={viewer} granted={key.granted} />
        </PostForm>
      </section>
      <Onward to={`${path}/revoke`}>Revoke this key</Onward>
    </>
  )
}

/** The fields of a key's terms. */
const termNames = ["ips", "perMinute", "perHour"] as const

const list: PortalHandler<Keys> = Effect.fnUntraced(function* (viewer, { query }) {
  const keys = yield* Keys
  const now = yield* Clock.currentTimeMillis
  const page = yield* pageById(viewer, "/keys", query, (part) => keys.listOf(viewer.owner, part))
  const mayCreate = mayAs(viewer.role, "admin")
  return framedReply(
    viewer,
    {
      ...{ section: "/keys", title: "API keys" },
      action: mayCreate ? { href: pathOf(viewer, "/keys/new"), text: "Create a key" } : undefined
    },
    <>
      <Table
        caption={`API keys of the ${viewer.owner.mode} mode, newest first`}
        rows={page.rows}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pathOf(viewer, `/keys/${id}`)}
        empty="No key yet. Your server sends one with every request, in the header X-API-Key."
        columns={[
          { name: "Name", cell: ({ name }) => name },
          { name: "Key", cell: (key) => <code>{shortKey(key)}</code> },
          { name: "Status", cell: (key) => <Status of={stateOf(key, now)} /> },
          { name: "Last used", cell: ({ lastUsedAt }) => <LastTime at={lastUsedAt} /> },
          { name: "Permissions", cell: permissionsOf },
          { name: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> }
        ]}
      />
      {page.paging}
    </>
  )
})

/** Makes a key. Its id is drawn with the form, so that a form that is sent twice makes one key. */
const newKeyPage = (viewer: Viewer, of: FormState, status?: number) =>
  framedReply(
    viewer,
    { section: "/keys", title: "Create an API key" },
    <section class="card" aria-label="The key">
      <PostForm of={of} to="/keys" submit="Create the key" labels={labels}>
        <Hidden name="id" />
        <TextField name="name" hint="For you: what uses it, such as “shop server”." required isStart />
        <Radios
          name="preset"
          options={[
            ["shop", `Your shop’s server: ${inWords(keyPresets.shop)}`],
            ["reader", `Read only: ${inWords(keyPresets.reader)}`],
            ["custom", "Custom: what you choose below"],
            ["plugin", "A shop plugin, which does not connect by itself. Shop plugins must be on, under Settings"]
          ]}
        />
        <Checks name="permissions" options={permissions.map((each) => [each, permissionTexts[each]])} />
        <Checks
          name="pluginPermissions"
          options={pluginPermissions.map((each) => [each, pluginPermissionTexts[each]])}
        />
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
    </section>,
    status
  )

const open: PortalHandler<never> = (viewer) =>
  Effect.sync(() => {
    const typed = new URLSearchParams({ id: newApiKeyId(), preset: "shop" })
    for (const each of commonPluginPermissions) typed.append("pluginPermissions", each)
    return newKeyPage(viewer, { id: "key", typed, problems: [] })
  })

/** The text of a key, the only time that it is shown. */
export const keyMadePage = (viewer: Viewer, title: string, { key, storeId }: NewKeyJson) =>
  Effect.map(Settings, ({ server }) =>
    framedReply(
      viewer,
      { section: "/keys", title },
      <>
        <Notice tone="warning" isAnswer>
          <p>This is the only time that the key is shown. Keep it where only your server can read it.</p>
        </Notice>
        <CopyField id="new-key" label="The key" value={key} />
        {storeId === undefined ? null : (
          <>
            <CopyField id="store-id" label="The store id" value={storeId} />
            <CopyField id="server" label="The server’s address" value={server.publicUrl} />
          </>
        )}
        <Onward to="/keys">I have kept it: to the list</Onward>
      </>
    )
  )

/** The form was sent again: its key exists, and its text is not known any longer. */
const usedUp = () => ({
  path: "",
  message: "This form was sent before: its key was made, and shown once. If nobody has kept it, roll it."
})

const ended = () => ({ path: "", message: "This key has ended: it was rolled or revoked, or has expired." })

const create: PortalHandler<Keys | Settings | Writer> = (viewer, { form }) => {
  const preset = namedIn<ReadonlyArray<string>>(keyPresets, form.get("preset"))
  const chosen = new URLSearchParams(form)
  if (preset !== undefined) {
    chosen.delete("permissions")
    for (const each of preset) chosen.append("permissions", each)
  }
  const kind = form.get("preset") === "plugin" ? "pluginPermissions" : "permissions"
  return act(viewer, createKey, {
    ...{ form: chosen, fields: ["name", kind, "expires", ...termNames] },
    given: { id: textOf(form, "id"), ...viewer.owner },
    done: (made) => keyMadePage(viewer, "Your new key", made),
    refused: (problems) => newKeyPage(viewer, { id: "key", typed: form, problems }, 422),
    on: { KeyExists: usedUp, LimitRefused: refusedLimit }
  })
}

const refusedLimit = ({ limit, rule }: LimitRefused) => ({ path: limit, message: rule })

/** The terms of a key, as its form shows them: limits that nobody lowered are as the operator set them. */
const termsOf = ({ ips, perHour, perMinute }: ApiKey): FormState =>
  blank("terms", { ips: ips.join("\n"), perMinute: String(perMinute ?? ""), perHour: String(perHour ?? "") })

/** The id of the new key is drawn with the form: one that is sent twice rolls once, and says so. */
const blankRoll = () => blank("roll", { overlap: `${defaultOverlapHours}h`, to: newApiKeyId() })

const keyPage = Effect.fnUntraced(function* (viewer: Viewer, key: ApiKey, terms = termsOf(key), roll = blankRoll()) {
  const now = yield* Clock.currentTimeMillis
  const works = isWorking(key, now)
  return framedReply(
    viewer,
    { section: "/keys", title: key.name },
    <>
      {works && key.rolledTo === undefined ? null : <Unplaced of={roll.problems} />}
      {works ? null : <Unplaced of={terms.problems} />}
      <section class="card">
        <Facts
          of={{
            Status: <Status of={stateOf(key, now)} />,
            Key: <code>{shortKey(key)}</code>,
            Identifier: <code>{key.id}</code>,
            "Last used": <LastTime at={key.lastUsedAt} />,
            "May do": permissionsOf(key),
            ...(isPluginKey(key) && {
              "The shop may": key.pluginPermissions.map((each) => pluginPermissionTexts[each]).join("; "),
              "Store id": <code>{storeIdOf(key)}</code>
            }),
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
        <Onward to={`/requests?key=${key.id}`}>Its requests</Onward>
      </section>
      {mayAs(viewer.role, "admin") && works ? <KeyActions of={key} viewer={viewer} terms={terms} roll={roll} /> : null}
    </>,
    terms.problems.length + roll.problems.length > 0 ? 422 : 200
  )
})

const ofKey = aboutOne("/keys", "key", (viewer, id) => Effect.flatMap(Keys, (keys) => keys.find(viewer.owner, id)))

const showKey = ofKey((viewer, key) => keyPage(viewer, key))

const roll = ofKey<Keys | Settings | Writer>((viewer, key, form) =>
  act(viewer, rollKey, {
    ...{ form, fields: ["overlap"], given: { id: key.id, to: textOf(form, "to") } },
    done: (made) => keyMadePage(viewer, "The key that replaces it", made),
    refused: (problems) => keyPage(viewer, key, undefined, { id: "roll", typed: form, problems }),
    on: {
      // The key as it is now: of a form that was sent twice, the first has rolled it.
      KeyEnded: (_, { to }) => (key.rolledTo === to ? usedUp() : ended()),
      KeyExists: usedUp,
      NotFound: () => missing(viewer, "/keys", "key")
    }
  })
)

const change = ofKey<Keys | Settings | Writer>((viewer, key, form) =>
  act(viewer, changeKey, {
    // Without the limits that are as they were shown: an operator who changes others does not confirm a lowered one.
    fields: termNames.filter((name) => name === "ips" || textOf(form, name) !== String(key[name] ?? "")),
    ...{ form, given: { id: key.id } },
    done: () => seeOther(afterDone(viewer, `/keys/${key.id}`, "terms")),
    refused: (problems) => keyPage(viewer, key, { id: "terms", typed: form, problems }),
    on: {
      KeyEnded: ended,
      LimitRefused: refusedLimit,
      NotFound: () => missing(viewer, "/keys", "key")
    }
  })
)

const confirmRevocation = ofKey(
  Effect.fnUntraced(function* (viewer, key) {
    const back = `/keys/${key.id}`
    if (!isWorking(key, yield* Clock.currentTimeMillis)) return seeOther(pathOf(viewer, back))
    return confirmation(
      viewer,
      { section: "/keys", title: `Revoke ${key.name}?`, to: `${back}/revoke`, submit: "Revoke it", back },
      <Notice tone="warning">
        <p>
          Every request with <code>{shortKey(key)}</code> is refused from then on. This cannot be undone.
        </p>
      </Notice>
    )
  })
)

const revoke = ofKey<Keys | Writer>((viewer, key, form) =>
  act(viewer, revokeKey, {
    ...{ form, fields: [], given: { id: key.id } },
    done: () => seeOther(afterDone(viewer, `/keys/${key.id}`, "revoked")),
    refused: () => missing(viewer, "/keys", "key")
  })
)

export const keyRoutes: ReadonlyArray<PortalRoute<Keys | Settings | Writer>> = [
  pageRoute("/keys", "viewer", list),
  pageRoute("/keys/new", "admin", open),
  formRoute("/keys", "admin", create, proofTo("make an API key")),
  pageRoute("/keys/:id", "viewer", showKey),
  formRoute("/keys/:id/roll", "admin", roll, proofTo("roll an API key")),
  formRoute("/keys/:id/terms", "admin", change, proofTo("change where an API key works and how often")),
  pageRoute("/keys/:id/revoke", "admin", confirmRevocation),
  formRoute("/keys/:id/revoke", "admin", revoke)
]
