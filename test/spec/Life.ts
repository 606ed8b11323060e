import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, Layer, Scope, TestClock } from "effect"
import { appLayer } from "../../src/App.ts"
import { Chains } from "../../src/Chains.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { HttpServer } from "../../src/Server.ts"
import { load } from "../../src/Settings.ts"
import { Reader } from "../../src/Sql.ts"
import { TestApi } from "../lib/api.ts"
import { testXpub } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"

/** Where an installation lives. What it does not need is left to the defaults of the configuration. */
export interface Place {
  readonly config: string
  readonly masterKey: string
}

export interface PlaceOptions {
  readonly chain?: LocalChain
  /** The authority of the receivers. */
  readonly caFile?: string
}

const chainSection = ({ chainId, tokens, url }: LocalChain) => `
[chains.base.test]
rpc_urls = ["${url}"]
chain_id = ${chainId}
confirmations = 3
poll_interval = "1 second"
balance_interval = "1 second"
[chains.base.test.tokens]
USDC = { address = "${tokens.USDC?.address}", decimals = 6 }
`

const nowhere = `
[chains.base.test]
rpc_urls = ["http://127.0.0.1:1"]
`

export const makePlace = ({ caFile = "", chain }: PlaceOptions = {}) =>
  Effect.map(temporaryFolder, (folder): Place => {
    const config = join(folder, "tilld.toml")
    writeFileSync(
      config,
      `
[server]
port = 0
public_url = "http://127.0.0.1"
[database]
path = "${join(folder, "tilld.db")}"
[wallets]
test = "${testXpub}"
[payments]
look_ahead = 20
clock_tolerance = "3650 days"
[webhooks]
allow_targets = ["127.0.0.1/32"]
extra_ca_file = "${caFile}"
[rates]
sources = ["fixed"]
fixed = { ETH = "2500", USDC = "1", EUR = "1.10" }
[log]
level = "error"
${chain === undefined ? nowhere : chainSection(chain)}`
    )
    return { config, masterKey: randomBytes(32).toString("base64") }
  })

const appOf = ({ config, masterKey }: Place) =>
  Layer.unwrapEffect(
    Effect.map(load({ path: config, env: {} }), (settings) => appLayer(settings, { TILLD_MASTER_KEY: masterKey }))
  )

/**
 * Runs a test on what a server stands on, in this process and on this test's clock. The workers are the test's to fork.
 * What it stores is there the next time.
 */
export const living =
  (place: Place) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.provide(test, appOf(place))

/** The same, with the server and a client. */
export const serving =
  (place: Place) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const app = TestApi.layer.pipe(Layer.provideMerge(HttpServer.layer), Layer.provideMerge(appOf(place)))
      const scope = yield* Scope.make()
      const exit = yield* Effect.exit(
        Effect.flatMap(Layer.buildWithScope(app, scope), (made) => Effect.provide(test, made))
      )
      const closing = yield* Effect.fork(Scope.close(scope, exit))
      // A stop waits for what its connections still bring, by the test's clock.
      const passing = Effect.forever(Effect.zipRight(TestClock.adjust("100 millis"), eventLoopTurn))
      yield* Effect.raceFirst(Fiber.join(closing), passing)
      return yield* exit
    })

/** Reads the chain until its gas price is known, which is for two minutes. */
export const readGas = Effect.flatMap(Chains, ({ gas, run }) => {
  const known = Effect.zipLeft(gas({ chain: "base", mode: "test" }), eventLoopTurn)
  return Effect.raceFirst(Effect.repeat(known, { until: (found) => found !== undefined }), run)
})

/** A delivery and its attempts, as the store has them. Times in Unix milliseconds. */
export interface Delivery {
  readonly url: string
  readonly status: string
  readonly attempts: ReadonlyArray<{
    readonly startedAt: number
    readonly endedAt: number
    readonly error: string | null
  }>
}

/** Every delivery by its place in the queue. */
export const deliveries = Effect.gen(function* () {
  const reader = yield* Reader
  const rows = yield* reader.all<Omit<Delivery, "attempts"> & { readonly sequence: number }>(
    "SELECT sequence, url, status FROM deliveries ORDER BY sequence"
  )
  return yield* Effect.forEach(rows, ({ sequence, status, url }) => {
    const attempts = reader.all<Delivery["attempts"][number]>(
      "SELECT started_at AS startedAt, ended_at AS endedAt, error FROM attempts WHERE delivery = ? ORDER BY number",
      [sequence]
    )
    return Effect.map(attempts, (made): Delivery => ({ url, status, attempts: made }))
  })
})

/** Every delivery, once each has so many attempts: requests and the store follow no test clock. */
export const attempted = (count: number) =>
  Effect.repeat(Effect.zipLeft(deliveries, eventLoopTurn), {
    until: (all) => all.every(({ attempts }) => attempts.length >= count)
  })
