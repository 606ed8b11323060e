import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { readHealth } from "../../src/Admin/healthOperation.ts"
import { revokeKey } from "../../src/Auth/keyOperations.ts"
import { ask } from "../../src/commands/askDaemon.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { testSettings, testXpub } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { accesses, askSample, besideDaemon, logged, nameOf, samples } from "./world.ts"

const patternOf = (value: unknown) => (value instanceof RegExp ? expect.stringMatching(value) : value)

it("every kind of request has a sample, with its audit row if it administers", () => {
  expect(samples.map(nameOf).toSorted()).toEqual(Array.from(accesses.keys()).toSorted())
  for (const sample of samples) {
    expect("act" in sample ? "administer" : "read", nameOf(sample)).toBe(accesses.get(nameOf(sample)))
  }
})

it.scopedLive("every act through the socket leaves a row; refused acts and requests that read leave none", () =>
  Effect.gen(function* () {
    const settings = testSettings(yield* temporaryDatabase, { alerts: { url: "http://127.0.0.1:1/" } })
    yield* besideDaemon(settings, function* () {
      const refused = yield* Effect.flip(ask(settings, revokeKey, { id: "key_none" }))
      expect(refused).toMatchObject({ _tag: "NotFound", message: expect.stringContaining("key_none") })
      expect(yield* logged).toEqual([])
      for (const sample of samples) {
        const name = nameOf(sample)
        const before = yield* logged
        yield* askSample(settings, sample)
        const added = (yield* logged).slice(0, -before.length || undefined)
        if (!("act" in sample)) expect(added, name).toEqual([])
        else {
          const [row, ...others] = added
          expect(others, name).toEqual([])
          expect(row, name).toMatchObject({ via: "socket", who: "alice as root", act: sample.act })
          const detail = Object.entries(sample.detail ?? {}).map(([field, value]) => [field, patternOf(value)])
          expect(JSON.parse(row?.detail ?? ""), name).toEqual(Object.fromEntries(detail))
        }
      }
      const all = JSON.stringify(yield* logged)
      expect(all).not.toMatch(/whsec_|svc_|xpub/)
      expect(all).not.toContain(testXpub.slice(0, 20))
    })
  })
)

it.scopedLive("the daemon names each chain and worker that is not ready", () =>
  Effect.gen(function* () {
    const settings = testSettings(yield* temporaryDatabase)
    yield* besideDaemon(settings, function* () {
      const workers = yield* Workers
      workers.condition("webhooks", () => "it hangs")
      workers.condition("settlement", () => undefined)
      workers.remark("log", () => "2 lines are missing")
      const { troubled, unready } = yield* ask(settings, readHealth, {})
      expect(troubled).toEqual([{ name: "log", reason: "2 lines are missing" }])
      expect(unready).toContainEqual({ name: "webhooks", reason: "it hangs" })
      expect(unready.map(({ name }) => name)).not.toContain("settlement")
    })
  })
)
