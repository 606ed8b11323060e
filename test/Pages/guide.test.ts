import { readdirSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { request } from "undici"
import { TestApi, testApp } from "../lib/api.ts"
import { signIn } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { root } from "../lib/tilld.ts"

const pages = ["security", "contributing", "changelog"].concat(
  readdirSync(join(root, "docs")).flatMap((file) => (file.endsWith(".md") ? [file.slice(0, -".md".length)] : []))
)

/** The targets of a page's links. */
const linksOf = (text: string) => [...text.matchAll(/ href="([^"]+)"/g)].map(([, href = ""]) => href)

liveSuite(testApp(), "the documentation that a daemon serves", (test) => {
  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    Effect.flatMap(TestApi, ({ host, port }) =>
      Effect.promise(async () => {
        const {
          body,
          headers: answered,
          statusCode: status
        } = await request(`http://${host}:${port}${path}`, { headers })
        return { status, headers: answered, text: await body.text() }
      })
    )

  test("has every page of docs, and no link on them leads nowhere", function* () {
    const texts = new Map<string, string>()
    for (const page of pages) {
      const { headers, status, text } = yield* get(`/guide/${page}`)
      expect([page, status]).toEqual([page, 200])
      expect(text).toMatch(/<h1 id="[^"]+">/)
      expect(text).not.toContain("<script")
      expect(headers["content-security-policy"]).toContain("default-src 'none'")
      texts.set(`/guide/${page}`, text)
    }
    const broken: Array<string> = []
    for (const [page, text] of texts) {
      for (const href of linksOf(text)) {
        const { hash, origin, pathname } = new URL(href, `http://tilld${page}`)
        if (origin !== "http://tilld" || ["/docs", "/openapi.json"].includes(pathname)) continue
        if (pathname.startsWith("/assets/")) continue
        const target = texts.get(pathname)
        const isThere = hash === "" || hash === "#main" || target?.includes(`id="${hash.slice(1)}"`)
        if (target === undefined || !isThere) broken.push(`${page}: ${href}`)
      }
    }
    expect(broken).toEqual([])
  })

  test("begins with the index, is not sent again to a client that has it, and is a 404 elsewhere", function* () {
    const start = yield* get("/guide")
    expect([start.status, start.headers["location"]]).toEqual([302, "guide/index"])
    const index = yield* get("/guide/index")
    expect(index.text).toContain("All pages")
    const etag = String(index.headers["etag"])
    expect((yield* get("/guide/index", { "if-none-match": etag })).status).toBe(304)
    for (const path of ["/guide/", "/guide/nothing", "/guide/..%2f..%2fpackage", "/guide/__proto__"]) {
      expect((yield* get(path)).status).toBe(404)
    }
    const api = yield* TestApi
    for (const method of ["POST", "PUT", "DELETE"]) {
      expect((yield* api.call(method, "/guide/index")).status).toBe(405)
    }
    expect(linksOf((yield* get("/docs")).text)).toContain("guide/integrate")
  })

  test("is linked to by each section of the portal, by its topic", function* () {
    const { host, port } = yield* TestApi
    const operator = yield* signIn({ host, port }, {})
    const home = "/portal/a/default/test"
    const sections = linksOf((yield* operator.get(home)).text).filter((href) => href.startsWith(`${home}/`))
    expect(sections.length).toBeGreaterThan(10)
    const guides = new Set<string>()
    for (const section of sections) {
      const [guide = ""] = linksOf((yield* operator.get(section)).text).filter((href) => href.startsWith("/guide/"))
      expect(pages, section).toContain(guide.slice("/guide/".length))
      guides.add(guide)
    }
    expect(guides.size).toBeGreaterThan(6)
  })
})
