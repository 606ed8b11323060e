/** What a merchant does in a day, with the keyboard alone: how many keys it takes from the home page. */
import { expect } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Page } from "playwright-core"
import { TestApi } from "../lib/api.ts"
import { Chromium, visitorOf } from "../lib/browser.ts"
import { storeLateMoney } from "../lib/exceptions.ts"
import { keyboardOf } from "../lib/keyboard.ts"
import { bring } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { failOnce, openShop, portalApp } from "./shop.ts"

const hash = `0x${"ab".repeat(32)}`

let exceptions = 100

/** A shop on an ordinary day: payments, one delivery that fails, one exception; and its admin's browser at the home page. */
const ordinaryDay = Effect.gen(function* () {
  const { host, port } = yield* TestApi
  const shop = yield* openShop
  const endpoint = yield* shop.endpoint()
  const ids = yield* Effect.forEach(["A-1", "A-2", "A-3"], shop.pay, { concurrency: 1 })
  const [failing = "", late = "", paid = ""] = ids
  yield* failOnce(failing)
  yield* storeLateMoney(late, ++exceptions)
  yield* execute(
    "UPDATE payments SET status = 'confirmed', confirmed_at = created_at, ended_at = 1, tx_hash = ?, usd_value = '1' WHERE id = ?",
    [hash, paid]
  )
  const origin = `http://${host}:${port}`
  const { context } = yield* visitorOf(origin, { baseURL: origin })
  yield* bring(shop.admin, context, origin)
  const page = yield* Effect.promise(() => context.newPage())
  yield* Effect.promise(() => page.goto(shop.base))
  return { ...shop, endpoint, failing, late, page, paid }
})

const steps = <A>(page: Page, run: (keys: ReturnType<typeof keyboardOf>) => Promise<A>) =>
  Effect.promise(async () => {
    const keys = keyboardOf(page)
    await run(keys)
    return keys.count
  })

liveSuite(Layer.merge(portalApp, Chromium.layer), "with the keyboard alone", (test) => {
  test("the order of a transaction is found", function* () {
    const { page, paid } = yield* ordinaryDay
    const count = yield* steps(page, async ({ follow, paste, to }) => {
      await to("Search")
      await paste(`https://sepolia.basescan.org/tx/${hash}`)
      await follow()
      expect(page.url()).toContain(`/payments/${paid}`)
    })
    expect(count).toBeLessThanOrEqual(8)
  })

  test("a failed delivery is looked at, and sent again", function* () {
    const { page } = yield* ordinaryDay
    const count = yield* steps(page, async ({ open, skip }) => {
      await skip()
      await open("1 failing delivery")
      await skip()
      await open("payment.created")
      await page.getByText("Attempt 1: 500").waitFor()
      await skip()
      await open("Send it again")
      expect(await page.locator(".notice").textContent()).toBe("1 sent again: the answer shows here in a moment.")
    })
    expect(count).toBeLessThanOrEqual(25)
  })

  test("a webhook's secret is rotated, and copied", function* () {
    const { page } = yield* ordinaryDay
    const count = yield* steps(page, async ({ open, press, skip, to }) => {
      await open("Webhooks")
      await skip()
      await open(/192\.0\.2\.1/)
      await skip()
      await open("Rotate")
      await to(/^Copy/)
      await press("Enter")
    })
    expect(count).toBeLessThanOrEqual(37)
  })

  test("a key that only reads is made, and copied", function* () {
    const { account, page } = yield* ordinaryDay
    const count = yield* steps(page, async ({ follow, open, paste, press, skip, to }) => {
      await open("API keys")
      await skip()
      await open("Create a key")
      await paste("bookkeeper")
      await to(/^Your shop’s server/)
      await press("ArrowDown")
      await follow()
      await to(/^Copy/)
      await press("Enter")
    })
    expect(
      yield* rows("SELECT permissions FROM api_keys WHERE account_id = ? AND name = 'bookkeeper'", [account])
    ).toEqual([{ permissions: "payments:read,webhooks:read,quotes:read,exceptions:read" }])
    expect(count).toBeLessThanOrEqual(25)
  })

  test("late money is accepted", function* () {
    const { page } = yield* ordinaryDay
    const count = yield* steps(page, async ({ open, press, skip, to }) => {
      await skip()
      await open("1 open exception")
      await skip()
      await open("late")
      await skip()
      await to("Accept it")
      await press("Enter")
      await to(/^Do this/)
      await press("Space")
      await open("Accept the money")
      expect(await page.getByRole("status").first().textContent()).toBe("The money was accepted.")
    })
    expect(count).toBeLessThanOrEqual(30)
  })

  test("a refund is noted", function* () {
    const { page } = yield* ordinaryDay
    const count = yield* steps(page, async ({ open, paste, press, skip, to }) => {
      await skip()
      await open("1 open exception")
      await skip()
      await open("late")
      await skip()
      await to("Send it back")
      await press("Enter")
      await to(/^Transaction/)
      await paste(`0x${"cd".repeat(32)}`)
      await open("Record the refund")
      expect(await page.getByRole("status").first().textContent()).toBe("It was noted as sent back.")
    })
    expect(count).toBeLessThanOrEqual(40)
  })

  test("the payments of the last month are exported", function* () {
    const { page, paid } = yield* ordinaryDay
    yield* execute(
      "UPDATE payments SET created_at = 1000 * unixepoch('now', 'start of month', '-1 day') WHERE id = ?",
      [paid]
    )
    const count = yield* steps(page, async ({ open, press, skip, to }) => {
      await open("Payments")
      await skip()
      await open("last month")
      await skip()
      await to("Export these payments as CSV")
      const download = page.waitForEvent("download")
      await press("Enter")
      expect((await download).suggestedFilename()).toBe("payments-test-last-month.csv")
    })
    expect(count).toBeLessThanOrEqual(40)
  })

  test("what came in today is read without a key", function* () {
    const { page } = yield* ordinaryDay
    const today = yield* Effect.promise(() => page.locator(".sums .big").first().textContent())
    expect(today).toBe("$1.00")
  })

  test("the first row of a list is within twelve keys of the skip link", function* () {
    const { base, page } = yield* ordinaryDay
    for (const list of ["payments", "exceptions", "deliveries", "webhooks", "keys"]) {
      yield* Effect.promise(() => page.goto(`${base}/${list}`))
      const keys = keyboardOf(page)
      yield* Effect.promise(async () => {
        await keys.skip()
        const before = keys.count
        const row = (await page.locator("tbody th a").first().textContent()) ?? ""
        await keys.to(row)
        expect([list, keys.count - before]).toEqual([list, Math.min(keys.count - before, 12)])
      })
    }
  })
})
