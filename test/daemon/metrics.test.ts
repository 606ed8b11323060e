import { spawnSync } from "node:child_process"
import { appendFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import { adminOf } from "../lib/admin.ts"
import { makeClient } from "../lib/api.ts"
import { confirmations, homeOn, localChain, makeHome, pay, serve } from "../lib/daemon.ts"
import { startFaultProxy } from "../lib/faultProxy.ts"
import { makeInbox } from "../lib/inbox.ts"
import { needs } from "../lib/needs.ts"
import { readScrape, type Scrape } from "../lib/prometheus.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { root } from "../lib/tilld.ts"

const order = { chain: "base", currency: "USDC", amount: "25000000" } as const
const network = { chain: "base", mode: "test" }
const secret = `whsec_${Buffer.alloc(24, 5).toString("base64")}`
/** What providers put into their URLs. */
const providersKey = "k3y0fTheProvider"

const shop = Effect.gen(function* () {
  const chain = yield* localChain("base")
  const other = yield* startFaultProxy(chain.url)
  const inbox = yield* makeInbox()
  const home = yield* makeHome({
    chains: new Map([["base", chain]]),
    rpcUrls: new Map([["base", [`${chain.url}/?key=${providersKey}`, `${other.url}/${providersKey}`]]]),
    caFile: inbox.caFile
  })
  const daemon = yield* serve(home, undefined, {
    TILLD_ADMIN__PORT: "0",
    // One of the two is gone for good.
    TILLD_PAYMENTS__SOLE_PROVIDER_PATIENCE: "0 seconds"
  })
  const admin = yield* adminOf(daemon)
  const scrape = Effect.map(admin("GET", "/metrics"), (answer): Scrape => {
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8")
    // Providers are named by their hosts; here they are at the address of the client, which is not named.
    const named = answer.text.replaceAll(/host="127.0.0.1:\d+"/g, "")
    for (const hidden of [daemon.key, providersKey, secret, chain.url, "xpub", "127.0.0.1"]) {
      expect(named, `${hidden} is hidden from everyone`).not.toContain(hidden)
    }
    return readScrape(answer.text)
  })
  /** As soon as it is so. */
  const until = (holds: (scrape: Scrape) => boolean) =>
    Effect.repeat(scrape, { until: holds, schedule: Schedule.spaced("20 millis") }).pipe(Effect.zipRight(scrape))
  const endpoint = Effect.fnUntraced(function* (path: string) {
    const hook = { url: inbox.url + path, events: StatusEventKind.literals, secret }
    return (yield* daemon.call<{ id: string }>("POST", "/v1/webhooks", hook)).body.id
  })
  return { chain, other, inbox, daemon, scrape, until, endpoint }
})

describe("metrics", () => {
  liveTest("count a payment that is paid and delivered", function* () {
    const { chain, daemon, endpoint, inbox, other, scrape, until } = yield* shop
    yield* endpoint("/hook")
    const before = yield* scrape
    expect(before.value("tilld_payments_total", { ...network, event: "created" })).toBe(0)
    expect(before.value("tilld_webhook_attempts_total", { outcome: "delivered" })).toBe(0)
    expect(before.value("tilld_build_info", { version: "0.1.0", node: process.version })).toBe(1)

    const payment = yield* daemon.create({ ...order, webhookUrl: `${inbox.url}/own` })
    yield* daemon.create(order)
    expect((yield* scrape).value("tilld_open_payments", network)).toBe(2)
    yield* chain.mine()
    yield* daemon.hasRead(chain)
    yield* other.set("drop")
    yield* pay(chain, payment)
    yield* chain.mine(confirmations)
    for (const path of ["/hook", "/own"]) {
      yield* inbox.take(path, payment, "payment.created", "payment.detecting", "payment.confirmed")
    }
    yield* daemon.payment(payment)

    const after = yield* until((scrape) => scrape.value("tilld_webhook_attempts_total", { outcome: "delivered" }) === 7)
    for (const [event, count] of Object.entries({ created: 2, detecting: 1, confirmed: 1, expired: 0, failed: 0 })) {
      expect(after.value("tilld_payments_total", { ...network, event }), event).toBe(count)
    }
    expect(after.value("tilld_open_payments", network)).toBe(1)
    expect(after.value("tilld_last_confirmed_time_seconds", network)).toBeGreaterThan(1e9)
    expect(after.value("tilld_webhook_attempt_duration_seconds_count")).toBe(7)
    expect(after.value("tilld_webhook_deliveries_failed_total")).toBe(0)
    const created = { route: "/v1/payments", method: "POST" }
    expect(after.value("tilld_http_requests_total", { ...created, status: "2xx" })).toBe(2)
    expect(after.value("tilld_http_request_duration_seconds_count", created)).toBe(2)
    const got = { route: "/v1/payments/:id", method: "GET", status: "2xx" }
    expect(after.value("tilld_http_requests_total", got)).toBe(1)

    const { number } = yield* Effect.orDie(chain.head)
    expect(after.value("tilld_chain_head_block", network)).toBe(number)
    expect(after.value("tilld_chain_lag_blocks", network)).toBe(0)
    expect(after.value("tilld_chain_ready", network)).toBe(1)
    expect(after.value("tilld_chain_head_age_seconds", network)).toBeLessThan(60)
    expect(after.value("tilld_chain_provider_usable", { ...network, provider: "0" })).toBe(1)
    // It is in cooldown for moments only, so that its gauge may be either: its failure count stays.
    expect([0, 1]).toContain(after.value("tilld_chain_provider_usable", { ...network, provider: "1" }))
    // Which call met it first depends on whether it had been checked before.
    expect(after.labelled("tilld_rpc_calls_total", "outcome")).toContain("unreachable")
    const heads = { ...network, host: new URL(chain.url).host, method: "eth_getBlockByNumber", outcome: "ok" }
    expect(after.value("tilld_rpc_calls_total", heads)).toBeGreaterThan(confirmations)

    expect(after.value("tilld_price_age_seconds", { currency: "ETH", source: "fixed" })).toBe(0)
    expect(after.value("tilld_price_spread_ratio", { currency: "ETH" })).toBeUndefined()

    const [commits = 0, commands = 0] = ["commits", "commands"].map((what) => after.value(`tilld_store_${what}_total`))
    expect(commits).toBeGreaterThan(before.value("tilld_store_commits_total") ?? 0)
    expect(commands).toBeGreaterThanOrEqual(commits)
    expect(after.value("tilld_store_readable")).toBe(1)
    expect(after.value("tilld_store_file_bytes", { file: "database" })).toBeGreaterThan(10_000)
    expect(after.value("tilld_store_file_bytes", { file: "wal" })).toBeGreaterThan(10_000)
    expect(after.value("tilld_process_resident_memory_bytes")).toBeGreaterThan(20e6)
    expect(after.value("tilld_process_cpu_seconds_total")).toBeGreaterThan(
      before.value("tilld_process_cpu_seconds_total") ?? Number.NaN
    )
    expect(after.value("tilld_event_loop_lag_max_seconds")).toBeGreaterThanOrEqual(0)
  })

  liveTest("are answered while the store is busy, and keep no path, method or key of a client", function* () {
    const { daemon, scrape } = yield* shop
    const stranger = yield* makeClient(daemon.url)
    const creates = Effect.forEach(
      Array.from({ length: 300 }, (_, i) => `busy ${i}`),
      (merchantRef) => daemon.call("POST", "/v1/payments", { ...order, merchantRef }),
      { concurrency: 32, discard: true }
    )
    const paths = ["/v1/payments/pay_made-up", "/made-up", "/made-up?x=made-up", "/v1/made-up%ff"]
    const asked = Effect.forEach(paths, (path) => stranger("PUT", path, { key: "made-up" }), {
      concurrency: 1
    })
    const scrapes = Effect.replicateEffect(scrape, 5, { concurrency: 2 })
    yield* Effect.all([creates, asked, scrapes], { concurrency: "unbounded" })
    const after = yield* scrape
    const labels = after.samples.flatMap((sample) => Object.values(sample.labels))
    expect(labels.filter((label) => /made-up|PUT/.test(label))).toEqual([])
    expect(after.value("tilld_http_requests_total", { route: "none", status: "4xx" })).toBe(3)
    expect(after.value("tilld_http_requests_total", { route: "/v1/payments/:id", method: "other" })).toBe(1)
    expect(after.value("tilld_payments_total", { ...network, event: "created" })).toBe(300)
  })

  liveTest("count requests beyond a limit", function* () {
    const { home } = yield* homeOn("base")
    const daemon = yield* serve(home, undefined, { TILLD_ADMIN__PORT: "0", TILLD_LIMITS__PER_MINUTE: "2" })
    const admin = yield* adminOf(daemon)
    for (let i = 0; i < 5; i++) yield* daemon.call("GET", "/v1/payments")
    const scrape = readScrape((yield* admin("GET", "/metrics")).text)
    expect(scrape.value("tilld_http_rate_limited_requests_total")).toBe(3)
    expect(scrape.value("tilld_http_requests_total", { route: "/v1/payments", status: "2xx" })).toBe(2)
  })
})

/** What the test reads of a Grafana dashboard; `npm run test:tools` compares all of it with Grafana's schema. */
interface Dashboard {
  readonly panels: ReadonlyArray<{
    readonly id: number
    readonly type: string
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
    readonly targets?: ReadonlyArray<{ readonly expr: string }>
  }>
}

describe("docs/monitoring.md", () => {
  needs("curl")

  const section =
    readFileSync(join(root, "docs/monitoring.md"), "utf8")
      .split("## Monitor with Prometheus\n")[1]
      ?.split("\n## ")[0] ?? ""
  const block = (language: string) =>
    [...section.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(([, code = ""]) => code)

  liveTest(
    "its section turns metrics on, its command reads them, its table, the rules and the dashboard name existing ones",
    function* () {
      const [toml = ""] = block("toml")
      const { chain, home } = yield* homeOn("base")
      // The port may be taken on this machine.
      appendFileSync(home.config, toml.replace("port = 9090", "port = 0"))
      const daemon = yield* serve(home)
      const { annotations } = yield* daemon.logged("listening for the operator")
      // A chain that was not read yet has no head and no age.
      yield* daemon.hasRead(chain)
      const address = `127.0.0.1:${annotations["port"]}`
      const [command = ""] = block("sh")
      const { stdout } = spawnSync("bash", ["-c", command.replace("127.0.0.1:9090", address)], { encoding: "utf8" })
      expect(stdout).toMatch(/^tilld_webhook_oldest_due_age_seconds 0$/m)

      const admin = yield* makeClient(`http://${address}`)
      const scrape = readScrape((yield* admin("GET", "/metrics")).text)
      const rows = section.split("\n").filter((line) => line.startsWith("| `tilld_"))
      const documented = rows.flatMap((row) => [
        ...(row.split("|")[1] ?? "").matchAll(/`(tilld_\w+)(?:\{([\w,]+)\})?`/g)
      ])
      const labelsOf = new Map(documented.map(([, name = "", labels = ""]) => [name, labels]))
      // Of no two sources, of no quota and of no payment there is nothing to show.
      const mayBeAbsent = [
        "tilld_account_quota_bytes",
        "tilld_account_quota_used_ratio",
        "tilld_price_spread_ratio",
        "tilld_uncollected",
        "tilld_unaccounted",
        "tilld_audited_time_seconds",
        "tilld_last_confirmed_time_seconds",
        "tilld_backup_age_seconds",
        "tilld_condition",
        "tilld_condition_since",
        "tilld_node_active"
      ]
      expect([...scrape.types.keys(), ...mayBeAbsent].sort()).toEqual([...labelsOf.keys()].sort())
      for (const { labels, name } of scrape.samples) {
        const family = scrape.types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "")
        const { le: _, ...own } = labels
        expect(Object.keys(own).join(","), name).toBe(labelsOf.get(family))
      }
      expect(block("yaml").join("\n")).toContain('targets: ["127.0.0.1:9090"]')
      for (const file of ["tilld.rules.yml", "grafana-dashboard.json"]) {
        expect(section).toContain(`config/${file}`)
        const text = readFileSync(join(root, "config", file), "utf8")
        const used = [...text.matchAll(/\b(tilld_\w+?)(?:_bucket)?\b/g)].map(([, name]) => name)
        expect(used.length, file).toBeGreaterThan(5)
        for (const name of used) expect([...labelsOf.keys()], file).toContain(name)
        // Labels that an expression chooses by.
        for (const [, name = "", matchers = ""] of text.matchAll(/\b(tilld_\w+)\{([^}]*)\}/g)) {
          const chosen = [...matchers.matchAll(/(\w+)(?==~|!=|!~|=)/g)].map(([label]) => label)
          const own = [...(labelsOf.get(name)?.split(",") ?? []), "instance"]
          for (const label of chosen) if (!name.endsWith("_bucket")) expect(own, `${file}: ${name}`).toContain(label)
        }
      }
      const dashboard: Dashboard = JSON.parse(readFileSync(join(root, "config/grafana-dashboard.json"), "utf8"))
      const ids = dashboard.panels.map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      for (const { gridPos, targets = [], type } of dashboard.panels) {
        expect(gridPos.x + gridPos.w, `${type} of ${gridPos.y}`).toBeLessThanOrEqual(24)
        expect(targets.length > 0).toBe(type !== "row")
      }
      const outcomes = new Set(scrape.labelled("tilld_webhook_attempts_total", "outcome"))
      const [, listed = ""] = /An attempt's outcome is ([^.]*)\./.exec(section) ?? []
      expect(new Set([...listed.matchAll(/`(\w+)`/g)].map(([, name]) => name))).toEqual(outcomes)
    }
  )
})
