/** Serves the API's reference and the guide, which the build has rendered: public, and the same for everybody. */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { type HttpReply, revalidated } from "../Http/HttpReply.ts"
import type { PageRoom } from "../Pages.ts"
import { assetsFolder } from "./assets.ts"
import { errorPage } from "./reply.tsx"

/** Scalar writes its styles into the page, and hashes with WebAssembly. Neither gives it `eval` or another host. */
const policies = {
  docs: "script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; connect-src 'self'",
  guide: "style-src 'self'"
}

/** Caches may keep a page, and ask whether it has changed. */
const pageReply = (text: string, policy: string): HttpReply => ({
  status: 200,
  headers: {
    ...revalidated(text),
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; ${policy}; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff"
  },
  text
})

let kept: WeakRef<Buffer> | undefined

/**
 * Scalar's script. The build has compressed it, and every browser takes gzip; the page names it with its hash. Requests at
 * the same time share it, and nothing keeps it: it is a megabyte for a page that few ask for.
 */
const scriptReply = (): HttpReply => {
  const bytes = kept?.deref() ?? readFileSync(`${assetsFolder()}/scalar.js.gz`)
  kept = new WeakRef(bytes)
  return {
    status: 200,
    headers: {
      "content-type": "text/javascript; charset=utf-8",
      "content-encoding": "gzip",
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff"
    },
    text: "",
    bytes: [bytes]
  }
}

const redirect = (location: string): HttpReply => ({ status: 302, headers: { location }, text: "" })

const otherReplies: Readonly<Record<string, () => HttpReply>> = {
  "/docs/": () => redirect("../docs"),
  "/docs/scalar.js": scriptReply,
  "/guide": () => redirect("guide/index")
}

/** Answers the requests below the prefix of that name. */
const makeRoom = (name: keyof typeof policies): Effect.Effect<PageRoom> =>
  Effect.sync(() => {
    const pages: Readonly<Record<string, string>> = JSON.parse(readFileSync(`${assetsFolder()}/${name}.json`, "utf8"))
    const replies = new Map(Object.entries(pages).map(([path, text]) => [path, pageReply(text, policies[name])]))
    const [start = "/"] = replies.keys()
    const failure = (status: number, title: string, text: string, headers = {}) =>
      errorPage("checkout", { status, title, text, headers, onward: { href: start, text: "Go to the first page" } })
    return ({ method, path }) =>
      Effect.sync(() => {
        if (method !== "GET" && method !== "HEAD") {
          return failure(405, "Method not allowed", "This page takes GET, HEAD.", { allow: "GET, HEAD" })
        }
        return replies.get(path) ?? otherReplies[path]?.() ?? failure(404, "Not found", "There is no such page.")
      })
  })

export const makeDocs = makeRoom("docs")

export const makeGuide = makeRoom("guide")
