import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { storeShopChange } from "../../src/Auth/shops.ts"
import { defaultAccount } from "../../src/Auth.ts"
import { Settings } from "../../src/Settings.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { newPayment } from "./newPayment.ts"

const svg = "<svg xmlns='http://www.w3.org/2000/svg'/>"

/** Puts a file into the folder of logos. */
const putLogo = (name: string, content: string | Uint8Array) =>
  Effect.map(Settings, ({ checkout }) => {
    const path = join(checkout.logoFolder, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
  })

const checkout = Effect.map(newPayment({ currency: "ETH" }), ({ page, path }) => ({ path, get: page }))

liveSuite(testApp(), "the look of a shop", (test) => {
  test("is on its checkout, escaped, and the sites it names may frame it", function* () {
    const { get, path } = yield* checkout
    const plain = yield* get()
    expect(plain.headers["content-security-policy"]).toContain("frame-ancestors 'none'")
    expect((yield* get("/theme.css")).status).toBe(404)
    expect((yield* get("/logo")).status).toBe(404)

    yield* putLogo("shop.svg", svg)
    const frameOrigins = ["https://shop.example", "http://localhost:3000"]
    yield* storeShopChange(defaultAccount, {
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
    yield* putLogo("shop.svg", svg)
    yield* storeShopChange(defaultAccount, { logo: "shop.svg" })
    yield* putLogo("SHOP.SVG", svg)
    for (const name of ["SHOP.SVG", "shop.svg"]) {
      yield* storeShopChange(defaultAccount, { logo: name })
      const logo = yield* get("/logo")
      expect(logo).toMatchObject({ status: 200, text: svg })
      expect(logo.headers["content-type"]).toBe("image/svg+xml")
      expect(logo.headers["content-security-policy"]).toContain("sandbox")
    }
    yield* putLogo("shop.svg", Buffer.alloc(256 * 1024 + 1))
    expect((yield* get("/logo")).status).toBe(404)
  })

  test("is refused a logo that cannot be shown, with what there is", function* () {
    const { newAccount } = yield* TestApi
    const { logoFolder } = (yield* Settings).checkout
    const account = yield* newAccount("Other")
    yield* putLogo("top.svg", svg)
    const refusal = (logo: string, of = account) =>
      Effect.map(Effect.flip(storeShopChange(of, { logo })), (error) => error.message)
    const within = `checkout.logo_folder/${account}`
    expect(yield* refusal("top.svg")).toBe(`The logo must be an image in the folder ${within}, where there is none yet`)
    for (const name of ["a.svg", "b.png"]) yield* putLogo(`${account}/${name}`, svg)
    expect(yield* refusal("top.svg")).toContain("where there are a.svg, b.png")
    yield* putLogo(`${account}/large.png`, Buffer.alloc(300 * 1024))
    expect(yield* refusal("large.png")).toBe("The logo must be at most 256 KiB, and has 300")
    symlinkSync(join(logoFolder, "top.svg"), join(logoFolder, account, "link.svg"))
    expect(yield* refusal("link.svg")).toContain("not a symbolic link")
    mkdirSync(join(logoFolder, account, "folder.svg"))
    expect(yield* refusal("folder.svg")).toContain("must be a file")
    expect(yield* refusal("a.svg", defaultAccount)).toContain("checkout.logo_folder, where there")
    expect(yield* storeShopChange(account, { logo: "a.svg" })).toMatchObject({ logo: "a.svg" })
  })

  test("of another path is not there", function* () {
    const { get } = yield* checkout
    for (const part of ["/logo/", "/theme", "/theme.css/x", "/..%2flogo"]) expect((yield* get(part)).status).toBe(404)
  })
})
