/**
 * Answers for rooms of rendered pages, the reference and the guide: public, without scripts, and with the navigation also
 * where there is nothing.
 */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import type { Frame, Heading } from "../Documents/frame.ts"
import { html } from "../Documents/html.ts"
import { type HttpReply, revalidated } from "../Http/HttpReply.ts"
import type { PageRoom } from "../Pages.ts"
import { assets, assetsFolder } from "./assets.ts"

const headers = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

/** A page that no cache may store. */
export const documentReply = (text: string, status = 200): HttpReply => ({ status, headers, text })

/** A page that is the same for everybody, encoded once. */
export const keptReply = (text: string): HttpReply => ({
  status: 200,
  headers: { ...headers, ...revalidated(text) },
  text,
  bytes: [Buffer.from(text)]
})

/** Sends a browser to another page. */
export const redirect = (location: string): HttpReply => ({ status: 302, headers: { location }, text: "" })

/** A page of the guide, of the project's own Markdown. */
export interface GuidePage {
  readonly title: string
  readonly headings: ReadonlyArray<Heading>
  readonly html: string
}

/** The guide's pages by name, as the build has rendered them. */
export const guidePages = (): Readonly<Record<string, GuidePage>> =>
  JSON.parse(readFileSync(`${assetsFolder()}/guide.json`, "utf8"))

/** The path of the stylesheet, from the root. */
export const documentsStyle = (): string => assets().documentsStyle().slice(1)

/** From a page to the root. A deeper path is no page's, and may be as deep as a request is long. */
const upFrom = (path: string): string => ["", "../"][path.split("/").length - 2] ?? "/"

const takes = "GET, HEAD"

/** Answers the requests of a room by their path. */
export const documentRoom =
  (frame: Frame, find: (path: string, search: string) => HttpReply | undefined): PageRoom =>
  ({ method, path, search }) =>
    Effect.sync(() => {
      const failure = (status: number, title: string, text: string) =>
        documentReply(frame({ title, up: upFrom(path), content: html`<h1>${title}</h1><p>${text}</p>` }), status)
      if (method !== "GET" && method !== "HEAD") {
        const reply = failure(405, "Method not allowed", `This page takes ${takes}.`)
        return { ...reply, headers: { ...headers, allow: takes } }
      }
      return (
        find(path, search) ??
        failure(404, "Not found", "There is no such page. Search for what you need, or choose a page of the contents.")
      )
    })
