import { expect, it } from "vitest"
import { routes } from "../../src/Portal/routes.ts"

/** Paths of the routes that a role may use, sorted. */
const of = (method: string, role: string, fresh?: true | "live") =>
  routes
    .filter((route) => route.method === method && route.role === role && route.fresh === fresh)
    .map(({ path }) => path)
    .sort()

it("a page that is not for every viewer of the account is named here", () => {
  expect(of("GET", "operator")).toEqual(["/accounts", "/accounts/:id", "/accounts/new", "/health"])
  expect(of("GET", "admin")).toEqual([
    ...["/audit", "/audit.csv", "/audit.jsonl", "/deliveries/resend-range", "/keys/:id/revoke", "/keys/new"],
    ...[
      "/payments/:id/cancel",
      "/payments/new",
      "/people",
      "/settings",
      "/simulate",
      "/webhooks/:id/delete",
      "/webhooks/new"
    ]
  ])
  expect(of("GET", "viewer", true)).toEqual(["/me/passkeys/new"])
})

it("what changes something is for its role, and what can do most harm asks for a fresh proof", () => {
  const posts = {
    viewer: of("POST", "viewer"),
    viewerProven: of("POST", "viewer", true),
    admin: of("POST", "admin"),
    adminProvenLive: of("POST", "admin", "live"),
    adminProven: of("POST", "admin", true),
    operator: of("POST", "operator"),
    operatorProven: of("POST", "operator", true)
  }
  expect(posts).toEqual({
    viewer: ["/me/sessions/revoke"],
    viewerProven: [
      ...["/me/passkeys", "/me/passkeys/remove", "/me/password", "/me/password/remove"],
      "/me/sessions/revoke-others"
    ],
    admin: [
      ...["/deliveries/:id/resend", "/deliveries/resend", "/deliveries/resend-range", "/keys/:id/revoke"],
      ...["/payments/:id/cancel", "/payments/new", "/settings", "/simulate/new", "/simulate/pay", "/simulate/reorg"],
      "/webhooks/:id/test"
    ],
    adminProvenLive: [
      ...["/exceptions/:id/accept", "/exceptions/:id/refund", "/keys", "/keys/:id/roll", "/keys/:id/terms"],
      ...["/webhooks", "/webhooks/:id", "/webhooks/:id/delete", "/webhooks/:id/secret", "/webhooks/default-secret"]
    ],
    adminProven: [
      ...["/people", "/people/:id/disable", "/people/:id/enable", "/people/:id/link"],
      ...["/people/:id/revoke", "/people/:id/role"]
    ],
    operator: ["/accounts"],
    operatorProven: ["/accounts/:id"]
  })
  expect(Object.values(posts).flat()).toHaveLength(routes.filter(({ method }) => method === "POST").length)
})
