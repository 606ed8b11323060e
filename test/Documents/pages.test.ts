import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { describe, it } from "vitest"
import { makeDocument } from "../../src/Documents/document.ts"
import { html, prose } from "../../src/Documents/html.ts"
import { resolve } from "../../src/Documents/openApi.ts"
import { makeReference } from "../../src/Documents.ts"
import { errorCodes } from "../../src/Domain/ApiError.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { problemsOf } from "../lib/axe.ts"
import { visitor } from "../lib/browser.ts"
import { liveSuite } from "../lib/scopedTest.ts"

const document = makeDocument({ publicUrl: "https://pay.example.com", limits: { perMinute: 100, perHour: 1_000 } })
const { pages, search } = makeReference(document, {
  style: "assets/documents-1.css",
  guide: [{ href: "guide/keys#limits", title: "Limits", label: "Guide: Manage API keys" }]
})

const pageOf = (name: string) => pages.get(name) ?? expect.fail(`there is no ${name}`)
const all = Array.from(pages.values()).join("\n")

const attributes = (text: string, name: string) =>
  Array.from(text.matchAll(new RegExp(`\\s${name}="([^"]*)"`, "g")), ([, value]) => value ?? "")

const operations = [...Object.values(document.paths), ...Object.values(document.webhooks)].flatMap((item) =>
  Object.values(item)
)

