/** API keys: list, make, roll, change, revoke. A key's text is on the answer to the form that made it, and nowhere else. */

import { Clock, Effect } from "effect"
import { changeKey, createKey, revokeKey, rollKey } from "../../Auth/keyOperations.ts"
import { Keys } from "../../Auth.ts"
import type { LimitRefused } from "../../Domain/Account.ts"
import { type ApiKey, defaultOverlapHours } from "../../Domain/ApiKey.ts"
import { newApiKeyId } from "../../Domain/Ids.ts"
import { seeOther } from "../../Pages/reply.tsx"
import type { Settings } from "../../Settings.ts"
import type { Writer } from "../../Sql.ts"
import { act } from "../act.ts"
import { blank, Confirm, type FormState } from "../components/Form.tsx"
import { Paging } from "../components/Table.tsx"
import { Notice, Unplaced } from "../components/values.tsx"
import { aboutOne, framedReply, missing } from "../framedReply.tsx"
import { namedIn, pageSize, textOf, withQuery } from "../query.ts"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pathOf, proofTo } from "../route.ts"
import { mayAs, type Viewer } from "../Viewer.ts"
import { isWorking, KeyTable, keyPresets, MadeKey as MadeKeyView, NewKeyForm, OneKey, shortKey } from "./KeyViews.tsx"

/** The fields of a key's terms. */
const termNames = ["ips", "perMinute", "perHour"] as const

const list: PortalHandler<Keys> = (viewer, { query }) =>
  Effect.gen(function* () {
    const keys = yield* Keys
    const now = yield* Clock.currentTimeMillis
    const after = query.get("after") ?? undefined
    const found = yield* keys.listOf(viewer.owner, { after, limit: pageSize + 1 })
    const here = pathOf(viewer, "/keys")
    const last = found.length > pageSize ? found[pageSize - 1]?.id : undefined
    const action = mayAs(viewer.role, "admin") ? { href: `${here}/new`, text: "Create a key" } : undefined
    return framedReply(
      viewer,
      { section: "/keys", title: "API keys", action },
      <>
        <KeyTable viewer={viewer} keys={found.slice(0, pageSize)} now={now} />
        <Paging first={after && here} next={last && withQuery(here, { after: last })} />
      </>
    )
  })

const newKeyPage = (viewer: Viewer, of: FormState, status?: number) =>
  framedReply(viewer, { section: "/keys", title: "Create an API key" }, <NewKeyForm viewer={viewer} of={of} />, status)

const open: PortalHandler<never> = (viewer) =>
  Effect.sync(() => {
    const typed = new URLSearchParams({ id: newApiKeyId(), preset: "shop" })
    return newKeyPage(viewer, { id: "key", typed, problems: [] })
  })

const madePage = (viewer: Viewer, title: string, { key }: { readonly key: string }) =>
  framedReply(viewer, { section: "/keys", title }, <MadeKeyView viewer={viewer} text={key} />)

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
  return act(viewer, createKey, {
    ...{ form: chosen, fields: ["name", "permissions", "expires", ...termNames] },
    given: { id: textOf(form, "id"), ...viewer.owner },
    done: (made) => madePage(viewer, "Your new key", made),
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

const keyPage = (viewer: Viewer, key: ApiKey, terms = termsOf(key), roll = blankRoll()) =>
  Effect.map(Clock.currentTimeMillis, (now) =>
    framedReply(
      viewer,
      { section: "/keys", title: key.name },
      <>
        {isWorking(key, now) && key.rolledTo === undefined ? null : <Unplaced of={roll.problems} />}
        {isWorking(key, now) ? null : <Unplaced of={terms.problems} />}
        <OneKey viewer={viewer} of={key} now={now} terms={terms} roll={roll} />
      </>,
      terms.problems.length + roll.problems.length > 0 ? 422 : 200
    )
  )

const ofKey = aboutOne("/keys", "key", (viewer, id) => Effect.flatMap(Keys, (keys) => keys.find(viewer.owner, id)))

const roll = ofKey<Keys | Writer>((viewer, key, form) =>
  act(viewer, rollKey, {
    ...{ form, fields: ["overlap"], given: { id: key.id, to: textOf(form, "to") } },
    done: (made) => madePage(viewer, "The key that replaces it", made),
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
    const here = pathOf(viewer, `/keys/${key.id}`)
    if (!isWorking(key, yield* Clock.currentTimeMillis)) return seeOther(here)
    return framedReply(
      viewer,
      { section: "/keys", title: `Revoke ${key.name}?` },
      <>
        <Notice tone="warning">
          <p>
            Every request with <code>{shortKey(key)}</code> is refused from then on. This cannot be undone.
          </p>
        </Notice>
        <Confirm id="revoke" action={`${here}/revoke`} csrf={viewer.csrf} submit="Revoke it" back={here} />
      </>
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
  { method: "GET", path: "/keys", role: "viewer", handle: list },
  { method: "GET", path: "/keys/new", role: "admin", handle: open },
  formRoute("/keys", "admin", create, proofTo("make an API key")),
  { method: "GET", path: "/keys/:id", role: "viewer", handle: ofKey((viewer, key) => keyPage(viewer, key)) },
  formRoute("/keys/:id/roll", "admin", roll, proofTo("roll an API key")),
  formRoute("/keys/:id/terms", "admin", change, proofTo("change where an API key works and how often")),
  { method: "GET", path: "/keys/:id/revoke", role: "admin", handle: confirmRevocation },
  formRoute("/keys/:id/revoke", "admin", revoke)
]
