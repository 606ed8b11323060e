import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { settingsRoutes } from "../../src/Portal/pages/AccountSettings.tsx"
import type { Who } from "../lib/portal.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testChain } from "../lib/settings.ts"
import { rows } from "../lib/store.ts"
import { portalStore, portalWith } from "./room.ts"

/** The header of a PNG of one pixel. */
const pngStart = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01", "latin1")

const logoFolder = join(tmpdir(), `tilld-logos-${process.pid}`)
afterAll(() => rmSync(logoFolder, { recursive: true, force: true }))

const test = scopedTest(portalStore({ checkout: { logoFolder } }))
const liveTest = scopedTest(portalStore({ chains: [testChain(), testChain({ mode: "live" })] }))
const page = "/portal/a/default/test/settings"

const entered = (who: Who) => Effect.flatMap(portalWith(settingsRoutes), ({ enter }) => enter(who))
const ada = entered({ name: "Ada", account: "default" })

test("an admin changes how the checkout looks; a refused form keeps what was typed", function* () {
  const admin = yield* ada
  const good = {
    name: "Corner <b>shop</b>",
    accent: "#1F5FD1",
    logo: "corner.svg",
    website: "https://shop.example/help",
    contact: "help@shop.example",
    timezone: "Europe/Berlin",
    currency: "EUR",
    minimumUsd: "0.50",
    invoiceRefs: "repeat",
    plugins: "on",
    frameOrigins: "https://shop.example\nhttp://localhost:3000"
  }
  const wrong = {
    ...good,
    accent: "red",
    logo: "../corner.svg",
    website: "javascript:1",
    timezone: "Nowhere/Land",
    currency: "XXX",
    minimumUsd: "1,50",
    frameOrigins: "https://shop.example/pay"
  }
  const refused = yield* admin.post(page, wrong)
  expect(refused.status).toBe(422)
  for (const text of ["Corner &lt;b>shop&lt;/b>", 'value="red"', "https://shop.example/pay"]) {
    expect(refused.text).toContain(text)
  }
  expect(refused.text.match(/class="problem"/g)).toHaveLength(7)
  expect((yield* admin.post(page, { currency: "CHF" })).text).toContain("CHF is off here: the operator turns it on")
  const missing = yield* admin.post(page, good)
  expect(missing).toMatchObject({ status: 422, text: expect.stringContaining("where there is none yet") })
  expect(yield* rows("SELECT * FROM shops")).toEqual([])

  mkdirSync(logoFolder, { recursive: true })
  writeFileSync(join(logoFolder, "corner.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>")
  expect(yield* admin.post(page, good)).toMatchObject({ status: 303, headers: { location: `${page}?done=settings` } })
  const { frameOrigins: _, invoiceRefs: invoice_refs, minimumUsd: minimum_usd, ...kept } = good
  const stored = { ...kept, minimum_usd, invoice_refs, account_id: "default", accent: "#1f5fd1" }
  expect(yield* rows("SELECT * FROM shops")).toEqual([
    { ...stored, frame_origins: "https://shop.example http://localhost:3000" }
  ])
  const shown = (yield* admin.get(page)).text
  for (const text of ['value="corner.svg"', 'value="Europe/Berlin" selected', 'value="EUR" selected']) {
    expect(shown).toContain(text)
  }
  yield* admin.post(page, {})
  expect(yield* rows("SELECT * FROM shops")).toEqual([
    { ...Object.fromEntries(Object.keys(stored).map((part) => [part, null])), account_id: "default", frame_origins: "" }
  ])
  expect(yield* rows("SELECT via FROM audit WHERE act = 'accounts shop'")).toEqual(Array(2).fill({ via: "portal" }))
})

test("an admin uploads a logo, which another one replaces, and what is no picture is refused", function* () {
  const admin = yield* ada
  const png = Buffer.concat([pngStart, Buffer.alloc(40_960 - pngStart.length)])
  const upload = (bytes: Buffer) => admin.post(`${page}/logo`, { image: bytes.toString("base64url") })
  expect((yield* admin.get(`${page}/logo`)).status).toBe(404)
  for (const bytes of [
    Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>"),
    Buffer.concat([png, Buffer.alloc(1)]),
    Buffer.from("RIFF1234WAVE"),
    Buffer.alloc(0)
  ]) {
    const refused = yield* upload(bytes)
    expect([refused.status, refused.text.includes("must be a PNG, JPEG or WebP of at most 40 KiB")]).toEqual([
      422,
      true
    ])
  }
  expect(yield* upload(png)).toMatchObject({ status: 303, headers: { location: `${page}?done=settings` } })
  const shown = yield* admin.get(`${page}/logo`)
  expect(shown).toMatchObject({ status: 200, headers: { "content-type": "image/png" } })
  const [image] = yield* rows<{ bytes: Buffer }>("SELECT bytes FROM shop_images")
  expect(image?.bytes.equals(png)).toBe(true)
  const [shop] = yield* rows<{ logo: string }>("SELECT logo FROM shops")
  expect(shop?.logo).toBe("uploaded.png")
  // Saved with everything else it stays; with another logo, or none, it goes.
  yield* admin.post(page, { name: "Corner", logo: "uploaded.png" })
  expect((yield* admin.get(`${page}/logo`)).status).toBe(200)
  yield* admin.post(page, { name: "Corner" })
  expect(yield* rows("SELECT name FROM shop_images")).toEqual([])
  expect((yield* admin.get(`${page}/logo`)).status).toBe(404)
  const [act] = yield* rows<{ detail: string }>(
    "SELECT detail FROM audit WHERE act = 'accounts shop' ORDER BY sequence"
  )
  expect(JSON.parse(act?.detail ?? "")).toEqual({ account: "default", logo: "uploaded.png", bytes: 40_960 })
})

test("an account's logo stays, whatever another account saves", function* () {
  const { enter } = yield* portalWith(settingsRoutes)
  const theirs = "/portal/a/shop/test/settings"
  const grace = yield* enter({ name: "Grace", account: "shop" })
  const image = Buffer.concat([pngStart, Buffer.alloc(10)]).toString("base64url")
  yield* grace.post(`${theirs}/logo`, { image })
  const ada = yield* enter({ name: "Ada", account: "default" })
  expect((yield* ada.post(page, { name: "Corner" })).status).toBe(303)
  expect((yield* grace.get(`${theirs}/logo`)).status).toBe(200)
})

const savedLater = Effect.fnUntraced(function* () {
  const admin = yield* ada
  yield* TestClock.adjust("1 hour")
  return yield* admin.post(page, { name: "Shop" })
})

test("without a live chain it is changed without a proof of identity", function* () {
  expect((yield* savedLater()).status).toBe(303)
})

liveTest("with a live chain it needs a proof from either mode's page: live checkouts look like it too", function* () {
  expect((yield* savedLater()).text).toContain("how the account’s checkout looks")
  expect(yield* rows("SELECT * FROM shops")).toEqual([])
})
