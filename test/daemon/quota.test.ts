import { expect, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { adminOf } from "../lib/admin.ts"
import { makeClient } from "../lib/api.ts"
import { localChain, makeHome, serve } from "../lib/daemon.ts"
import { readScrape } from "../lib/prometheus.ts"
import { tilld } from "../lib/tilld.ts"

/** The least that may be configured. */
const quota = 1_000_000

it.scopedLive("an account that has almost reached its quota is named wherever the operator looks", () =>
  Effect.gen(function* () {
    const chain = yield* localChain("base")
    const home = yield* makeHome({ chains: new Map([["base", chain]]) })
    const env = { TILLD_ADMIN__PORT: "0", TILLD_LIMITS__PER_MINUTE: "100000", TILLD_LIMITS__PER_HOUR: "100000" }
    const daemon = yield* serve(home, undefined, env)
    const api = yield* makeClient(daemon.url)
    const admin = yield* adminOf(daemon)
    const used = Effect.map(admin("GET", "/metrics"), ({ text }) => {
      const { samples } = readScrape(text)
      const of = (family: string) => samples.find(({ name }) => name === family)?.value ?? 0
      return [of("tilld_account_used_bytes"), of("tilld_account_quota_bytes")] as const
    })
    const accountsOf = (from: typeof admin) => Effect.map(from("GET", "/readyz"), ({ body }) => body.accounts)

    yield* daemon.hasRead(chain)
    // It has none of its own accord.
    const change = ["accounts", "change", "default", "--quota", "1MB", "--config", home.config]
    expect(yield* tilld(change, { env })).toMatchObject({ code: 0, stdout: expect.stringContaining("1.0 MB") })
    expect(yield* accountsOf(admin)).toEqual([])
    // No one listens there: each payment's first event is tried once, and that attempt is stored too.
    const webhookUrl = `https://127.0.0.1:1/${"h".repeat(1_500)}`
    let orders = 0
    for (let [bytes] = yield* used; bytes < 0.8 * quota; [bytes] = yield* used) {
      const json = { merchantRef: `order ${orders++}`, amount: "1", currency: "ETH", chain: "base", webhookUrl }
      expect([bytes, (yield* api("POST", "/v1/payments", { key: daemon.key, json })).status]).toEqual([bytes, 201])
    }

    const attempts = Effect.map(admin("GET", "/metrics"), ({ text }) =>
      readScrape(text)
        .samples.filter(({ name }) => name === "tilld_webhook_attempts_total")
        .reduce((sum, { value }) => sum + value, 0)
    )
    yield* Effect.repeat(attempts, { until: (count) => count === orders, schedule: Schedule.spaced("10 millis") })
    const [usedBytes] = yield* used
    expect(yield* used).toEqual([usedBytes, quota])
    const named = {
      account: "default",
      usedBytes,
      quotaBytes: quota,
      reason: expect.stringContaining("tilld accounts change default --quota")
    }
    expect(yield* accountsOf(admin)).toEqual([named])
    expect((yield* admin("GET", "/readyz")).body.ready).toBe((yield* api("GET", "/readyz")).body.ready)
    const listed = yield* tilld(["accounts", "list", "--json", "--config", home.config], { env })
    expect(JSON.parse(listed.stdout)).toMatchObject([{ id: "default", usedBytes, quotaBytes: quota }])
    const shown = yield* tilld(["accounts", "list", "--config", home.config], { env })
    expect(shown.stdout).toMatch(/USED/i)

    expect(yield* daemon.end("SIGTERM")).toMatchObject({ code: 0 })
    const again = yield* serve(home, daemon.key, env)
    const share = Math.floor((100 * usedBytes) / quota)
    const refused = "at 100 % its new payments, quotes and endpoints are refused with 507"
    const { annotations } = yield* again.logged(`account default has used ${share} % of its quota: ${refused}`)
    expect(annotations).toMatchObject({ account: "default", bytes: usedBytes, quota })
  })
)
