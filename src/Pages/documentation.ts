/**
 * Answers for rooms of rendered pages, the reference and the guide: public, without scripts, and with the navigation also
 * where there is nothing.
 */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { makeDocument } from "../Documents/document.ts"
import { type Frame, type Heading, Html, html, longestQuery, makeFrame } from "../Documents/html.ts"
import { makeReference } from "../Documents.ts"
import { type HttpReply, revalidated } from "../Http/HttpReply.ts"
import type { PageRoom } from "../Pages.ts"
import { Settings } from "../Settings.ts"
import { assets, assetsFolder } from "./assets.ts"

const headers = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

/** A page that no cache may store. */
const documentReply = (text: string, status = 200): HttpReply => ({ status, headers, text })

/** A page that is the same for everybody, encoded once. */
const keptReply = (text: string): HttpReply => ({
  status: 200,
  headers: { ...headers, ...revalidated(text) },
  text,
  bytes: [Buffer.from(text)]
})

/** Sends a browser to another page. */
export const redirect = (location: string): HttpReply => ({ status: 302, headers: { location }, text: "" })

/** A page of the guide, of the project's own Markdown. */
interface GuidePage {
  readonly title: string
  readonly headings: ReadonlyArray<Heading>
  readonly html: string
}

/** The guide's pages by name, as the build has rendered them. */
const guidePages = (): Readonly<Record<string, GuidePage>> =>
  JSON.parse(readFileSync(`${assetsFolder()}/guide.json`, "utf8"))

/** The path of the stylesheet, from the root. */
export const documentsStyle = (): string => assets().documentsStyle().slice(1)

/** From a page to the root. A deeper path is no page's, and may be as deep as a request is long. */
const upFrom = (path: string): string => ["", "../"][path.split("/").length - 2] ?? "/"

const takes = "GET, HEAD"

/** Answers the requests of a room by their path. */
const documentRoom =
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

/** The guide's pages and their headings, for the search. */
const findableGuide = () =>
  Object.entries(guidePages()).flatMap(([name, { headings, title }]) => [
    { href: `guide/${name}`, title, label: "Guide" },
    ...headings.map((heading) => ({
      href: `guide/${name}#${heading.id}`,
      title: heading.title,
      label: `Guide: ${title}`
    }))
  ])

/** Answers the requests below its prefix. */
export const makeDocs: Effect.Effect<PageRoom, never, Settings> = Effect.map(Settings, ({ limits, server }) => {
  const document = makeDocument({ publicUrl: server.publicUrl.replace(/\/$/, ""), limits })
  const { frame, pages, search } = makeReference(document, { style: documentsStyle(), guide: findableGuide() })
  const replies = new Map(Array.from(pages, ([path, text]) => [path, keptReply(text)]))
  replies.set("/docs/", redirect("../docs"))
  return documentRoom(frame, (path, query) => {
    if (path !== "/docs/search") return replies.get(path)
    const q = new URLSearchParams(query).get("q") ?? ""
    return documentReply(search(q), q.length > longestQuery ? 400 : 200)
  })
})

/** Answers the requests below its prefix. */
export const makeGuide: Effect.Effect<PageRoom> = Effect.sync(() => {
  const all = Object.entries(guidePages())
  const links = all.map(([name, page]) => ({ ...page, href: `guide/${name}` }))
  const frame = makeFrame(documentsStyle(), [
    { title: "Guide", links: links.toSorted(({ title }, other) => title.localeCompare(other.title, "en")) },
    { title: "More", links: [{ href: "docs", title: "API reference" }] }
  ])
  const pages = all.map(([name, { html, title }]) => {
    const href = `guide/${name}`
    return [`/${href}`, keptReply(frame({ title, href, up: "../", content: new Html(html) }))] as const
  })
  const replies = new Map([["/guide", redirect("guide/index")], ...pages])
  return documentRoom(frame, (path) => replies.get(path))
})
