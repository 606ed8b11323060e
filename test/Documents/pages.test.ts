import { gunzipSync } from "node:zlib"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { request } from "undici"
import { makeDocument } from "../../src/Documents.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { problemsOf } from "../lib/axe.ts"
import { visitor } from "../lib/browser.ts"
import { liveSuite } from "../lib/scopedTest.ts"

const { paths } = makeDocument({ publicUrl: "https://pay.example.com", limits: { perMinute: 100, perHour: 1_000 } })
const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, { summary = "" }]) => ({ route: `${method.toUpperCase()} ${path}`, summary }))
)

const origin = Effect.map(TestApi, ({ host, port }) => `http://${host}:${port}`)

/** A visitor on a page, and what the browser has to say about it. */
const visit = (path: string, options: { readonly javaScriptEnabled: boolean }) =>
  Effect.gen(function* () {
    const base = yield* origin
    const { context, strayed } = yield* visitor(base, { viewport: { width: 1280, height: 900 }, ...options })
    const page = yield* Effect.promise(() => context.newPage())
    // Chromium's console is silent about an eval that was refused and caught.
    const report = `addEventListener("securitypolicyviolation", (of) => console.error(of.violatedDirective, of.blockedURI))`
    yield* Effect.promise(() => page.addInitScript(report))
    const complaints: Array<string> = []
    const asked: Array<string> = []
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text())
    })
    page.on("pageerror", (error) => complaints.push(error.message))
    page.on("request", (sent) => asked.push(sent.url()))
    yield* Effect.promise(() => page.goto(base + path))
    return { page, strayed, complaints, asked }
  })

liveSuite(testApp(), "the reference", (test) => {
  test("shows all operations and opens one, asks this origin alone, and needs no more than its policy allows", function* () {
    const base = yield* origin
    const { asked, complaints, page, strayed } = yield* visit("/docs", { javaScriptEnabled: true })
    yield* Effect.promise(async () => {
      const contents = page.getByRole("navigation").first()
      await contents.getByText("Is the process alive?").waitFor()
      const shown = await contents.textContent()
      expect(operations.filter(({ summary }) => shown?.includes(summary) !== true)).toEqual([])
      await contents.getByText("Create a payment", { exact: true }).click()
      await page.waitForURL("**/docs#tag/payments/post/v1/payments")
      await page.getByText("--header 'X-API-Key:").first().waitFor()
      expect(await page.getByText("QUOTE_EXPIRED").count()).toBeGreaterThan(0)
      expect(await page.getByText("Test Request").count()).toBe(0)
      expect(await page.locator(".scalar-reference-intro-auth:visible").count()).toBe(0)
    })
    expect(complaints).toEqual([])
    expect(strayed).toEqual([])
    expect(asked.map((url) => url.slice(base.length).replace(/\?[0-9a-f]{16}$/, "?hash")).sort()).toEqual([
      "/docs",
      "/docs/scalar.js?hash",
      "/openapi.json"
    ])
  })

  test("is a list of all operations without JavaScript, with links to the guide and the document", function* () {
    const base = yield* origin
    const { asked, page } = yield* visit("/docs", { javaScriptEnabled: false })
    yield* Effect.promise(async () => {
      const listed = await page.getByRole("listitem").allInnerTexts()
      expect(listed).toEqual(operations.map(({ route, summary }) => `${route} ${summary}`))
      const links = await page.getByRole("link").all()
      const targets = await Promise.all(links.map((link) => link.getAttribute("href")))
      expect(targets).toEqual(["openapi.json", "guide/integrate"])
    })
    expect(asked.map((url) => url.slice(base.length))).toEqual(["/docs", expect.stringMatching(/^\/assets\/.*\.css$/)])
  })

  test("has nothing in that list that axe finds, which runs scripts", function* () {
    const { page } = yield* visit("/guide/index", { javaScriptEnabled: true })
    const problems = yield* Effect.promise(async () => {
      await page.route("**/docs", async (route) => {
        const response = await route.fetch()
        const body = (await response.text()).replace(/<\/?noscript>|<script.*?<\/script>/g, "")
        await route.fulfill({ response, body })
      })
      await page.goto(new URL("/docs", page.url()).href)
      expect(await page.getByRole("listitem").count()).toBe(operations.length)
      return problemsOf(page)
    })
    expect(problems).toEqual([])
  })

  test("has a policy without other hosts and eval, and a script that is sent once", function* () {
    const { call } = yield* TestApi
    const page = yield* call("GET", "/docs")
    expect(page.headers["content-type"]).toBe("text/html; charset=utf-8")
    expect(page.headers["content-security-policy"]).toBe(
      "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
    expect(page.text).not.toMatch(/https?:/)
    const url = `${yield* origin}/docs/scalar.js`
    const script = yield* Effect.promise(() => request(url))
    expect(script.headers).toMatchObject({
      "content-type": "text/javascript; charset=utf-8",
      "content-encoding": "gzip",
      "cache-control": "public, max-age=31536000, immutable",
      "x-content-type-options": "nosniff"
    })
    const text = gunzipSync(yield* Effect.promise(() => script.body.arrayBuffer())).toString()
    expect(text).toContain("@scalar/api-reference")
  })

  test("answers what is no page by one that leads to it", function* () {
    const { call } = yield* TestApi
    for (const [method, path, status] of [
      ["GET", "/docs/nothing", 404],
      ["GET", "/docs/__proto__", 404],
      ["GET", "/docs/%00", 404],
      ["GET", "/docs/a/b/c", 404],
      ["POST", "/docs", 405],
      ["DELETE", "/docs/scalar.js", 405]
    ] as const) {
      const answered = yield* call(method, path)
      expect([path, answered.status]).toEqual([path, status])
      expect(answered.headers["allow"]).toBe(status === 405 ? "GET, HEAD" : undefined)
      expect(answered.headers["cache-control"]).toBe("no-store")
      expect(answered.text).toContain('href="/docs"')
    }
    const slash = yield* call("GET", "/docs/")
    expect([slash.status, slash.headers["location"]]).toEqual([302, "../docs"])
  })

  test("its guide has nothing that axe finds, and folds its contents on a phone", function* () {
    const base = yield* origin
    const { complaints, page, strayed } = yield* visit("/guide/architecture", { javaScriptEnabled: true })
    yield* Effect.promise(async () => {
      for (const path of ["/guide/architecture", "/guide/webhooks", "/guide/index"]) {
        await page.goto(base + path)
        expect(await problemsOf(page), path).toEqual([])
      }
      await page.setViewportSize({ width: 320, height: 640 })
      const webhooks = page.locator("nav a", { hasText: "Webhooks" })
      expect(await webhooks.isVisible()).toBe(false)
      await page.getByText("Contents", { exact: true }).click()
      await webhooks.click()
      await page.waitForURL("**/guide/webhooks")
      expect(await page.locator("nav [aria-current=page]").textContent()).toBe(await page.locator("h1").textContent())
    })
    expect(complaints).toEqual([])
    expect(strayed).toEqual([])
  })
})
