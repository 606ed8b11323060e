import { brotliCompressSync } from "node:zlib"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestApi } from "../lib/api.ts"
import { problemsOf } from "../lib/axe.ts"
import { visitor } from "../lib/browser.ts"
import { bring, signIn } from "../lib/portal.ts"
import { rows } from "../lib/store.ts"
import { failOnce, openShop, portalApp } from "./shop.ts"

/** Bytes of a page with its stylesheet and its script, compressed. */
const heaviest = 60_000

const weightOf = (parts: ReadonlyArray<Buffer>) => parts.reduce((sum, part) => sum + brotliCompressSync(part).length, 0)

layer(portalApp, { excludeTestServices: true })("pages of keys, webhooks, deliveries and the daemon", (it) => {
  /** A shop with one of each kind of object. `:key`, `:endpoint` and `:delivery` in a path become its ids. */
  const furnished = Effect.gen(function* () {
    const shop = yield* openShop
    const endpoint = yield* shop.endpoint()
    const payments = yield* Effect.forEach(["1", "2", "3"], shop.pay, { concurrency: 1 })
    yield* failOnce(payments[0] ?? "")
    const [key] = yield* rows<{ id: string }>("SELECT id FROM api_keys WHERE account_id = ?", [shop.account])
    const [delivery] = yield* rows<{ id: string }>("SELECT id FROM deliveries WHERE payment_id = ?", [
      payments[0] ?? ""
    ])
    const ids: Readonly<Record<string, string>> = { key: key?.id ?? "", endpoint, delivery: delivery?.id ?? "" }
    return {
      ...shop,
      pathOf: (path: string) => shop.base + path.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? "")
    }
  })

  it.scoped.each([
    [["/keys", "/keys/new", "/keys/:key", "/keys/:key/revoke"]],
    [["/webhooks", "/webhooks/new", "/webhooks/:endpoint", "/webhooks/:endpoint/delete"]],
    [["/deliveries", "/deliveries/resend-range", "/deliveries/:delivery", "/deliveries?status=dead"]],
    [["/requests", "/quotes", "/health", "/accounts", "/accounts/new"]],
    [["/settings", "/audit", "/people", "/me", "/nothing"]]
  ])("axe finds nothing on %j at any width in either colour scheme, and none is heavy", ([...paths]) =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const { pathOf } = yield* furnished
      const origin = `http://${api.host}:${api.port}`
      const { context, strayed } = yield* visitor(origin)
      const operator = yield* signIn(api)
      yield* bring(operator, context, origin)
      const page = yield* Effect.promise(() => context.newPage())
      for (const path of paths.flat().map(pathOf)) {
        const { text } = yield* operator.get(path)
        const urls = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]*)"/g)].map(([, url = ""]) => url)
        const assets = yield* Effect.forEach(urls, (url) => operator.get(url), { concurrency: 1 })
        expect(weightOf([text, ...assets.map((asset) => asset.text)].map((part) => Buffer.from(part)))).toBeLessThan(
          heaviest
        )
        const problems = yield* Effect.promise(async () => {
          await page.goto(origin + path)
          return problemsOf(page)
        })
        expect(problems, path).toEqual([])
      }
      expect(strayed).toEqual([])
    })
  )
})
