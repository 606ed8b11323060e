import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { describe, it } from "vitest"
import { html } from "../../src/Documents/html.ts"
import { type OpenApiDocument, resolve } from "../../src/Documents/openApi.ts"
import { prose } from "../../src/Documents/prose.ts"
import { makeDocuments } from "../../src/Documents.ts"
import { errorCodes } from "../../src/Domain/ApiError.ts"
import { TestApi, testApp } from "../lib/api.ts"

const { openApi, page, style } = makeDocuments({
  publicUrl: "https://pay.example.com",
  limits: { perMinute: 100, perHour: 1_000 }
})
const document: OpenApiDocument = JSON.parse(openApi)

const attributes = (name: string) =>
  Array.from(page.matchAll(new RegExp(`\\s${name}="([^"]*)"`, "g")), ([, v]) => v ?? "")

describe("the reference page", () => {
  const ids = attributes("id")

  it("has an anchor for every operation, event and schema, and a row for every error code", () => {
    const items = [...Object.values(document.paths), ...Object.values(document.webhooks)]
    const operations = items.flatMap((item) => Object.values(item).map(({ operationId }) => operationId))
    expect(operations).toHaveLength(29)
    const schemas = Object.keys(document.components.schemas).filter((name) => !name.startsWith("Error."))
    const sections = [
      "currencies",
      "authentication",
      "errors",
      "rate-limits",
      "idempotency",
      "webhooks",
      "error-codes",
      "main"
    ]
    expect(ids).toEqual(expect.arrayContaining([...operations, ...schemas, ...sections]))
    for (const code of errorCodes) expect(ids).toContain(`error-${code}`)
    expect(new Set(ids).size).toBe(ids.length)
  })

  /** The section with that id. */
  const sectionOf = (id: string) => page.split(`<section class="operation" id="${id}"`)[1]?.split("</section>")[0] ?? ""
  const errorsIn = (text: string) => Array.from(text.matchAll(/href="#error-([A-Z_]+)"/g), ([, code]) => code)

  it("describes each error once, with one example, and lists for an operation only its own", () => {
    for (const code of errorCodes) {
      const examples = page.split("Error codes</a></h2>")[1]?.split(`&quot;code&quot;: &quot;${code}&quot;`)
      expect(examples, code).toHaveLength(2)
    }
    expect(errorsIn(sectionOf("webhooks.remove"))).toEqual(["NOT_FOUND"])
    expect(errorsIn(sectionOf("webhooks.create"))).toEqual(["TOO_MANY_ENDPOINTS", "QUOTA_EXCEEDED"])
    expect(errorsIn(sectionOf("payments.list"))).toEqual(["INVALID_CURSOR"])
    expect(errorsIn(sectionOf("health.ready"))).toEqual([])
    expect(sectionOf("payments.create")).not.toContain("&quot;error&quot;")
    expect(page.length).toBeLessThan(190_000)
  })

  it("lists every possible error of an operation, there or in linked lists", () => {
    const [, table = ""] = page.split("Error codes</a></h2>")
    const shared = (id: string) => errorsIn(table.split(`<dt id="${id}">`)[1]?.split("</dd>")[0] ?? "")
    for (const item of Object.values(document.paths)) {
      for (const { operationId, responses } of Object.values(item)) {
        const possible = Object.values(responses).flatMap((response) => {
          const { content = {} } = resolve(document.components, "responses", response)
          return Object.keys(content["application/json"]?.examples ?? {})
        })
        const section = sectionOf(operationId)
        const linked = Array.from(section.matchAll(/href="#(errors-\w+)"/g), ([, id = ""]) => shared(id)).flat()
        const listed = [...errorsIn(section), ...linked]
        expect(listed.toSorted(), operationId).toEqual(errorCodes.filter((code) => possible.includes(code)).toSorted())
      }
    }
  })

  it("has no broken links", () => {
    const targets = attributes("href")
    for (const target of targets.filter((href) => href.startsWith("#"))) expect(ids).toContain(target.slice(1))
    expect(targets.filter((href) => !href.startsWith("#")).sort()).toEqual([
      "docs/style.css",
      "guide/index",
      "openapi.json"
    ])
  })

  it("loads only its stylesheet, and runs nothing", () => {
    expect(page).not.toMatch(/<(script|img|iframe|object|embed|form|base)\b|\sstyle="|\son\w+="|\ssrc="/)
    expect(style).not.toMatch(/url\(|@import|https?:/)
  })

  it("escapes text, and closes every element", () => {
    expect(html`<p>${`<b a="1">&`}${[1, html`<i>`]}</p>`.text).toBe("<p>&lt;b a=&quot;1&quot;&gt;&amp;1<i></p>")
    expect(page).not.toMatch(/\[object Object\]|undefined|NaN/)
    for (const name of "section details summary dl dd dt p pre code ul li a figure".split(" ")) {
      const count = (pattern: string) => page.match(new RegExp(pattern, "g"))?.length
      expect(count(`<${name}[\\s>]`), name).toBe(count(`</${name}>`))
    }
  })
})

it("prose renders paragraphs, lists, fences and code", () => {
  expect(prose("a `b`\nc\n\n- d\n- e\n\n```js\nf\n\ng\n```\n\nh").text).toBe(
    '<p>a <code>b</code>\nc</p><ul><li>d</li><li>e</li></ul><pre tabindex="0" role="region" aria-label="Example"><code>f\n\ng</code></pre><p>h</p>'
  )
})

layer(testApp(), { excludeTestServices: true })("a server", (it) => {
  it.effect("serves page, stylesheet and document without a key, with a policy that allows only the stylesheet", () =>
    Effect.gen(function* () {
      const { call } = yield* TestApi
      const answered = yield* call("GET", "/docs")
      expect(answered.headers["content-type"]).toBe("text/html; charset=utf-8")
      expect(answered.headers["content-security-policy"]).toBe(
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
      )
      expect(answered.headers["x-content-type-options"]).toBe("nosniff")
      expect(answered.text).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/)
      const css = yield* call("GET", "/docs/style.css")
      expect([css.headers["content-type"], css.text]).toEqual(["text/css; charset=utf-8", style])
      const json = yield* call("GET", "/openapi.json")
      expect(json.headers["content-type"]).toBe("application/json")
      expect(json.body.servers).toEqual([{ url: "http://127.0.0.1:8080", description: "This installation" }])
      expect(yield* call("GET", "/openapi.json")).toMatchObject({ text: json.text })
    })
  )
})
