/**
 * Connecting a shop: its plugin sends the shop's admin here with the permissions that it asks for, and the admin's browser
 * posts the new key to the shop. What the address says is a stranger's: only the origin of `redirect` is certain.
 */
import { Duration, Effect, Schema } from "effect"
import * as AccountsRepo from "../../Auth/AccountsRepo.ts"
import { createKey, type NewKeyJson, rollKey } from "../../Auth/keyOperations.ts"
import { changeShop } from "../../Auth/shopOperations.ts"
import { shopOf } from "../../Auth/shops.ts"
import type { Accounts } from "../../Auth.ts"
import { Keys } from "../../Auth.ts"
import type { Mode } from "../../Domain/Chain.ts"
import { newApiKeyId } from "../../Domain/Ids.ts"
import { PluginPermission, pluginPermissionTexts, storeIdOf } from "../../Domain/Plugin.ts"
import { FrameOrigin, mostFrameOrigins, type Shop } from "../../Domain/Shop.ts"
import type { HttpReply } from "../../Http/HttpReply.ts"
import { parseUrl } from "../../lib/Url.ts"
import { carryOut } from "../../Operations/auditLog.ts"
import { nameLength } from "../../Operations/inputFields.ts"
import { decodeForm } from "../../Operations/operation.ts"
import { pageReply } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import { Reader, type StoreUnavailable, type Writer } from "../../Sql.ts"
import { actOn, framedReply } from "../answers.tsx"
import { blank, Checks, type FormState, Hidden, PostForm } from "../components/Form.tsx"
import { Notice } from "../components/values.tsx"
import { Outside, otherModeOf } from "../Frame.tsx"
import { formRoute, type PortalHandler, type PortalRoute, pageRoute, pathOf, proofTo } from "../route.ts"
import { mayAs, pageSize, type Viewer } from "../Viewer.ts"
import { keyMadePage } from "./Keys.tsx"

const isPermission = Schema.is(PluginPermission)
const isFrameOrigin = Schema.is(FrameOrigin)

/** What a plugin asks for. */
interface Asked {
  readonly application: string
  readonly permissions: ReadonlyArray<PluginPermission>
  /** What it asks for and nobody is given here. */
  readonly others: ReadonlyArray<string>
  readonly redirect: URL | undefined
  /** Why it gets no key. */
  readonly problem: string | undefined
}

/** https anywhere, and http on this machine for a test key. Its origin goes into a header: see `FrameOrigin`. */
const mayLeadTo = ({ origin, password, protocol, username }: URL, mode: Mode): boolean =>
  isFrameOrigin(origin) &&
  username + password === "" &&
  (protocol === "https:" || (mode === "test" && protocol === "http:"))

/** Programs write a list as `permissions=A&permissions=B`, with `[]`, or with `[0]`, `[1]`. Absent, `strict` is true. */
const askedIn = (query: URLSearchParams, mode: Mode): Asked => {
  const names = [
    ...new Set(Array.from(query).flatMap(([key, name]) => (/^permissions(\[\d*])?$/.test(key) ? [name] : [])))
  ]
  const permissions = names.filter(isPermission)
  const others = names.filter((name) => !isPermission(name))
  const given = query.get("redirect") || undefined
  const redirect = given === undefined ? undefined : parseUrl(given)
  const problem =
    given !== undefined && (redirect === undefined || !mayLeadTo(redirect, mode))
      ? "The shop’s address, to which the key would be sent, must begin with https:// and have no user name. Only a test key is sent to http://localhost. Give the shop a certificate, and connect it again."
      : permissions.length === 0
        ? "The shop asks for nothing that a shop plugin may do here. Connect it from its plugin’s settings, or make a key under API keys."
        : others.length > 0 && query.get("strict") !== "false"
          ? "The shop takes only all of it, and not all is offered. Update its plugin, or make a key under API keys and type it in there."
          : undefined
  const application =
    (query.get("applicationName") ?? "").slice(0, nameLength).replace(/\p{C}/gu, "").trim() || "A shop"
  return { application, permissions, others: others.slice(0, 20), redirect, problem }
}

/** The origin that a shop may be let show the payment page in a frame from; undefined where it already may. */
const newFrameOrigin = ({ frameOrigins }: Shop, { redirect }: Asked): string | undefined =>
  redirect === undefined || frameOrigins.includes(redirect.origin) || frameOrigins.length >= mostFrameOrigins
    ? undefined
    : redirect.origin

type Needs = Accounts | Keys | Reader | Settings | Writer

/** The same page in the other mode, and for operators of another account. */
const elsewhere = Effect.fnUntraced(function* (viewer: Viewer, query: URLSearchParams) {
  const accounts = mayAs(viewer.role, "operator") ? yield* AccountsRepo.list(yield* Reader, { limit: pageSize }) : []
  const { account, mode } = viewer.owner
  const links = [
    [otherModeOf(viewer), `${otherModeOf(viewer).owner.mode} mode`] as const,
    ...accounts
      .filter(({ id }) => id !== account)
      .map(({ id, name }) => [{ owner: { account: id, mode } }, name] as const)
  ]
  return links.map(([place, text]) => (
    <li key={text}>
      <a href={`${pathOf(place, "/pair")}?${query}`}>{text}</a>
    </li>
  ))
})

