import { expect, it } from "vitest"
import { allOperations } from "../../src/Control/operations.ts"
import { actTexts } from "../../src/Portal/pages/Audit.tsx"
import type { Proof } from "../../src/Portal/route.ts"
import { routes } from "../../src/Portal/routes.ts"

/** Paths of the routes that a role may use, sorted. */
const of = (method: string, role: string, when?: Proof["when"]) =>
  routes
    .filter((route) => route.method === method && route.role === role && route.proof?.when === when)
    .map(({ path }) => path)
    .sort()

it("a page that is not for every viewer of the account is named here", () => {
  expect(of("GET", "operator")).toEqual(["/accounts", "/accounts/:id", "/accounts/new", "/health"])
  expect(of("GET", "admin")).toEqual([
    ...["/audit", "/audit.csv", "/audit.jsonl", "/deliveries/resend-range", "/invoices/:id/cancel"],
    ...["/keys/:id/revoke", "/keys/new", "/pair"],
    ...[
      "/payments/:id/cancel",
      "/payments/:id/refund",
      "/payments/new",
      "/people",
      "/people/:id/disable",
      "/people/:id/revoke",
      "/settings",
      "/settings/logo",
      "/webhooks/:id/delete",
      "/webhooks/new"
    ]
  ])
  expect(of("GET", "viewer", "always")).toEqual(["/me/passkeys/new"])
})

it("what changes something is for its role, and what can do most harm asks for a fresh proof", () => {
  const posts = {
    viewer: of("POST", "viewer"),
    viewerProven: of("POST", "viewer", "always"),
    admin: of("POST", "admin"),
    adminProvenLive: of("POST", "admin", "live"),
    adminProvenShared: of("POST", "admin", "shared"),
    adminProven: of("POST", "admin", "always"),
    operator: of("POST", "operator"),
    operatorProven: of("POST", "operator", "always")
  }
  expect(posts).toEqual({
    viewer: ["/me/sessions/revoke"],
    viewerProven: [
      ...["/me/passkeys", "/me/passkeys/remove", "/me/password", "/me/password/remove"],
      "/me/sessions/revoke-others"
    ],
    admin: [
      ...["/deliveries/:id/resend", "/deliveries/resend", "/deliveries/resend-range", "/keys/:id/revoke"],
      ...["/payments/:id/simulate", "/payments/new"],
      "/webhooks/:id/test"
    ],
    adminProvenLive: [
      ...[
        "/exceptions/:id/accept",
        "/exceptions/:id/refund",
        "/invoices/:id/cancel",
        "/keys",
        "/keys/:id/roll",
        "/keys/:id/terms"
      ],
      ...[
        "/payments/:id/cancel",
        "/payments/:id/refund",
        "/refunds/:id",
        "/refunds/:id/drop",
        "/webhooks",
        "/webhooks/:id",
        "/webhooks/:id/delete",
        "/webhooks/:id/secret",
        "/webhooks/default-secret"
      ]
    ],
    adminProvenShared: ["/pair", "/settings", "/settings/logo"],
    adminProven: [
      ...["/people", "/people/:id/disable", "/people/:id/enable", "/people/:id/link"],
      ...["/people/:id/revoke", "/people/:id/role"]
    ],
    operator: ["/accounts"],
    operatorProven: ["/accounts/:id"]
  })
  expect(Object.values(posts).flat()).toHaveLength(routes.filter(({ method }) => method === "POST").length)
})

it("every operation that is in the audit log has its words there", () => {
  const acts = allOperations.filter(({ access }) => access === "administer").map(({ name }) => name)
  expect(acts.length).toBeGreaterThan(20)
  expect(acts.filter((act) => actTexts[act] === undefined)).toEqual([])
})
