/** What a merchant does in a day, with the keyboard alone: how many keys it takes from the home page. */
import { expect } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { permissions } from "../../src/Domain/ApiKey.ts"
import { iso } from "../../src/lib/moment.ts"
import { TestApi } from "../lib/api.ts"
import { visitor } from "../lib/browser.ts"
import { storeLateMoney } from "../lib/exceptions.ts"
import { keyboardOf } from "../lib/keyboard.ts"
import { bring } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { failOnce, openShop, portalApp, storeIncome } from "./shop.ts"

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
  const now = yield* Clock.currentTimeMillis
  yield* storeIncome(paid, { amount: "1000000", at: now })
  const origin = `http://${host}:${port}`
  const { context } = yield* visitor(origin, { baseURL: origin })
  yield* bring(shop.admin, context, origin)
  const page = yield* Effect.promise(() => context.newPage())
  yield* Effect.promise(() => page.goto(shop.base))
  return { ...shop, endpoint, failing, late, month: iso(now).slice(0, 7), page, paid }
})

type Day = Effect.Effect.Success<typeof ordinaryDay>

/** What somebody does on an ordinary day; returns how many keys it took. */
const steps = (day: Day, run: (keys: ReturnType<typeof keyboardOf>, day: Day) => Promise<void>) =>
  Effect.promise(async () => {
    const keys = keyboardOf(day.page)
    await run(keys, day)
    return keys.count
  })

liveSuite(portalApp, "with the keyboard alone", (test) => {
  const within = (most: number, title: string, run: Parameters<typeof steps>[1]) =>
    test(title, function* () {
      expect(yield* steps(yield* ordinaryDay, run)).toBeLessThanOrEqual(most)
    })

  within(8, "the order of a transaction is found", async ({ follow, paste, to }, { page, paid }) => {
    await to("Search")
    await paste(`https://sepolia.basescan.org/tx/${hash}`)
    await follow()
    expect(page.url()).toContain(`/payments/${paid}`)
  })

  within(28, "a failed delivery is looked at, and sent again", async ({ open, skip }, { page }) => {
    await skip()
    await open("1 webhook delivery is failing")
    await skip()
    await open("payment.created")
    await page.getByText("Attempt 1: 500").waitFor()
    await skip()
    await open("Send it again")
    expect(await page.locator(".notice").textContent()).toBe("1 sent again: the answer shows here in a moment.")
  })

  within(50, "a webhook's secret is rotated, and copied", async ({ open, press, skip, to }) => {
    await to("Developers")
    await press("Enter")
    await open("Webhooks")
    await skip()
    await open(/192\.0\.2\.1/)
    await skip()
    await open("Rotate")
    await to(/^Copy/)
    await press("Enter")
  })

  test("a key that only reads is made, and copied", function* () {
    const day = yield* ordinaryDay
    const { account, api, page } = day
    const count = yield* steps(day, async ({ follow, open, paste, press, skip, to }) => {
      await to("Developers")
      await press("Enter")
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
    const key = yield* Effect.promise(() => page.getByLabel("The key").inputValue())
    expect((yield* api.call("GET", "/v1/payments", { key })).status).toBe(200)
    expect(count).toBeLessThanOrEqual(30)
  })

  test("the permissions of a key are folded away until they are to be chosen, and then in their order", function* () {
    const { base, page } = yield* ordinaryDay
    yield* Effect.promise(async () => {
      await page.goto(`${base}/keys/new`)
      await page.locator("[name=name]:focus").waitFor()
      await page.keyboard.press("Tab")
      for (const _ of ["reader", "custom"]) await page.keyboard.press("ArrowDown")
      for (const permission of permissions) {
        await page.keyboard.press("Tab")
        expect(await page.locator(":focus").getAttribute("value")).toBe(permission)
      }
    })
  })

  within(30, "late money is accepted", async ({ open, press, skip, to }, { page }) => {
    await skip()
    await open(/too late$/)
    await skip()
    await to("Keep it")
    await press("Enter")
    await to(/^Do this/)
    await press("Space")
    await open("Accept the money")
    expect(await page.getByRole("status").first().textContent()).toBe("The money was accepted.")
  })

  within(40, "a refund is noted", async ({ open, paste, press, skip, to }, { page }) => {
    await skip()
    await open(/too late$/)
    await skip()
    await to(/^Send back/)
    await press("Enter")
    await to(/^Transaction/)
    await paste(`0x${"cd".repeat(32)}`)
    await open("Record the refund")
    expect(await page.getByRole("status").first().textContent()).toBe("The refund was recorded.")
  })

  test("the ledger of a month is exported", function* () {
    const day = yield* ordinaryDay
    const { month, page } = day
    const count = yield* steps(day, async ({ open, press, skip, to }) => {
      await open("Ledger")
      await skip()
      await open(month)
      await skip()
      await to("Export all these rows as CSV")
      const download = page.waitForEvent("download")
      await press("Enter")
      expect((await download).suggestedFilename()).toBe(`ledger-test-${month}.csv`)
    })
    expect(count).toBeLessThanOrEqual(40)
  })

  test("what came in today is read without a key", function* () {
    const { page } = yield* ordinaryDay
    const today = yield* Effect.promise(() => page.locator(".figures .big").first().textContent())
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
