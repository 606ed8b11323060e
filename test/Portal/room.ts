import { randomBytes } from "node:crypto"
import { Effect, Layer, Redacted, Stream } from "effect"
import { h } from "preact"
import { PasswordCost } from "../../src/Auth/passwordHash.ts"
import { Accounts, Keys } from "../../src/Auth.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import type { PageRequest } from "../../src/Http/PageHandler.ts"
import { audited } from "../../src/Operations/auditLog.ts"
import { pageReply } from "../../src/Pages/reply.tsx"
import type { Desk } from "../../src/Portal/Desk.ts"
import { auditRoutes } from "../../src/Portal/pages/Audit.tsx"
import { meRoutes } from "../../src/Portal/pages/Me.tsx"
import { peopleRoutes } from "../../src/Portal/pages/People.tsx"
import type { PortalRoute } from "../../src/Portal/route.ts"
import { portalOf } from "../../src/Portal.ts"
import { makeSecrets, Secrets } from "../../src/Secrets.ts"
import { Settings, type SettingsShape } from "../../src/Settings.ts"
import type { Reader, Writer } from "../../src/Sql.ts"
import { makeVisitor, newLink, type Visitor, type Who } from "../lib/portal.ts"
import { testSettings } from "../lib/settings.ts"
import { tempStore } from "../lib/store.ts"

export const origin = "http://127.0.0.1:8080"

/** Pages that say who sees them, and what they were sent. */
const page = (method: "GET" | "POST", path: string, more: Partial<PortalRoute<never>> = {}): PortalRoute<never> => ({
  method,
  path,
  role: "viewer",
  handle: ({ name, owner, role }, { form, params }) =>
    Effect.succeed(
      pageReply(h("p", {}, JSON.stringify({ name, owner, role, path, params, form: Object.fromEntries(form) })))
    ),
  ...more
})

/** Acts, unless its form is wrong. */
const acting: PortalRoute<Writer>["handle"] = ({ actor }, { form }) =>
  form.get("tick") === "yes"
    ? Effect.as(
        Effect.flatMap(actor, (who) => audited(who, { act: "test act", detail: {} }, () => Effect.void)),
        pageReply(h("p", {}, "acted"))
      )
    : Effect.succeed(pageReply(h("p", {}, "must be ticked"), { status: 422 }))

const routes: ReadonlyArray<PortalRoute<Writer>> = [
  page("GET", ""),
  page("GET", "/things"),
  page("GET", "/things/new"),
  page("GET", "/things/:id"),
  page("POST", "/things", { role: "admin" }),
  page("GET", "/health", { role: "operator" }),
  page("GET", "/roles", { role: "admin", proof: { when: "always", to: "see the roles" } }),
  {
    ...page("POST", "/roles", { role: "admin", proof: { when: "always", to: "change the roles" } }),
    handle: (viewer, request) => Effect.zipRight(viewer.actor, page("POST", "/roles").handle(viewer, request))
  },
  {
    method: "POST",
    path: "/acts",
    role: "admin",
    proof: { when: "always", to: "act" },
    handle: acting
  }
]

export const shop = AccountId.make("shop")

/** The store, with the accounts `default` and `shop`. */
export const portalStore = (over: Partial<SettingsShape> = {}) =>
  Layer.effectDiscard(
    Effect.flatMap(Accounts, (accounts) => accounts.create({ id: shop, name: "Shop", wallets: [] }))
  ).pipe(
    Layer.provideMerge(Layer.merge(Accounts.layer, Keys.layer)),
    Layer.provideMerge(tempStore),
    Layer.provideMerge(
      Layer.merge(
        Layer.succeed(Settings, testSettings("", over)),
        Layer.sync(Secrets, () => makeSecrets(Redacted.make(randomBytes(32))))
      )
    )
  )

/** For suites that set passwords often, and measure nothing by them. */
export const cheapPasswords = Layer.succeed(PasswordCost, { N: 2 ** 4, r: 8, p: 1 })

/** The portal without a server: browsers that ask it directly, so that the test clock is its time. */
export const portalWith = Effect.fnUntraced(function* <R>(routes: ReadonlyArray<PortalRoute<R | Desk>>) {
  const room = yield* portalOf<R>(routes)
  const visitor = (client = "192.0.2.1", at = origin): Visitor =>
    makeVisitor(at, (method, target, headers, body = "") => {
      const [path = "", search = ""] = target.split("?")
      const request: PageRequest = {
        ...{ method, path, search, client, requestId: "req_1" },
        headers: { host: new URL(at).host, ...headers },
        body: Buffer.from(body),
        hold: (wait) => wait,
        recognised: () => {}
      }
      return Effect.gen(function* () {
        const { rest = Stream.empty, ...reply } = yield* Effect.orDie(room(request))
        return { ...reply, text: reply.text + (yield* Stream.mkString(rest)) }
      })
    })
  const enter = Effect.fnUntraced(function* (who: Who = {}, client?: string) {
    const signedIn = visitor(client)
    yield* signedIn.post(yield* newLink(who))
    return signedIn
  })
  return { visitor, enter }
})

/** The portal with pages that say who sees them. */
export const portal = portalWith<Keys | Reader | Secrets | Settings | Writer>([
  ...routes,
  ...meRoutes,
  ...peopleRoutes,
  ...auditRoutes
])

/** Text as Preact escapes it, as it was before. */
export const unescaped = (text: string): string =>
  text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&amp;", "&")

/** What a page of `routes` says. */
export const seen = (text: string) => JSON.parse(unescaped(/<p>(.*)<\/p>/s.exec(text)?.[1] ?? "null"))
