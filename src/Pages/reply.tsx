/**
 * Replies of pages: HTML with the headers that every page has, redirects after a form, and pages of errors. Components are
 * written in TSX and rendered on the server; Preact escapes what is put into them.
 */

import { extname } from "node:path"
import type { ComponentChildren, VNode } from "preact"
import { render } from "preact-render-to-string"
import type { HttpReply } from "../Http/HttpReply.ts"
import { type AssetRoom, type AssetUrls, assets } from "./assets.ts"

const imageTypes: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webp": "image/webp",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg"
}

/** Not permanently: the shop may change it. */
export const lookHeaders = {
  "cache-control": "private, max-age=300",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer"
}

/** An SVG that is opened by itself could have scripts. */
const inert = { "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox" }

/** The logo of a checkout. `name`: that of its file. */
export const logoReply = (name: string, bytes: Buffer): HttpReply => ({
  status: 200,
  headers: { ...lookHeaders, ...inert, "content-type": imageTypes[extname(name).toLowerCase()] ?? "" },
  text: "",
  bytes: [bytes]
})

type Headers = Readonly<Record<string, string>>

/** Origins that may show the page in a frame, none unless given; and the one that its forms may lead to, its own unless given. */
interface Policy {
  readonly frameAncestors?: ReadonlyArray<string>
  readonly formAction?: string
}

/** Nothing from another host, no inline script or style, and no form that leads elsewhere. */
const contentSecurityPolicy = ({ formAction = "'self'", frameAncestors = [] }: Policy = {}): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    `form-action ${formAction}`,
    "base-uri 'none'",
    `frame-ancestors ${frameAncestors.length === 0 ? "'none'" : frameAncestors.join(" ")}`
  ].join("; ")

const pageHeaders = (policy?: Policy): Headers => ({
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": contentSecurityPolicy(policy),
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), microphone=(), geolocation=()"
})

export interface PageOptions extends Policy {
  /** Default 200. */
  readonly status?: number
  readonly headers?: Headers
}

/** A whole document as a reply. No cache may store it unless `headers` says so. */
export const pageReply = (document: VNode, { headers, status = 200, ...policy }: PageOptions = {}): HttpReply => ({
  status,
  headers: { ...pageHeaders(policy), ...headers },
  text: `<!doctype html>${render(document)}`
})

/** Sends the browser to a path of this origin with a GET, after a form. */
export const seeOther = (path: string, headers: Headers = {}): HttpReply => ({
  status: 303,
  headers: { ...pageHeaders(), ...headers, location: path },
  text: ""
})

interface DocumentProps {
  /** BCP 47 language tag. */
  readonly lang: string
  readonly title: string
  readonly assets: AssetUrls
  /** More elements of the head. */
  readonly head?: ComponentChildren
  readonly bodyClass?: string
  readonly children: ComponentChildren
}

/** The frame of every page: title, stylesheet, and the script, which the page also works without. */
export const Document = ({ assets, bodyClass, children, head, lang, title }: DocumentProps) => (
  <html lang={lang}>
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <meta name="robots" content="noindex" />
      <title>{title}</title>
      <link rel="stylesheet" href={assets.style} />
      <link rel="icon" href="data:," />
      {head}
      <script type="module" src={assets.script} />
    </head>
    <body class={bodyClass}>{children}</body>
  </html>
)

export interface ErrorText {
  readonly lang?: string
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly title: string
  /** What happened and what to do. */
  readonly text: string
  /** Where to go on. */
  readonly onward?: { readonly href: string; readonly text: string } | undefined
}

/** A page that says what went wrong; in the log it is found by `requestId`, unless there is nothing to find. */
export const errorPage = (
  room: AssetRoom,
  { headers, lang = "en", onward, status, text, title }: ErrorText,
  requestId?: string
): HttpReply =>
  pageReply(
    <Document lang={lang} title={title} assets={assets().urls(room)} bodyClass="error-page">
      <main>
        <h1>{title}</h1>
        <p>{text}</p>
        {onward && (
          <p>
            <a class="button primary" href={onward.href}>
              {onward.text}
            </a>
          </p>
        )}
        {requestId && (
          <p class="request-id">
            Request: <code>{requestId}</code>
          </p>
        )}
      </main>
    </Document>,
    { status, ...(headers === undefined ? {} : { headers }) }
  )
