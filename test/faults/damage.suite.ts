import { copyFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { request } from "undici"
import { serve } from "../lib/daemon.ts"
import { damagePages } from "../lib/damagePages.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { startTilld } from "../lib/tilld.ts"
import { openShop } from "./shop.ts"

const remedy = /^tilld: .*is damaged.*restore/m

liveTest(
  "a damaged page ends the daemon with exit code 2 and the remedy, when it starts or when it is read",
  function* () {
    const { create, daemon, home, stored } = yield* openShop()
    const payments = yield* Effect.replicateEffect(create, 20)
    const [payment] = payments
    yield* daemon.end("SIGTERM")
    const whole = `${home.database}.whole`
    copyFileSync(home.database, whole)
    for (const table of ["payments", "events", "deliveries", "transitions", "api_keys", "numbering", "meta"]) {
      copyFileSync(whole, home.database)
      expect(damagePages(home.database, table), table).toBeGreaterThan(0)
      const broken = yield* startTilld(["serve", "--config", home.config])
      const port = broken.line('"listening"').pipe(Effect.map((line) => /"port":(\d+)/.exec(line)?.[1]))
      // Until something reads or writes the page.
      const use = Effect.flatMap(port, (port) =>
        Effect.promise((signal) =>
          request(`http://127.0.0.1:${port}/v1/payments/${payment?.id}/cancel`, {
            method: "POST",
            headers: { "x-api-key": daemon.key },
            signal
          }).catch(() => undefined)
        )
      )
      const { code, stderr } = yield* Effect.raceFirst(broken.ended, Effect.zipRight(use, broken.ended))
      expect(code, `${table}: ${stderr}`).toBe(2)
      expect(stderr, table).toMatch(remedy)
    }
    copyFileSync(whole, home.database)
    const back = yield* serve(home, daemon.key)
    for (const { id } of payments) expect(yield* back.payment({ id })).toMatchObject({ id })
    expect(yield* stored).toHaveLength(payments.length)
  }
)
