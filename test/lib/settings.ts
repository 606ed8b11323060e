import { Duration, Effect, Layer, Redacted } from "effect"
import { standardFiat } from "../../src/Domain/Currency.ts"
import { type ChainSettings, Settings, type SettingsShape } from "../../src/Settings.ts"

/** Account 1' of the phrase that every development tool publishes. */
export const testXpub =
  "xpub6Ce9NcJvTk372KjsGfWqbcex5DumjpNquQLApoeQUavSCjEc823BV1tb4rXUuPuht8h2hSxkg2EXUaKUJmniJvRZAELxypsCzBFdtosmV76"

/** Account 0' of the same phrase. */
export const liveXpub =
  "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP"

export const testChain = (over: Partial<ChainSettings> = {}): ChainSettings => ({
  chain: "base",
  mode: "test",
  rpcUrls: [Redacted.make("http://127.0.0.1:1")],
  chainId: 31337,
  confirmations: 3,
  pollInterval: Duration.seconds(1),
  balanceInterval: Duration.seconds(15),
  startBlock: "latest",
  accepting: true,
  tokens: [],
  wrongTokens: [],
  policies: [],
  knownBlocks: [],
  ...over
})

/** Fixed prices, or none. */
export const testRates = (fixed: Readonly<Record<string, string>> = {}): SettingsShape["rates"] => ({
  sources: ["fixed"],
  currencies: standardFiat,
  fixed,
  coinbaseUrl: "http://127.0.0.1:1",
  krakenUrl: "http://127.0.0.1:1"
})

export const testWebhooks = (over: Partial<SettingsShape["webhooks"]> = {}): SettingsShape["webhooks"] => ({
  allowTargets: [],
  denyTargets: [],
  extraCaFile: "",
  concurrency: 64,
  concurrencyPerEndpoint: 8,
  ...over
})

/** The defaults of the configuration, on a database at `path`; what limits requests would limit the tests. */
export const testSettings = (path: string, over: Partial<SettingsShape> = {}): SettingsShape => ({
  server: { host: "127.0.0.1", port: 0, publicUrl: "http://127.0.0.1:8080", trustedProxies: [] },
  admin: undefined,
  database: { path, markFolder: `${path}.marks` },
  postgres: undefined,
  node: { name: "test", folder: "/nowhere" },
  control: { readSocket: "" },
  limits: { perMinute: 1_000_000, perHour: 1_000_000 },
  wallets: { live: undefined, test: Redacted.make(testXpub) },
  payments: {
    settleGrace: Duration.seconds(60),
    lateWindow: Duration.days(30),
    toleranceBps: 0,
    soleProviderPatience: Duration.minutes(10),
    // Model chains may be mined hours ahead of a test clock.
    clockTolerance: Duration.days(3650),
    lookAhead: 200,
    dustFloorUsd: "0.10"
  },
  accounts: { quotaBytes: 1_000_000_000, perMinute: undefined, perHour: undefined },
  webhooks: testWebhooks(),
  rates: testRates(),
  quotes: { serviceFeeBps: 50 },
  checkout: { logoFolder: `${path}.logos` },
  portal: { enabled: true, allow: [] },
  log: { level: "info", format: "json" },
  telemetry: { otlpEndpoint: "" },
  retention: { requests: Duration.days(30), deliveries: Duration.days(90) },
  alerts: { url: "" },
  sweep: { allow: [], remindUsd: "0" },
  chains: [testChain()],
  values: {},
  // A file that has not changed.
  again: Effect.suspend(() => Effect.succeed(testSettings(path, over))),
  ...over
})

export const testSettingsLayer = (path: string, over: Partial<SettingsShape> = {}) =>
  Layer.succeed(Settings, testSettings(path, over))
