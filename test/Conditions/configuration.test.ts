// What the daemon knows of its configuration: the file beside what it runs with, and what changed between two starts.
import { writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import { HDKey } from "viem/accounts"
import { confirmReplaced, makeConfiguration, noteConfiguration } from "../../src/Conditions/configuration.ts"
import { keyOf } from "../../src/Conditions/standing.ts"
import { load, Settings } from "../../src/Settings.ts"
import * as Sql from "../../src/Sql.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { liveXpub, testXpub } from "../lib/settings.ts"
import { rows, temporaryDatabase } from "../lib/store.ts"

const otherXpub = HDKey.fromMasterSeed(Buffer.alloc(64, 7)).derive("m/44'/60'/0'").publicExtendedKey

interface Edited {
  readonly live?: string
  readonly test?: string
  readonly level?: string
  readonly urls?: string
  readonly port?: number
}

const text = ({ level = "info", live = liveXpub, port = 8080, test = testXpub, urls = "one.example/k3y" }: Edited) => `
[server]
public_url = "https://pay.example.com"
port = ${port}
[wallets]
live = "${live}"
test = "${test}"
[log]
level = "${level}"
[chains.base.live]
rpc_urls = ["https://${urls}"]
`

/** A machine whose file can be edited, and on which the daemon can be started. */
const machine = Effect.map(temporaryDatabase, (path) => {
  const file = join(dirname(path), "tilld.toml")
  const write = (content: string) => Effect.sync(() => writeFileSync(file, content))
  /** A start with the file as it is. `look`: what is wrong, ten seconds later; `acts`: the audit log's details. */
  const start = Effect.gen(function* () {
    const settings = yield* load({ path: file, env: {} })
    const services = yield* Layer.build(Layer.merge(Sql.layer(path), Layer.succeed(Settings, settings)))
    yield* Effect.provide(noteConfiguration, services)
    const { conditions } = yield* Effect.provide(makeConfiguration, services)
    const acts = rows<{ act: string; detail: string }>("SELECT act, detail FROM audit ORDER BY sequence")
    return {
      look: Effect.zipRight(TestClock.adjust("1 minute"), conditions),
      acts: Effect.map(Effect.provide(acts, services), (all) => all.map(({ detail }) => JSON.parse(detail))),
      confirm: Effect.provide(
        confirmReplaced(() => undefined),
        services
      ),
      known: Effect.map(Effect.provide(rows("SELECT * FROM configuration"), services), JSON.stringify)
    }
  })
  return { edit: (over: Edited) => write(text(over)), write, start }
})

clockTest("the file is compared with what runs: the keys are named, and how each is taken", function* () {
  const { edit, start, write } = yield* machine
  yield* edit({})
  const { look } = yield* start
  expect(yield* look).toEqual([])
  yield* edit({ level: "debug", urls: "one.example/0ther" })
  const [changed] = yield* look
  expect(changed).toMatchObject({ kind: "configuration_differs", severity: "ticket" })
  expect(changed?.summary).toMatch(/tilld runs with: chains\.base\.live\.rpc_urls, log\.level$/)
  expect(changed?.remedy).toBe("systemctl reload tilld takes it")
  yield* edit({ port: 8081 })
  expect((yield* look)[0]?.remedy).toBe("systemctl restart tilld takes it: server.port cannot be taken by a reload")
  yield* write("[server")
  expect((yield* look)[0]?.summary).toMatch(/^the file cannot be used: .*tilld\.toml: line 1, column 2: /)
  yield* edit({})
  expect(yield* look).toEqual([])
  yield* TestClock.setTime(0)
  yield* edit({ level: "debug" })
  expect(yield* look).toHaveLength(1)
})

clockTest("what changed between two starts is in the audit log, and no secret with it", function* () {
  const { edit, start } = yield* machine
  yield* edit({})
  const first = yield* Effect.scoped(Effect.flatMap(start, ({ acts }) => acts))
  expect(first).toEqual([])
  yield* edit({ level: "debug", urls: "two.example/0ther", live: otherXpub })
  const { acts, known } = yield* start
  expect(yield* acts).toEqual([
    {
      "chains.base.live.rpc_urls": expect.stringMatching(
        /^\[https:\/\/one\.example\/… \(sha256 \w{12}\)\] → \[https:\/\/two\.example\/… \(sha256 \w{12}\)\]$/
      ),
      "log.level": '"info" → "debug"',
      "wallets.live": expect.stringMatching(/^sha256 \w{12} → sha256 \w{12}$/)
    }
  ])
  expect(yield* known).not.toMatch(/k3y|0ther|xpub/)
})

clockTest("every key is named, however many changed", function* () {
  const { edit, start, write } = yield* machine
  yield* edit({})
  yield* Effect.scoped(start)
  yield* write(`${text({})}[chains.polygon.live]\nrpc_urls = ["https://two.example"]\n`)
  const names = (yield* (yield* start).acts).flatMap(Object.keys)
  expect(names).toEqual(
    expect.arrayContaining(["chains.polygon.live.chain_id", "chains.polygon.live.tokens.WBTC.address"])
  )
  expect(names).not.toContain("leftOut")
})

clockTest(
  "a replaced wallet is told of for a week, over further starts, or until an operator confirms it",
  function* () {
    const { edit, start } = yield* machine
    const found = Effect.scoped(
      Effect.map(
        Effect.flatMap(start, ({ look }) => look),
        (all) => all.map((one) => `${one.severity} ${keyOf(one)}`)
      )
    )
    yield* edit({})
    expect(yield* found).toEqual([])
    yield* edit({ live: otherXpub })
    expect(yield* found).toEqual(["page wallet_changed live"])
    expect(yield* found).toEqual(["page wallet_changed live"])
    yield* edit({ live: otherXpub, test: liveXpub })
    expect(yield* found).toEqual(["page wallet_changed live", "ticket wallet_changed test"])
    yield* Effect.scoped(
      Effect.flatMap(start, ({ confirm }) =>
        Effect.map(confirm, (modes) => expect(modes).toEqual({ confirmed: ["live", "test"] }))
      )
    )
    expect(yield* found).toEqual([])
    yield* edit({ live: otherXpub })
    expect(yield* found).toEqual(["ticket wallet_changed test"])
    yield* TestClock.adjust("7 days")
    expect(yield* found).toEqual([])
  }
)
