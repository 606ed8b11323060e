import { createHmac, timingSafeEqual } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { parseUrl } from "../lib/Url.ts"

/** What every form of a session sends back: it follows from the session's secret, which no other site can read. */
export const csrfTokenOf = (secret: string): string => createHmac("sha256", secret).update("csrf").digest("base64url")

/** Whether a form came with its session's token. */
export const hasCsrfToken = (secret: string, form: URLSearchParams): boolean => {
  const expected = Buffer.from(csrfTokenOf(secret))
  const given = Buffer.from(form.get("csrf") ?? "")
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const loopback = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Whether a form was sent from a page of this origin: `public_url`'s, or the one that the browser asked for, over https or
 * on this machine. Over http another site could give its own name this machine's address (DNS rebinding). Browsers that leave `Origin` out, or send `null` for a page without referrers, say it in `Sec-Fetch-Site`.
 */
export const isSameOrigin = ({ host, origin, ...headers }: IncomingHttpHeaders, publicUrl: string): boolean => {
  if (origin === undefined || origin === "null") return headers["sec-fetch-site"] === "same-origin"
  const from = parseUrl(origin)
  if (from === undefined) return false
  const own = new URL(publicUrl)
  if (from.protocol !== own.protocol) return false
  const isSafe = from.protocol === "https:" || loopback.has(from.hostname)
  return from.host === own.host || (isSafe && from.host === host?.toLowerCase())
}