describe("the reference", () => {
  it("has a page that lists the others, and one for conventions, for errors, and for each group of operations", () => {
    const groups = document.tags.map(({ name }) => `/docs/${name}`)
    expect([...pages.keys()]).toEqual(["/docs", "/docs/conventions", "/docs/errors", ...groups])
    for (const text of pages.values()) expect(text.length).toBeLessThan(65_000)
  })

  it("has every operation, event, schema, header and error code on exactly one page, and each group's on its own", () => {
    const ids = Array.from(pages.values()).flatMap((text) => attributes(text, "id").filter((id) => id !== "main"))
    expect(operations).toHaveLength(49)
    const schemas = Object.keys(document.components.schemas).filter((name) => !name.startsWith("Error."))
    const headers = Object.keys(document.components.headers).map((name) => `header-${name.toLowerCase()}`)
    const sections = ["currencies", "authentication", "rate-limits", "idempotency", "lists", "webhooks"]
    const codes = errorCodes.map((code) => `error-${code}`)
    const expected = [
      ...operations.map(({ operationId }) => operationId),
      ...schemas,
      ...headers,
      ...sections,
      ...codes
    ]
    for (const id of expected) expect(ids.filter((each) => each === id)).toEqual([id])
    expect(new Set(ids).size).toBe(ids.length)
    for (const { operationId, tags } of operations) {
      expect(attributes(pageOf(`/docs/${tags[0]}`), "id")).toContain(operationId)
    }
  })

  it("marks the open page in its navigation, with the headings of that page, and lists all pages", () => {
    for (const [path, text] of pages) {
      const [, navigation = ""] = /<nav[^>]*>([\s\S]*)<\/nav>/.exec(text) ?? []
      const linked = attributes(navigation, "href").map((href) => new URL(href, `https://tilld${path}`))
      expect(linked.map(({ pathname }) => pathname)).toEqual(expect.arrayContaining([...pages.keys()]))
      const current = Array.from(navigation.matchAll(/href="([^"]*)" aria-current="page"/g), ([, href = ""]) => href)
      expect(current.map((href) => new URL(href, `https://tilld${path}`).pathname)).toEqual([path])
      const own = linked.filter(({ hash }) => hash !== "").map(({ hash }) => hash.slice(1))
      const titled = Array.from(text.matchAll(/<h2><a href="#([^"]*)">/g), ([, id]) => id)
      expect([path, own]).toEqual([path, titled])
    }
  })

  it("has no broken links: each leads to a page and an id of it", () => {
    const elsewhere = ["/assets/documents-1.css", "/docs/search", "/guide/index", "/guide/integrate", "/openapi.json"]
    for (const [path, text] of pages) {
      for (const href of [...attributes(text, "href"), ...attributes(text, "action")]) {
        const { hash, host, pathname } = new URL(href, `https://tilld${path}`)
        expect([host, href.startsWith("/")]).toEqual(["tilld", false])
        if (elsewhere.includes(pathname)) continue
        expect(pages.has(pathname), `${path}: ${href}`).toBe(true)
        if (hash !== "") expect(attributes(pageOf(pathname), "id"), `${path}: ${href}`).toContain(hash.slice(1))
      }
    }
  })

  /** The section with that id. */
  const sectionOf = (id: string) => all.split(`<section id="${id}" class="operation"`)[1]?.split("</section>")[0] ?? ""
  const errorsIn = (text: string) => Array.from(text.matchAll(/href="[^"]*#error-([A-Z_]+)"/g), ([, code]) => code)

  it("describes each error once, with one example, and links all of an operation to it", () => {
    for (const code of errorCodes) {
      expect(pageOf("/docs/errors").split(`&quot;code&quot;: &quot;${code}&quot;`), code).toHaveLength(
        code === "VALIDATION_ERROR" ? 3 : 2
      )
    }
    for (const { operationId, responses } of Object.values(document.paths).flatMap((item) => Object.values(item))) {
      const possible = Object.values(responses).flatMap((response) => {
        const { content = {} } = resolve(document.components, "responses", response)
        return Object.keys(content["application/json"]?.examples ?? {})
      })
      expect(errorsIn(sectionOf(operationId)), operationId).toEqual(
        errorCodes.filter((code) => possible.includes(code))
      )
    }
  })

  it("loads only its stylesheet, and runs nothing", () => {
    expect(all).not.toMatch(/<(script|img|iframe|object|embed|base)\b|\sstyle="|\son\w+="|\ssrc="/)
  })

  it("escapes text, and closes every element", () => {
    expect(html`<p>${`<b a="1">&`}${[1, html`<i>`]}</p>`.text).toBe("<p>&lt;b a=&quot;1&quot;&gt;&amp;1<i></p>")
    expect(all).not.toMatch(/\[object Object\]|undefined|NaN/)
    for (const name of "section details summary dl dd dt p pre code ul li a figure nav search".split(" ")) {
      const count = (pattern: string) => all.match(new RegExp(pattern, "g"))?.length
      expect(count(`<${name}[\\s>]`), name).toBe(count(`</${name}>`))
    }
  })
})

describe("its search", () => {
  const hits = (query: string) => attributes(search(query).split('<ul class="hits">')[1] ?? "", "href")

  it.each([
    ["post /v1/payments", "../docs/payments#payments.create"],
    ["expiresIn", "../docs/payments#payments.create"],
    ["overlapSeconds", "../docs/webhooks#webhooks.change"],
    ["quote_expired", "../docs/errors#error-QUOTE_EXPIRED"],
    ["payment.updated", "../docs/events#payment.updated"],
    ["RateLimit-Reset", "../docs/conventions#header-x-ratelimit-reset"],
    ["manage keys limits", "../guide/keys#limits"]
  ])("finds %s", (query, href) => {
    expect(hits(query)).toContain(href)
  })

  it("finds what has all words, and first what has them in its name", () => {
    expect(hits("cancel payment")[0]).toBe("../docs/payments#payments.cancel")
    expect(hits("cancel zebra")).toEqual([])
  })

  it("says what to do where nothing is looked for or found, or too much is asked", () => {
    expect(search("")).toContain("Type words of an operation")
    expect(search(" \t ")).toContain("Type words of an operation")
    expect(search("zebra")).toContain("Nothing has all of these words. Use fewer of them")
    expect(search("a".repeat(101))).toContain("A search has at most 100 characters")
    expect(search("a".repeat(100))).toContain("Nothing has")
  })

  it("shows at most 20 results and looks for at most 8 words", () => {
    expect(hits("a")).toHaveLength(20)
    expect(search("a")).toMatch(/The first 20 of \d{2,3} results/)
    expect(hits(`${"payment ".repeat(8)}zebra`)).toHaveLength(20)
    expect(search("manage limits")).toContain(">1 result<")
  })

  it("shows what was looked for, escaped, and takes no pattern", () => {
    expect(search('"><b>')).toContain('value="&quot;&gt;&lt;b&gt;"')
    expect(search('"><b>')).not.toContain("<b>")
    expect(hits("paym.nt")).toEqual([])
  })
})

it("prose renders paragraphs, lists, fences and code", () => {
  expect(prose("a `b`\nc\n\n- d\n- e\n\n```js\nf\n\ng\n```\n\nh").text).toBe(
    "<p>a <code>b</code>\nc</p><ul><li>d</li><li>e</li></ul><pre><code>f\n\ng</code></pre><p>h</p>"
  )
})

liveSuite(testApp(), "a server", (test, it) => {
  test("serves pages, stylesheet and document without a key, with a policy for one stylesheet and one form", function* () {
    const { call } = yield* TestApi
    for (const path of [...pages.keys(), "/docs/search", "/docs/search?q=payment&q=x&other=%ff"]) {
      const { headers, status, text } = yield* call("GET", path)
      expect([path, status]).toEqual([path, 200])
      expect(headers["content-type"]).toBe("text/html; charset=utf-8")
      expect(headers["content-security-policy"]).toBe(
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
      )
      expect(headers["x-content-type-options"]).toBe("nosniff")
      expect(text).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/)
      const [style = ""] = attributes(text, "href").filter((href) => href.endsWith(".css"))
      const css = yield* call("GET", new URL(style, `http://tilld${path}`).pathname)
      expect([css.status, css.headers["content-type"]]).toEqual([200, "text/css; charset=utf-8"])
      expect(css.text).not.toMatch(/url\(|@import|https?:/)
    }
    const json = yield* call("GET", "/openapi.json")
    expect(json.headers["content-type"]).toBe("application/json")
    expect(json.body.servers).toEqual([{ url: "http://127.0.0.1:8080", description: "This installation" }])
    expect(yield* call("GET", "/openapi.json")).toMatchObject({ text: json.text })
  })

  test("answers what is no page by a page with the navigation, whose links lead to the pages from there", function* () {
    const { call } = yield* TestApi
    const refusals = [
      ["GET", "/docs/nothing", 404],
      ["GET", "/docs/__proto__", 404],
      ["GET", "/docs/%00", 404],
      ["GET", "/docs/a/b/c", 404],
      ["GET", "/docs/style.css", 404],
      ["GET", `/docs/search?q=${"a".repeat(101)}`, 400],
      ["POST", "/docs", 405],
      ["DELETE", "/docs/payments", 405]
    ] as const
    for (const [method, path, status] of refusals) {
      const answered = yield* call(method, path)
      expect([path, answered.status]).toEqual([path, status])
      expect(answered.headers["allow"]).toBe(status === 405 ? "GET, HEAD" : undefined)
      expect(answered.headers["cache-control"]).toBe("no-store")
      const targets = attributes(answered.text, "href").map((href) => new URL(href, `http://tilld${path}`).pathname)
      expect(targets).toEqual(expect.arrayContaining([...pages.keys()]))
    }
    expect((yield* call("GET", `/docs/${"a/".repeat(2_000)}`)).text.length).toBeLessThan(5_000)
    const slash = yield* call("GET", "/docs/")
    expect([slash.status, slash.headers["location"]]).toEqual([302, "../docs"])
  })

  it.scoped.each([
    [360, ["/docs", "/docs/payments", "/docs/errors", "/docs/events", "/docs/search?q=amount", "/guide/architecture"]],
    [1280, ["/docs", "/docs/payments", "/docs/errors", "/docs/conventions", "/docs/nothing", "/guide/webhooks"]]
  ] as const)("axe finds nothing in either colour scheme, %i pixels wide", ([width, paths]) =>
    Effect.gen(function* () {
      const { host, port } = yield* TestApi
      const origin = `http://${host}:${port}`
      const { context, strayed } = yield* visitor(origin, { viewport: { width, height: 800 } })
      const page = yield* Effect.promise(() => context.newPage())
      for (const path of paths) {
        const problems = yield* Effect.promise(async () => {
          await page.goto(origin + path)
          for (const each of await page.locator("details > summary:visible").all()) await each.click()
          return problemsOf(page)
        })
        expect(problems, path).toEqual([])
      }
      expect(strayed).toEqual([])
    })
  )

  test("the navigation folds on a phone, no page is wider than 320 pixels, and the form searches", function* () {
    const { host, port } = yield* TestApi
    const origin = `http://${host}:${port}`
    const { context } = yield* visitor(origin, { viewport: { width: 320, height: 640 }, javaScriptEnabled: false })
    const page = yield* Effect.promise(() => context.newPage())
    yield* Effect.promise(async () => {
      for (const path of [
        ...pages.keys(),
        "/docs/search?q=a",
        "/docs/nothing",
        "/guide/index",
        "/guide/architecture"
      ]) {
        await page.goto(origin + path)
        const box = await page.locator("html").evaluate((root) => root.scrollWidth)
        expect([path, box]).toEqual([path, 320])
      }
      await page.goto(`${origin}/docs`)
      const quotes = page.locator("nav a", { hasText: "Quotes" })
      expect(await quotes.isVisible()).toBe(false)
      await page.getByText("Contents", { exact: true }).click()
      expect(await quotes.isVisible()).toBe(true)
      await page.getByRole("searchbox").fill("expiresIn")
      await page.getByRole("button", { name: "Search" }).click()
      await page.waitForURL("**/docs/search?q=expiresIn")
      await page.getByRole("link", { name: "Create a payment" }).first().click()
      expect(new URL(page.url()).pathname + new URL(page.url()).hash).toBe("/docs/payments#payments.create")
    })
  })
})
