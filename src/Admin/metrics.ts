import { monitorEventLoopDelay } from "node:perf_hooks"
import { BigDecimal, Clock, Effect } from "effect"
import { Gauge, Registry } from "prom-client"
import packageJson from "../../package.json" with { type: "json" }
import { type ChainHealth, Chains } from "../Chains.ts"
import { Conditions, type HeldCondition } from "../Conditions/standing.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import { activeNode } from "../Http/standby.ts"
import { Uncollected } from "../Payments/addresses/Uncollected.ts"
import { Prices } from "../Quotes/Prices.ts"
import { Settings } from "../Settings.ts"
import { readDescriptors } from "../Telemetry/host.ts"
import { Metrics } from "../Telemetry/Metrics.ts"
import type { MetricsApi } from "./Api.ts"
import { amountFamily, type Family, gauge, type Measured, makeStoreFamilies, single } from "./storeFamilies.ts"

/** Milliseconds between two samples of the event loop's lag. Each sample wakes the process up. */
const resolution = 20

/** The period of the lag percentiles. All scrapes within a period get the same values. */
const window = "1 minute"

/** From nanoseconds between two samples to the lag of the second in seconds. */
const lateness = (nanos: number): number => Math.max(0, nanos / 1e6 - resolution) / 1000

/**
 * Metrics of the process: version, memory, event loop lag. Samples the event loop until the scope ends.
 */
export const makeProcessFamilies = Effect.gen(function* () {
  const delay = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const histogram = monitorEventLoopDelay({ resolution })
      histogram.enable()
      return histogram
    }),
    (histogram) => Effect.sync(() => histogram.disable())
  )
  const lag = () => {
    // Without samples the percentiles are meaningless.
    const [median, p99, worst] = delay.count === 0 ? [0, 0, 0] : [delay.percentile(50), delay.percentile(99), delay.max]
    return { median: lateness(median), p99: lateness(p99), worst: lateness(worst) }
  }
  let last: ReturnType<typeof lag> | undefined
  const turn = Effect.sync(() => {
    last = lag()
    delay.reset()
  })
  yield* Effect.forkScoped(Effect.forever(Effect.delay(turn, window)))

  return () => {
    const { median, p99, worst } = last ?? lag()
    const descriptors = readDescriptors()
    const late = "event loop lag in the last full minute; during the first minute, so far."
    return [
      gauge("tilld_build_info", "Version of tilld and of Node; always 1.", [
        [{ version: packageJson.version, node: process.version }, 1]
      ]),
      gauge("tilld_process_uptime_seconds", "Uptime of the process.", single(process.uptime())),
      gauge("tilld_process_resident_memory_bytes", "Resident memory.", single(process.memoryUsage.rss())),
      gauge("tilld_process_open_descriptors", "Open file descriptors, sockets included.", single(descriptors?.open)),
      gauge("tilld_process_max_descriptors", "Open descriptors allowed: LimitNOFILE.", single(descriptors?.limit)),
      gauge("tilld_event_loop_lag_p50_seconds", `Median ${late}`, single(median)),
      gauge("tilld_event_loop_lag_p99_seconds", `99th percentile of the ${late}`, single(p99)),
      gauge("tilld_event_loop_lag_max_seconds", `Maximum ${late}`, single(worst))
    ]
  }
})

/** The text of a scrape, in Prometheus' text format 0.0.4: these families, without those that have no sample, and what was counted. */
export const exposition = (families: ReadonlyArray<Family>, counted = new Registry()): Effect.Effect<string> => {
  const registry = Registry.merge([counted])
  for (const { help, name, samples } of families) {
    const [first] = samples
    if (first === undefined) continue
    const metric = new Gauge({ name, help, labelNames: Object.keys(first.labels), registers: [registry] })
    for (const { labels, value } of samples) metric.set(labels, value)
  }
  return Effect.promise(() => registry.metrics())
}

