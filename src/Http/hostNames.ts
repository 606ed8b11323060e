/**
 * Whether a request names an own host of the server. A web page can give its own host name the server's address (DNS
 * rebinding), and a browser then lets it read what the server answers: the `Host` header still has the page's name.
 */
import type { IncomingHttpHeaders } from "node:http"
import { isIP } from "node:net"
import { Effect } from "effect"
import { ApiError } from "../Domain/ApiError.ts"
import { errorReply } from "./HttpReply.ts"
import type { Respond } from "./respond.ts"

/** The host of a `Host` header in lower case: without its port, the brackets of an IPv6 address, and a dot at the end. */
const hostOf = (header: string): string => {
  const [, ipv6, name = ""] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(header) ?? []
  return (ipv6 ?? name).toLowerCase().replace(/\.$/, "")
}

/**
 * Whether a request calls the server by an IP address, as localhost, or by one of `names`. One without a `Host` header,
 * which HTTP/1.0 allows, comes from no browser.
 */
export const isCalledBy = (names: ReadonlyArray<string>): ((headers: IncomingHttpHeaders) => boolean) => {
  const known = new Set(["localhost", ...names.map((name) => name.toLowerCase())])
  return ({ host }) => host === undefined || isIP(hostOf(host)) !== 0 || known.has(hostOf(host))
}

const misdirected = new ApiError({
  code: "BAD_REQUEST",
  message: "This server does not answer to this host name: call it by its address, or add the name to admin.names."
})

/** Replies 421 to requests for other names. */
export const onlyCalledBy = (names: ReadonlyArray<string>, respond: Respond): Respond => {
  const isKnown = isCalledBy(names)
  return (request, body, requestId, hold) =>
    isKnown(request.headers)
      ? respond(request, body, requestId, hold)
      : Effect.sync(() => ({ ...errorReply(misdirected, requestId), status: 421 }))
}
