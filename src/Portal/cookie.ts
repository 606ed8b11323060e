import type { IncomingHttpHeaders } from "node:http"
import { cookieOf } from "../Pages/cookies.ts"

/** The cookie that holds a session's secret. */
export interface SessionCookie {
  readonly read: (headers: IncomingHttpHeaders) => string | undefined
  /** Values of the `Set-Cookie` header. */
  readonly set: (secret: string) => string
  readonly clear: string
}

/**
 * Over https the browser holds the cookie to this host alone, by its name (RFC 6265bis, 4.1.3.2). Over http, on the
 * operator's own machine, such a name is refused. It lasts as long as the browser does; the store knows when it ends.
 */
export const sessionCookie = (publicUrl: string): SessionCookie => {
  const isSecure = publicUrl.startsWith("https:")
  const name = isSecure ? "__Host-tilld" : "tilld"
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`
  return {
    read: ({ cookie }) => cookieOf(cookie, name),
    set: (secret) => `${name}=${secret}; ${attributes}`,
    clear: `${name}=; ${attributes}; Max-Age=0`
  }
}
