/** The portal's payments in a real browser: what a person does, in both colour schemes, without a request elsewhere. */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Locator } from "playwright-core"
import { PNG } from "pngjs"
import { TestApi } from "../lib/api.ts"
import { problemsOf } from "../lib/axe.ts"
import { copied, unableToCopy, visitor } from "../lib/browser.ts"
import { storeLateMoney } from "../lib/exceptions.ts"
import { bring } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { admin, home, makePayment, portalApp } from "./shop.ts"

/** An admin's browser. */
const atDesk = Effect.fnUntraced(function* (options: Parameters<typeof visitor>[1] = {}) {
  const { host, port } = yield* TestApi
  const url = `http://${host}:${port}`
  const { context, strayed } = yield* visitor(url, { baseURL: url, ...options })
  yield* bring(yield* admin, context, url)
  return { page: yield* Effect.promise(() => context.newPage()), strayed, url }
})

const steps = <A>(run: () => Promise<A>) => Effect.promise(run)

liveSuite(portalApp, "the portal's payments in a browser", (test) => {
  test("a payment is found by its reference, and its exception accepted, without a script", function* () {
    const payment = yield* makePayment({ merchantRef: "invoice 2026/17" })
    const exception = yield* storeLateMoney(payment.id, 1)
    const { page, strayed } = yield* atDesk({ javaScriptEnabled: false })
    yield* steps(async () => {
      await page.goto(home)
      await page.getByLabel("Search").fill("invoice 2026/17")
      await page.getByLabel("Search").press("Enter")
      await page.getByRole("heading", { level: 1, name: "invoice 2026/17" }).waitFor()
      await page.getByText("Keep it", { exact: true }).click()
      await page.getByLabel("Note (optional)").last().fill("the customer rang")
      await page.getByLabel(/Do this/).check()
      await page.getByRole("button", { name: "Accept the money" }).click()
      expect(await page.getByRole("status").textContent()).toBe("The money was accepted.")
      expect(await page.locator(".facts").textContent()).toContain("the customer rang")
    })
    expect(yield* rows("SELECT outcome, note FROM exceptions WHERE id = ?", [exception])).toEqual([
      { outcome: "accepted", note: "the customer rang" }
    ])
    expect(strayed).toEqual([])
  })

  test("on a phone the sections are behind a menu, without a script, and a whole row leads to its payment", function* () {
    yield* makePayment({ merchantRef: "tapped" })
    yield* makePayment({ merchantRef: "another" })
    const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, javaScriptEnabled: false }
    const { page } = yield* atDesk(phone)
    yield* steps(async () => {
      await page.goto(home)
      const sections = page.getByRole("navigation", { name: "Sections" })
      await sections.waitFor({ state: "hidden" })
      await page.getByRole("link", { name: "Menu", exact: true }).tap()
      await sections.waitFor()
      await page.getByRole("link", { name: "Close the menu" }).tap()
      await sections.waitFor({ state: "hidden" })
      await page.getByRole("link", { name: "Menu", exact: true }).tap()
      await sections.getByRole("link", { name: "Payments" }).tap()
      await page.getByRole("heading", { level: 1, name: "Payments" }).waitFor()
      await sections.waitFor({ state: "hidden" })
      await page.getByRole("row", { name: "tapped" }).locator("td").last().tap({ force: true })
      await page.getByRole("heading", { level: 1, name: "tapped" }).waitFor()
    })
  })

  test("times are in the browser's own zone, with UTC on the pointer", function* () {
    const payment = yield* makePayment()
    yield* execute("UPDATE payments SET created_at = 1700000000000 WHERE id = ?", [payment.id])
    const { page } = yield* atDesk({ timezoneId: "America/New_York" })
    yield* steps(async () => {
      await page.goto(`${home}/payments/${payment.id}`)
      const time = page.locator('time[datetime="2023-11-14T22:13:20.000Z"]').first()
      expect(await time.textContent()).toBe("14 Nov 2023, 17:13")
      expect(await time.getAttribute("title")).toBe("2023-11-14 22:13:20 UTC")
      // On a wide page the sections are there, and no menu.
      expect(await page.getByRole("navigation", { name: "Sections" }).isVisible()).toBe(true)
      expect(await page.locator(".menu").filter({ visible: true }).count()).toBe(0)
    })
  })

  test("a price is asked for by hand with the keyboard alone", function* () {
    const { page } = yield* atDesk()
    yield* steps(async () => {
      await page.goto(`${home}/payments/new`)
      await page.getByLabel("Amount").focus()
      await page.keyboard.type("1.5")
      for (const _ of ["priced in", "paid in", "reference"]) await page.keyboard.press("Tab")
      await page.keyboard.type("by keyboard")
      await page.keyboard.press("Enter")
      await page.getByRole("heading", { level: 1, name: "by keyboard" }).waitFor()
      // The page begins at what was done, also for who hears it.
      expect(await page.locator(":focus").textContent()).toMatch(/^The invoice was created/)
      // Without an answer the link to the page is the first that the keyboard comes to.
      await page.goto(page.url().replace(/\?.*/, ""))
      await page.keyboard.press("Tab")
      expect(await page.locator(":focus").textContent()).toContain("Skip to the page")
    })
  })

  test("a list shows what changes by itself, and offers it to whoever is at it", function* () {
    const { page } = yield* atDesk()
    const open = steps(async () => {
      await page.clock.install()
      const stream = page.waitForResponse((response) => response.url().endsWith("/changes"))
      await page.goto(`${home}/payments`)
      await stream
      // It has been read a while ago.
      await page.clock.fastForward(20_000)
    })
    yield* open
    yield* makePayment(
      { merchantRef: "of another account" },
      { account: yield* (yield* TestApi).newAccount("live"), mode: "test" }
    )
    yield* makePayment({ merchantRef: "seen at once" })
    yield* steps(() => page.getByRole("link", { name: "seen at once" }).waitFor())
    yield* open
    yield* steps(async () => {
      await page.getByText("More filters").click()
      await page.getByLabel("Created from (UTC)").fill("2020-01-01")
    })
    yield* makePayment({ merchantRef: "seen later" })
    yield* steps(async () => {
      await page.getByText("Something here has changed.").waitFor()
      expect(await page.getByLabel("Created from (UTC)").inputValue()).toBe("2020-01-01")
      expect(await page.getByRole("link", { name: "seen later" }).count()).toBe(0)
      await page.getByRole("link", { name: "Show it" }).click()
      await page.getByRole("link", { name: "seen later" }).waitFor()
    })
  })

  test("what was done is said once: not again by the page that reads itself again", function* () {
    const { page } = yield* atDesk()
    const { id } = yield* makePayment()
    for (const [path, said] of [
      [`/payments/${id}?done=created`, "The payment was created."],
      ["/deliveries?ordered=2&due=1&refused=1", "2 sent again: the answer shows here in a moment."]
    ] as const) {
      yield* steps(async () => {
        await page.clock.install()
        const stream = page.waitForResponse((response) => response.url().endsWith("/changes"))
        await page.goto(`${home}${path}`)
        await stream
        expect(await page.getByText(said).count()).toBe(1)
        await page.clock.fastForward(20_000)
      })
      yield* makePayment()
      yield* steps(async () => {
        await page.waitForURL((url) => url.search === "")
        expect(await page.getByText(said).count()).toBe(0)
      })
    }
  })

  test("a logo is made small and uploaded, and the preview has it", function* () {
    const { page } = yield* atDesk()
    const noise = new PNG({ width: 400, height: 300 })
    for (let at = 0; at < noise.data.length; at++) noise.data[at] = at % 4 === 3 ? 255 : (at * 7919) % 251
    const buffer = PNG.sync.write(noise)
    expect(buffer.length).toBeGreaterThan(100_000)
    yield* steps(async () => {
      await page.goto(`${home}/settings`)
      await page.getByLabel("Picture").setInputFiles({ name: "noise.png", mimeType: "image/png", buffer })
      await page.getByRole("button", { name: "Upload" }).click()
      await page.getByText("Saved. New visits to a checkout see it.").waitFor()
      // It is loaded, and so it is a picture.
      await page.waitForFunction(
        () => (document.querySelector<HTMLImageElement>(".preview img")?.naturalWidth ?? 0) > 0
      )
    })
    const [image] = yield* rows<{ name: string; size: number }>("SELECT name, length(bytes) AS size FROM shop_images")
    expect(image?.name).toBe("uploaded.webp")
    expect(image?.size).toBeLessThanOrEqual(40_960)
  })

  test("what the clipboard refuses is copied in the old way, or selected, and the page says so", function* () {
    const payment = yield* makePayment()
    const said = "Selected: copy it with a long press or the keyboard."
    for (const fault of ["refuses", "is absent", "and the old way fail"] as const) {
      const { page } = yield* atDesk()
      yield* steps(async () => {
        const context = page.context()
        await unableToCopy(context, fault)
        const copy = async (place: Locator, text: string) => {
          await place.getByRole("button", { name: "Copy" }).press("Enter")
          if (fault === "and the old way fail") {
            await page.getByLabel(said).and(page.locator(":focus")).last().waitFor()
            expect(await page.evaluate(() => getSelection()?.toString())).toBe(text)
            expect(await place.getByRole("button").count()).toBe(0)
          } else {
            await place.getByRole("button", { name: "Copied" }).waitFor()
            expect(await copied(context, page.url()), fault).toBe(text)
          }
        }
        await page.goto(`${home}/payments/${payment.id}`)
        await page.getByText("Technical").click()
        for (const text of [payment.id, payment.address]) {
          await copy(page.locator(".copy-text").filter({ hasText: text }).filter({ visible: true }), text)
        }
        expect(await page.getByText(said).count()).toBe(fault === "and the old way fail" ? 2 : 0)
        await page.goto(`${home}/keys/new`)
        await page.getByLabel("Name").fill(fault)
        await page.getByRole("button", { name: "Create the key" }).click()
        await copy(page.locator(".field.copy"), await page.getByLabel("The key").inputValue())
        expect(await problemsOf(page)).toEqual([])
      })
    }
  })

  test("live and test pages differ at a glance", function* () {
    const { page } = yield* atDesk()
    const bars = yield* steps(async () => {
      const found: Array<string> = []
      for (const mode of ["test", "live"]) {
        await page.goto(`/portal/a/default/${mode}`)
        found.push(await page.evaluate(() => getComputedStyle(document.body).borderImageSource))
      }
      return found
    })
    expect(bars[0]).toContain("repeating-linear-gradient")
    expect(bars[1]).toBe("none")
  })
})