const chainFamilies = (health: ReadonlyArray<ChainHealth>): ReadonlyArray<Family> => {
  const of = (name: string, help: string, valueOf: (chain: ChainHealth) => Measured[1]) =>
    gauge(
      name,
      help,
      health.map((chain) => [{ chain: chain.chain, mode: chain.mode }, valueOf(chain)])
    )
  return [
    of("tilld_chain_ready", "Whether the chain is ready, as on /readyz.", ({ ready }) => ready),
    of("tilld_chain_head_block", "Number of the last scanned block.", ({ head }) => head),
    of(
      "tilld_chain_lag_blocks",
      "Blocks from the last scanned block to the head that the provider last reported.",
      ({ lagBlocks }) => lagBlocks
    ),
    of(
      "tilld_clock_behind_chain_seconds",
      "Time of the chain's last head minus this machine's clock when it was read; negative by the head's age.",
      ({ headAheadSeconds }) => headAheadSeconds
    ),
    gauge(
      "tilld_chain_provider_usable",
      "Whether a provider is healthy (1) or not (0), by its index in rpc_urls from 0.",
      health.flatMap(({ chain, mode, providers }) =>
        providers.map(({ healthy }, index): Measured => [{ chain, mode, provider: String(index) }, healthy])
      )
    )
  ]
}

/** Those that have held for their patience. */
const conditionFamilies = (held: ReadonlyArray<HeldCondition>): ReadonlyArray<Family> => {
  const open = held.filter(({ openedAt }) => openedAt !== undefined)
  const labelsOf = ({ kind, severity, subject }: HeldCondition) => ({ key: kind, severity, subject })
  return [
    gauge(
      "tilld_condition",
      "1 for each thing that is wrong, as tilld status has it; absent once it is over.",
      open.map((one) => [labelsOf(one), 1])
    ),
    gauge(
      "tilld_condition_since",
      "Unix time since which it holds.",
      open.map((one) => [labelsOf(one), one.since / 1000])
    )
  ]
}

const priceFamilies = (prices: Prices["Type"], now: number): ReadonlyArray<Family> => {
  const status = prices.status()
  return [
    gauge(
      "tilld_price_age_seconds",
      "Age in seconds of the last price of a source, even if expired; 0 for configured ones.",
      prices
        .reported()
        .map(({ observedAt, source, symbol }) => [
          { currency: symbol, source },
          Number.isFinite(observedAt) ? Math.max(0, now - observedAt) / 1000 : 0
        ])
    ),
    gauge(
      "tilld_price_spread_ratio",
      "(highest - lowest) / lowest of the fresh prices; absent with fewer than two.",
      status.map(({ spread, symbol }) => [{ currency: symbol }, spread && BigDecimal.unsafeToNumber(spread)])
    )
  ]
}

export const metricsHandlers = Effect.gen(function* () {
  const chains = yield* Chains
  const prices = yield* Prices
  const uncollected = yield* Uncollected
  const conditions = yield* Conditions
  const { chains: networks, node, postgres } = yield* Settings
  const { registry } = yield* Metrics
  const processFamilies = yield* makeProcessFamilies
  const storeFamilies = yield* makeStoreFamilies

  const handlers: Handlers<typeof MetricsApi> = {
    metrics: () =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const families = [
          ...processFamilies(),
          gauge(activeNode.name, activeNode.help, postgres === undefined ? [] : [[{ node: node.name }, 1]]),
          ...conditionFamilies(yield* conditions.now),
          ...chainFamilies(yield* chains.health),
          ...priceFamilies(prices, now),
          amountFamily(
            "tilld_uncollected",
            "What was received and not collected by tilld sweep, in whole units of the currency; counted once an hour.",
            networks,
            uncollected.waiting()
          ),
          ...(yield* storeFamilies())
        ]
        return answer(yield* exposition(families, registry))
      })
  }
  return handlers
})
