import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { changeShop } from "../../src/Auth/shops.ts"
import { defaultAccount } from "../../src/Auth.ts"
import { Settings } from "../../src/Settings.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"

let orders = 0

const checkout = Effect.gen(function* () {
  const { call, newKey } = yield* TestApi
  const json = { merchantRef: `order ${++orders}`, amount: "1000", currency: "ETH", chain: "base" }
  const { body } = yield* call("POST", "/v1/payments", { key: yield* newKey(), json })
  const path = new URL(body.checkoutUrl).pathname
  return { path, get: (part = "") => call("GET", path + part) }
})

liveSuite(testApp(), "the look of a shop", (test) => {
  test("is on its checkout, escaped, and the sites it names may frame it", function* () {
    const { get, path } = yield* checkout
    const plain = yield* get()
    expect(plain.headers["content-security-policy"]).toContain("frame-ancestors 'none'")
    expect((yield* get("/theme.css")).status).toBe(404)
    expect((yield* get("/logo")).status).toBe(404)

    const frameOrigins = ["https://shop.example", "http://localhost:3000"]
    yield* changeShop(defaultAccount, {
      name: "Ann & <i>Bob</i>",
      accent: "#1f5fd1",
      logo: "shop.svg",
      frameOrigins
    })
    const page = yield* get()
    expect(page.text).toContain("Ann &amp; &lt;i>Bob&lt;/i>")
    expect(page.text).toContain(`href="${path}/theme.css"`)
    expect(page.text).toContain(`src="${path}/logo"`)
    expect(page.headers["content-security-policy"]).toMatch(
      /frame-ancestors https:\/\/shop\.example http:\/\/localhost:3000$/
    )
    const css = yield* get("/theme.css")
    expect(css).toMatchObject({ status: 200, headers: { "content-type": "text/css; charset=utf-8" } })
    expect(css.text).toContain("--accent:#1f5fd1")
  })

  test("has the operator's image as its logo, which can do nothing when it is opened by itself", function* () {
    const { get } = yield* checkout
    const { logoFolder } = (yield* Settings).checkout
    yield* changeShop(defaultAccount, { logo: "shop.svg" })
    expect((yield* get("/logo")).status).toBe(404)
    mkdirSync(logoFolder, { recursive: true })
    writeFileSync(join(logoFolder, "shop.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>")
    const logo = yield* get("/logo")
    expect(logo).toMatchObject({ status: 200, text: "<svg xmlns='http://www.w3.org/2000/svg'/>" })
    expect(logo.headers["content-type"]).toBe("image/svg+xml")
    expect(logo.headers["content-security-policy"]).toContain("sandbox")
    writeFileSync(join(logoFolder, "shop.svg"), Buffer.alloc(256 * 1024 + 1))
    expect((yield* get("/logo")).status).toBe(404)
  })

  test("of another path is not there", function* () {
    const { get } = yield* checkout
    for (const part of ["/logo/", "/theme", "/theme.css/x", "/..%2flogo"]) expect((yield* get(part)).status).toBe(404)
  })
})
