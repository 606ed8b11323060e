/**
 * The documentation of this version, at `/guide/<page>`: what the build has rendered of `docs/`, with the style of the API's
 * reference. Public, without scripts, and loaded with the first such request.
 */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { Html, html } from "../Documents/html.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import { revalidated } from "../Http/revalidation.ts"
import type { PageRoom } from "../Pages.ts"
import { assetsFolder } from "./assets.ts"
import { errorPage } from "./ErrorPage.tsx"

interface GuidePage {
  readonly title: string
  /** Of the project's own Markdown. */
  readonly html: string
}

const headers = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

const render = ({ html: body, title }: GuidePage): HttpReply => {
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · tilld</title>
<link rel="stylesheet" href="../docs/style.css">
</head>
<body class="guide">
<a class="skip" href="#main">Skip to the page</a>
<nav aria-label="Documentation"><a href="index">All pages</a> <a href="../docs">API reference</a></nav>
<main id="main">
${new Html(body)}
</main>
</body>
</html>
`
  return { status: 200, headers: { ...headers, ...revalidated(text) }, text }
}

/** The pages by name, rendered once. */
const readPages = (): ReadonlyMap<string, HttpReply> => {
  const pages: Readonly<Record<string, GuidePage>> = JSON.parse(readFileSync(`${assetsFolder()}/guide.json`, "utf8"))
  return new Map(Object.entries(pages).map(([name, page]) => [name, render(page)]))
}

const takes = "GET, HEAD"

/** Answers the requests below its prefix. */
export const makeGuide: Effect.Effect<PageRoom> = Effect.sync(() => {
  const pages = readPages()
  return ({ method, path, requestId }) =>
    Effect.sync(() => {
      if (method !== "GET" && method !== "HEAD") {
        const text = {
          status: 405,
          title: "Method not allowed",
          text: `This page takes ${takes}.`,
          headers: { allow: takes }
        }
        return errorPage("checkout", text, requestId)
      }
      // Links are relative, so that they work behind a proxy that serves tilld below a path.
      if (path === "/guide") return { status: 302, headers: { location: "guide/index" }, text: "" }
      const found = pages.get(path.slice("/guide/".length))
      return (
        found ?? errorPage("checkout", { status: 404, title: "Not found", text: "There is no such page." }, requestId)
      )
    })
})
