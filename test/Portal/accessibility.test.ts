import { brotliCompressSync } from "node:zlib"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { problemsOf } from "../lib/axe.ts"
import { visitor } from "../lib/browser.ts"
import { bring, signIn } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute } from "../lib/store.ts"
import { furnishedShop, portalApp } from "./shop.ts"

/** Bytes of a page with its stylesheet and its script, compressed. */
const heaviest = 60_000

const weightOf = (parts: ReadonlyArray<Buffer>) => parts.reduce((sum, part) => sum + brotliCompressSync(part).length, 0)

liveSuite(portalApp, "the pages of an account", (_, it) => {
  it.scoped.each([
    [["", "/payments", "/payments?status=nonsense", "/payments/:id", "/payments/new"]],
    [["/exceptions?status=all", "/exceptions/:id", "/quotes", "/health", "/accounts", "/accounts/new"]],
    [["/invoices", "/invoices/:id", "/invoices/:id/cancel"]],
    [["/keys", "/keys/new", "/keys/:id", "/keys/:id/revoke", "/pair", "/requests"]],
    [["/webhooks", "/webhooks/new", "/webhooks/default-secret", "/webhooks/:id", "/webhooks/:id/delete"]],
    [["/deliveries", "/deliveries/resend-range", "/deliveries/:id", "/deliveries?status=dead"]],
    [["/settings", "/audit", "/people", "/me", "/nothing"]]
  ])("axe finds nothing on %j at any width in either colour scheme, and none is heavy", ([...paths]) =>
    Effect.gen(function* () {
      const { api, ids, path } = yield* furnishedShop
      // As wide as it may be.
      yield* execute("UPDATE payments SET merchant_ref = ?, metadata = json_object('order', '7') WHERE id = ?", [
        ...["w".repeat(128), ids["payments"] ?? ""]
      ])
      const origin = `http://${api.host}:${api.port}`
      const { context, strayed } = yield* visitor(origin)
      yield* bring(yield* signIn(api), context, origin)
      const page = yield* Effect.promise(() => context.newPage())
      const loaded: Array<Promise<Buffer>> = []
      // A stream has no end.
      page.on("response", (response) => !response.url().endsWith("/changes") && loaded.push(response.body()))
      for (const at of paths.flat().map((each) => path(each))) {
        yield* Effect.promise(async () => {
          await page.goto(origin + at)
          const weight = weightOf(await Promise.all(loaded.splice(0)))
          expect([at, weight > 1_000, weight < heaviest]).toEqual([at, true, true])
          expect(await problemsOf(page), at).toEqual([])
        })
      }
      expect(strayed).toEqual([])
    })
  )
})
