/**
 * What a page of the portal is made of. `Portal.ts` finds the route of a request, and calls it only once the session, the
 * role, and a form's CSRF token have been checked.
 */
import type { Effect } from "effect"
import type { HttpReply } from "../Http/HttpReply.ts"
import type { StoreUnavailable } from "../Sql.ts"
import type { ProofNeeded, Role, Viewer } from "./Viewer.ts"

/** What was done, said on the page to which a form leads: by the word in its address. */
export const doneTexts = {
  accepted: "The money was accepted.",
  account: "The account is there.",
  allowed: "Saved: what the account may do.",
  cancelled: "The payment was cancelled. What came for it, and what still comes, is an exception.",
  created: "The payment was created. Send its payment link, or the address and the exact amount, to whoever is to pay.",
  invoiced: "The invoice was created. Send its payment link to the customer, who chooses what to pay in.",
  dropped: "The refund was dropped: its money is open again, or counts again.",
  disabled: "Disabled: their sessions are over, and their password and passkeys are removed.",
  enabled: "Enabled: they need a new link to sign in.",
  ended: "The invoice was cancelled, with its open payment.",
  endpoint: "Saved: what the endpoint gets, and where.",
  others: "All was ended but this session. Set a new password or passkey now.",
  passkey: "Saved: your passkeys.",
  password: "Saved: your password.",
  named: "Saved: the transaction of the refund. It is looked up on the chain.",
  refunded: "The refund was recorded.",
  removed: "Removed.",
  revoked: "Revoked: every request with this key is refused.",
  session: "The session is over.",
  role: "Saved: their role.",
  sessions: "All of theirs was ended: they need a new link to sign in.",
  settings: "Saved. New visits to a checkout see it.",
  simulated: "It was sent on the local chain. What comes of it shows here within a few blocks.",
  terms: "Saved: where the key works, and how often."
} as const
export type Done = keyof typeof doneTexts

export interface PortalRequest {
  /** Parameters of the route's path, decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The fields of a posted form; empty for a GET. */
  readonly form: URLSearchParams
  /** The client's IP address. */
  readonly client: string
  readonly requestId: string
}

export type PortalHandler<R> = (
  viewer: Viewer,
  request: PortalRequest
) => Effect.Effect<HttpReply, StoreUnavailable | ProofNeeded, R>

export interface Proof {
  /** `live`: in that mode only. `shared`: as soon as a live chain is configured, since both modes have what it changes. */
  readonly when: "always" | "live" | "shared"
  /** What is about to be done, for the page that asks: "rotate a webhook secret". */
  readonly to: string
}

export interface PortalRoute<R> {
  readonly method: "GET" | "POST"
  /** Below the page's account and mode, e.g. `/payments/:id`; "" is the home page. */
  readonly path: string
  /** The least role that may use it. */
  readonly role: Role
  /** What it needs a proof of identity of the last half hour for, if anything. Of a form, once that is in order: see `Viewer`. */
  readonly proof?: Proof
  readonly handle: PortalHandler<R>
}

const routeBy =
  (method: PortalRoute<never>["method"]) =>
  <R>(path: string, role: Role, handle: PortalHandler<R>, proof?: Proof): PortalRoute<R> => ({
    ...{ method, path, role, handle },
    ...(proof && { proof })
  })

/** The route of a page, and that of a form. */
export const pageRoute = routeBy("GET")
export const formRoute = routeBy("POST")

export const proofTo = (to: string, when: Proof["when"] = "live"): Proof => ({ when, to })

/** The same of a page that says what was done. */
export const afterDone = (viewer: Pick<Viewer, "owner">, path: string, done: Done): string =>
  pathOf(viewer, `${path}?done=${done}`)

/** The address of a page of the viewer's account and mode, for links and redirects: `pathOf(viewer, "/keys")`. */
export const pathOf = ({ owner: { account, mode } }: Pick<Viewer, "owner">, path = ""): string =>
  `/portal/a/${encodeURIComponent(account)}/${mode}${path}`
