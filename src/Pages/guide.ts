/** The documentation of this version, at `/guide/<page>`: what the build has rendered of `docs/`. */
import { Effect } from "effect"
import { makeFrame } from "../Documents/frame.ts"
import { Html } from "../Documents/html.ts"
import type { PageRoom } from "../Pages.ts"
import { documentRoom, documentsStyle, guidePages, keptReply, redirect } from "./documentation.ts"

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
