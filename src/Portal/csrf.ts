import { createHmac, timingSafeEqual } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"

/** What every form of a session sends back: it follows from the session's secret, which no other site can read. */
export const csrfTokenOf = (secret: string): string => createHmac("sha256", secret).update("csrf").digest("base64url")

/** Whether a form came with its session's token. */
export const hasCsrfToken = (secret: string, form: URLSearchParams): boolean => {
  const expected = Buffer.from(csrfTokenOf(secret))
  const given = Buffer.from(form.get("csrf") ?? "")
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/**
 * Whether a form was sent from a page of this origin: `public_url`'s, or the one that the browser asked for. Browsers that
 * leave `Origin` out, or send `null` for a page without referrers, say it in `Sec-Fetch-Site`.
 */
export const isSameOrigin = ({ host, origin, ...headers }: IncomingHttpHeaders, publicUrl: string): boolean => {
  if (origin === undefined || origin === "null") return headers["sec-fetch-site"] === "same-origin"
  if (!URL.canParse(origin)) return false
  const from = new URL(origin)
  const own = new URL(publicUrl)
  return from.protocol === own.protocol && (from.host === own.host || from.host === host?.toLowerCase())
}
