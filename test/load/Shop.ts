import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { Effect, Schedule } from "effect"
import { request } from "undici"
import { startReceiver } from "../../src/Sandbox/Receiver.ts"
import { createKey, temporaryFolder } from "../bench/daemon.ts"
import { runTilld } from "../bench/processes.ts"
import { freePort } from "../lib/loopback.ts"
import { type AloneDaemon, startAlone } from "../lib/offlineDaemon.ts"
import { proxies } from "../lib/proxies.ts"
import { start } from "../lib/tilld.ts"

/** When webhooks of payments arrived for the first time, by `performance.now()`. */
export interface Arrivals {
  readonly at: (payment: string) => number | undefined
  /** Completes when all of them have arrived, or after ten seconds. */
  readonly whole: (payments: ReadonlyArray<string>) => Effect.Effect<void>
}

/** A daemon with an honest merchant, whose receiver gets an event of each payment. */
export interface Shop extends AloneDaemon {
  /** The next of the merchant's keys: each has its own rate. */
  readonly nextKey: () => string
  readonly arrived: Arrivals
}

/** @param keys how many the merchant has */
export const startShop = Effect.fn("test.startShop")(function* (
  over: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {},
  keys = 1
) {
  const caFile = join(yield* temporaryFolder, "ca.pem")
  const arrivals = new Map<string, number>()
  const receiver = yield* startReceiver({
    caFile,
    behaviour: ({ body }) => {
      const { data }: { readonly data: { readonly id: string } } = JSON.parse(body.toString("utf8"))
      if (!arrivals.has(data.id)) arrivals.set(data.id, performance.now())
      return 204
    }
  }).pipe(Effect.provide(NodeFileSystem.layer))
  const daemon = yield* startAlone({ ...over, webhooks: { allow_targets: ["127.0.0.0/8"], extra_ca_file: caFile } })
  const endpoint = { url: receiver.url, events: ["payment.created"], secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }
  const answer = yield* Effect.promise(() =>
    request(`http://127.0.0.1:${daemon.port}/v1/webhooks`, {
      method: "POST",
      headers: { "x-api-key": daemon.key, "content-type": "application/json" },
      body: JSON.stringify(endpoint)
    })
  )
  if (answer.statusCode !== 201) return yield* Effect.dieMessage(`no endpoint: ${answer.statusCode}`)
  const arrived: Arrivals = {
    at: (payment) => arrivals.get(payment),
    whole: (payments) =>
      Effect.sync(() => payments.every((payment) => arrivals.has(payment))).pipe(
        Effect.repeat({
          schedule: Schedule.intersect(Schedule.spaced("50 millis"), Schedule.recurs(200)),
          until: (all) => all
        }),
        Effect.asVoid
      )
  }
  const more = yield* Effect.replicateEffect(createKey(daemon.installation), keys - 1)
  const all = [daemon.key, ...more]
  let turn = 0
  const shop: Shop = { ...daemon, arrived, nextKey: () => all[turn++ % all.length] ?? daemon.key }
  return shop
})

/** The same behind a proxy, with the file of config/proxy: its clients speak HTTP without TLS. */
export const startBehind = Effect.fn("test.startBehind")(function* (program: keyof typeof proxies) {
  const server = { port: 0, public_url: "http://127.0.0.1:8080", trusted_proxies: ["127.0.0.1/32"] }
  const shop = yield* startShop({ server, accounts: { quota_bytes: 100_000_000_000 } })
  const [folder, port, plain] = [yield* temporaryFolder, yield* freePort, yield* freePort]
  const { args, started } = proxies[program]
  const place = { folder, tilld: `127.0.0.1:${shop.port}`, port, plain, tls: false }
  const running = yield* start(program, args(place), { cwd: folder, env: { HOME: folder } })
  yield* running.line(started)
  const behind: Shop = { ...shop, port }
  return behind
})

/** A key of an account of its own. */
export const createStranger = Effect.fn("test.createStranger")(function* ({ installation: { config, env } }: Shop) {
  const account = yield* runTilld<{ id: string }>(
    ["accounts", "create", "--config", config, "--name", "hostile", "--shared-wallet"],
    env
  )
  const args = ["keys", "create", "--config", config, "--mode", "test", "--name", "hostile", "--account", account.id]
  return (yield* runTilld<{ key: string }>(args, env)).key
})
