import { expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { exposition } from "../../src/Admin/metrics.ts"
import { attentionFamilies } from "../../src/Admin/storeFamilies.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader } from "../../src/Sql.ts"
import { seed } from "../lib/endpointRows.ts"
import { readScrape } from "../lib/prometheus.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"

it.scopedLive(
  "open exceptions are counted by kind; endpoints fail from the first event after the last that arrived",
  () =>
    Effect.gen(function* () {
      const path = yield* temporaryDatabase
      yield* Effect.gen(function* () {
        const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        seed(path, [
          [
            "wh_well",
            "live",
            [
              ["failed", 5, now - 900],
              ["delivered", 1, now - 600],
              ["pending", 0, now - 1]
            ]
          ],
          [
            "wh_down",
            "live",
            [
              ["delivered", 1, now - 600],
              ["pending", 2, now - 300],
              ["pending", 1, now - 100]
            ]
          ],
          ["wh_never", "test", [["failed", 5, now - 9_000]]],
          ["wh_new", "live", []],
          ["wh_deleted", "live", [["pending", 1, now - 300]]]
        ])
        const reader = yield* Reader
        const steps: Array<string> = []
        const scrape = readScrape(exposition(yield* attentionFamilies(explained(reader, reader, steps))))
        const exceptions = (mode: string, kind: string) => scrape.value("tilld_open_exceptions", { mode, kind })
        expect([exceptions("live", "late"), exceptions("test", "late"), exceptions("live", "reorged")]).toEqual([
          2, 1, 1
        ])
        expect(exceptions("live", "overpaid")).toBe(0)
        const failing = (mode: string) => scrape.value("tilld_webhook_failing_endpoints", { mode })
        expect([failing("live"), failing("test")]).toEqual([1, 1])
        const since = (endpoint: string) => scrape.value("tilld_webhook_endpoint_failing_seconds", { endpoint })
        expect(Math.round((since("wh_down") ?? 0) / 20)).toBe(15)
        expect(Math.round((since("wh_never") ?? 0) / 20)).toBe(450)
        expect([since("wh_well"), since("wh_new"), since("wh_deleted")]).toEqual([undefined, undefined, undefined])
        const name = "tilld_webhook_endpoint_last_success_timestamp_seconds"
        expect(scrape.value(name, { endpoint: "wh_down", mode: "live" })).toBe(now - 600 + 0.5)
        expect([...scrape.labelled(name, "endpoint")].sort()).toEqual(["wh_down", "wh_well"])
        // By index: of a long history no more than the newest rows are read.
        expect(steps.filter((step) => /deliveries/.test(step))).not.toEqual([])
        expect(steps.filter((step) => /SCAN (deliveries|exceptions)\b/.test(step))).toEqual([])
      }).pipe(Effect.provide(Sql.layer(path)))
    })
)

it.scopedLive("a hundred endpoints have series of their own: the longest failing, then those reached longest ago", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
      const named = (letter: string, from: number, to: number) =>
        Array.from({ length: to - from }, (_, i) => `wh_${letter}${from + i}`)
      const well = named("w", 0, 120).map((id, i) => [id, "live", [["delivered", 1, now - i]]] as const)
      const down = named("d", 0, 130).map((id, i) => [id, "live", [["pending", 1, now - i]]] as const)
      const shown = Effect.fnUntraced(function* (endpoints: Parameters<typeof seed>[1]) {
        seed(path, endpoints)
        const scrape = readScrape(exposition(yield* attentionFamilies(yield* Reader)))
        const labelled = (name: string) => new Set(scrape.labelled(`tilld_webhook_endpoint_${name}`, "endpoint"))
        return {
          failing: scrape.value("tilld_webhook_failing_endpoints", { mode: "live" }),
          down: labelled("failing_seconds"),
          well: labelled("last_success_timestamp_seconds")
        }
      })
      expect(yield* shown([...well, ...down.slice(100)])).toEqual({
        failing: 30,
        down: new Set(named("d", 100, 130)),
        well: new Set(named("w", 50, 120))
      })
      expect(yield* shown(down.slice(0, 100))).toEqual({
        failing: 130,
        down: new Set(named("d", 30, 130)),
        well: new Set()
      })
    }).pipe(Effect.provide(Sql.layer(path)))
  })
)
