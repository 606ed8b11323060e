/** The reference of the API, at `/docs` and `/docs/<page>`: made with the first request for one of its pages. */
import { Effect } from "effect"
import { makeDocument } from "../Documents/document.ts"
import { longestQuery } from "../Documents/frame.ts"
import { makeReference } from "../Documents.ts"
import type { PageRoom } from "../Pages.ts"
import { Settings } from "../Settings.ts"
import { documentReply, documentRoom, documentsStyle, guidePages, keptReply, redirect } from "./documentation.ts"

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