const pairingPage = Effect.fnUntraced(function* (viewer: Viewer, query: URLSearchParams, of: FormState) {
  const { account, mode } = viewer.owner
  const asked = askedIn(query, mode)
  const { application, others, permissions, problem, redirect } = asked
  const shop = yield* shopOf(yield* Reader, account)
  const frameOrigin = newFrameOrigin(shop, asked)
  return framedReply(
    viewer,
    { section: "/keys", title: "Connect a shop" },
    <section class="card" aria-label="The shop">
      {problem === undefined ? null : <Notice tone="bad">{problem}</Notice>}
      <p>
        What calls itself <strong>{application}</strong> asks for a key to account <strong>{account}</strong> in{" "}
        <strong>{mode} mode</strong>. With it the shop may:
      </p>
      <ul>
        {permissions.map((each) => (
          <li key={each}>{pluginPermissionTexts[each]}</li>
        ))}
        {others.map((each) => (
          <li key={each}>
            Not offered: <code>{each.slice(0, nameLength)}</code>
          </li>
        ))}
      </ul>
      {redirect === undefined || problem !== undefined ? null : (
        <Notice tone="warning">
          The key is sent to <strong>{redirect.origin}</strong>. Go on only if this is your shop, and you came from
          there.
        </Notice>
      )}
      {problem === undefined ? (
        <PostForm of={of} to={`/pair?${query}`} submit="Connect the shop" labels={{ plugins: "Shop plugins" }}>
          <Hidden name="id" />
          {shop.plugins === "on" ? null : (
            <Checks name="plugins" options={[["on", "Turn on shop plugins for this account: they are off"]]} />
          )}
          {frameOrigin === undefined ? null : (
            <Checks
              name="frame"
              label="Payment page"
              options={[["on", `Let ${frameOrigin} show it in a frame of its own pages`]]}
            />
          )}
        </PostForm>
      ) : null}
      <p>Or connect it to:</p>
      <ul>{yield* elsewhere(viewer, query)}</ul>
    </section>,
    problem === undefined && of.problems.length === 0 ? 200 : 422
  )
})

/** Hands the key over: the browser posts it to the shop, by itself where scripts run. */
const handOver = (viewer: Viewer, { href, origin }: URL, { key, pluginPermissions = [] }: NewKeyJson) => {
  const fields = [
    ["apiKey", key],
    ["userId", viewer.person],
    ...pluginPermissions.map((each) => ["permissions[]", `${each}:${storeIdOf(viewer.owner)}`])
  ]
  return pageReply(
    <Outside title="Back to the shop">
      <p>
        The key is made. Your browser takes it to <strong>{origin}</strong>.
      </p>
      <form method="post" action={href} class="fields" data-continues>
        {fields.map(([name, value]) => (
          <input key={value} type="hidden" name={name} value={value} />
        ))}
        <p class="actions">
          <button type="submit">Go on to the shop</button>
        </p>
      </form>
    </Outside>,
    { formAction: origin }
  )
}

const connect: PortalHandler<Needs> = Effect.fnUntraced(function* (viewer, { form, query }) {
  const { account, mode } = viewer.owner
  const asked = askedIn(query, mode)
  const { application, permissions, problem, redirect } = asked
  const shop = yield* shopOf(yield* Reader, account)
  const again = (problems: FormState["problems"]): Effect.Effect<HttpReply, StoreUnavailable, Reader | Settings> =>
    pairingPage(viewer, query, { id: "pair", typed: form, problems })
  if (problem !== undefined) return yield* again([])
  if (shop.plugins !== "on" && !form.has("plugins")) {
    return yield* again([{ path: "plugins", message: "must be turned on: they are off for this account" }])
  }
  const frameOrigin = form.has("frame") ? newFrameOrigin(shop, asked) : undefined
  const changes = {
    ...(shop.plugins === "on" ? {} : { plugins: "on" as const }),
    ...(frameOrigin === undefined ? {} : { frameOrigins: [...shop.frameOrigins, frameOrigin] })
  }
  const input = decodeForm(createKey, form, [], {
    ...{ id: form.get("id") ?? "", account, mode, name: application, pluginPermissions: permissions },
    ...{ application, origin: redirect?.origin ?? "none" }
  })
  return yield* actOn(
    viewer,
    input,
    Effect.fnUntraced(function* (key, caller) {
      const made = yield* carryOut(createKey, key, caller).pipe(
        Effect.catchTag("KeyExists", (error) =>
          // The form was sent twice: its first answer, with the key, was seen by nobody.
          Effect.gen(function* () {
            const former = yield* (yield* Keys).find(viewer.owner, key.id)
            if (former?.pluginPermissions.join() !== permissions.join()) return yield* error
            const again = { id: key.id, to: newApiKeyId(), overlap: Duration.zero }
            return yield* carryOut(rollKey, again, caller)
          })
        )
      )
      if (Object.keys(changes).length > 0) yield* carryOut(changeShop, { account, ...changes }, caller)
      return made
    }),
    {
      done: (made) =>
        redirect === undefined ? keyMadePage(viewer, "The shop’s key", made) : handOver(viewer, redirect, made),
      refused: again
    }
  )
})

export const pairingRoutes: ReadonlyArray<PortalRoute<Needs>> = [
  pageRoute("/pair", "admin", (viewer, { query }) =>
    Effect.suspend(() => pairingPage(viewer, query, blank("pair", { id: newApiKeyId(), frame: "on" })))
  ),
  formRoute("/pair", "admin", connect, proofTo("connect a shop", "shared"))
]
