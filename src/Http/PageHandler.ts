/**
 * The kernel's interface to pages: a path that belongs to a page is answered by it alone, without the API's checks
 * (key, rate limit, JSON). `Pages.ts` finds them, `respond.ts` calls them.
 */
import type { IncomingHttpHeaders } from "node:http"
import type { Effect } from "effect"
import type { Body } from "./body.ts"
import type { HttpReply } from "./HttpReply.ts"

/** Lets a request wait. Its connection may be closed meanwhile if another client needs one. */
export type Hold = <A>(wait: Effect.Effect<A>) => Effect.Effect<A>

/** An unchecked request for a page. */
export interface PageRequest {
  readonly method: string
  /** As sent, still percent-encoded. */
  readonly path: string
  /** The query string, without the question mark. */
  readonly search: string
  /** Names in lower case, as Node provides them. */
  readonly headers: IncomingHttpHeaders
  /** Undefined when it was larger than the limit. */
  readonly body: Body
  /** The client's IP address, behind the operator's own proxies. */
  readonly client: string
  readonly requestId: string
  readonly hold: Hold
  /** Says that its cookies are those of somebody who is signed in: the next requests with them come before strangers'. */
  readonly recognised: () => void
}

/** A path as the metrics name it. */
export interface ObservedRoute {
  /** With parameters by name, e.g. `/pay/:token`. */
  readonly path: string
  /** The methods it takes. */
  readonly operations: { readonly has: (method: string) => boolean }
}

export interface Page {
  readonly route: ObservedRoute
  /** Never fails: an error is a page too. */
  readonly reply: (request: PageRequest) => Effect.Effect<HttpReply>
  /** Sent instead while there are too many requests. */
  readonly overloaded: Effect.Effect<HttpReply>
}

/** Finds the page of a path; undefined when the path is the API's. */
export type Pages = (path: string) => Page | undefined
