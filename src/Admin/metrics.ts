import { BigDecimal, Clock, Effect } from "effect"
import { type ChainHealth, Chains } from "../Chains.ts"
import { decimalsOn, decimalText } from "../Domain/amountDecimals.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import { Uncollected, type UncollectedAmount } from "../Payments/addresses/Uncollected.ts"
import { Prices } from "../Quotes/Prices.ts"
import { Settings, type SettingsShape } from "../Settings.ts"
import type { Family } from "../Telemetry/instruments.ts"
import { familiesOf, Metrics } from "../Telemetry/Metrics.ts"
import { exposition } from "../Telemetry/prometheusText.ts"
import { type WorkerHealth, Workers } from "../Telemetry/Workers.ts"
import type { MetricsApi } from "./Api.ts"
import { gauge, type Measured } from "./gauge.ts"
import { makeProcessFamilies } from "./processFamilies.ts"
import { makeStoreFamilies } from "./storeFamilies.ts"

const chainFamilies = (health: ReadonlyArray<ChainHealth>): ReadonlyArray<Family> => {
  const of = (valueOf: (chain: ChainHealth) => Measured[1]) =>
    health.map((chain): Measured => [{ chain: chain.chain, mode: chain.mode }, valueOf(chain)])
  return [
    gauge(
      "tilld_chain_ready",
      "Whether the chain is ready, as on /readyz.",
      of(({ ready }) => ready)
    ),
    gauge(
      "tilld_chain_troubled",
      "Whether a ready chain has a problem, as on /readyz.",
      of(({ ready, reason }) => ready && reason !== undefined)
    ),
    gauge(
      "tilld_chain_head_block",
      "Number of the last scanned block.",
      of(({ head }) => head)
    ),
    gauge(
      "tilld_chain_lag_blocks",
      "Blocks from the last scanned block to the head that the provider last reported.",
      of(({ lagBlocks }) => lagBlocks)
    ),
    gauge(
      "tilld_clock_behind_chain_seconds",
      "Time of the chain's last head minus this machine's clock when it was read; negative by the head's age.",
      of(({ headAheadSeconds }) => headAheadSeconds)
    ),
    gauge(
      "tilld_chain_decides_alone_seconds",
      "Seconds without a response of any other provider while one of several decides alone, 0 otherwise.",
      of(({ decidesAloneSeconds = 0 }) => decidesAloneSeconds)
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

const workerFamily = (health: ReadonlyArray<WorkerHealth>): Family =>
  gauge(
    "tilld_worker_ready",
    "Whether a worker's ticks end in time; for the store: whether it is writable.",
    health.map(({ name, ready }) => [{ worker: name }, ready])
  )

const priceFamilies = (prices: Prices["Type"], now: number): ReadonlyArray<Family> => {
  const status = prices.status()
  return [
    gauge(
      "tilld_price_usable",
      "Whether a price is usable for quotes: fresh, and from sources that agree.",
      status.map(({ price, symbol }) => [{ currency: symbol }, price !== undefined])
    ),
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

/** Of all accounts together. */
const waitingFamily = (networks: SettingsShape["chains"], waiting: ReadonlyArray<UncollectedAmount>): Family => {
  const sums = new Map<string, UncollectedAmount>()
  for (const row of waiting) {
    const key = `${row.chain} ${row.mode} ${row.currency}`
    sums.set(key, { ...row, amount: row.amount + (sums.get(key)?.amount ?? 0n) })
  }
  return gauge(
    "tilld_uncollected",
    "What was received and not collected by tilld sweep, in whole units of the currency; counted once an hour.",
    [...sums.values()].map(({ amount, chain, currency, mode }) => {
      const text = decimalText(`${amount}`, decimalsOn(networks, { chain, mode }, currency))
      return [{ chain, mode, currency }, text === undefined ? undefined : Number(text)]
    })
  )
}

export const metricsHandlers = Effect.gen(function* () {
  const chains = yield* Chains
  const prices = yield* Prices
  const uncollected = yield* Uncollected
  const { chains: networks } = yield* Settings
  const counted = yield* Metrics
  const workers = yield* Workers
  const processFamilies = yield* makeProcessFamilies
  const storeFamilies = yield* makeStoreFamilies

  const handlers: Handlers<typeof MetricsApi> = {
    metrics: () =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const families = [
          ...processFamilies(),
          ...familiesOf(counted),
          workerFamily(yield* workers.health),
          ...chainFamilies(yield* chains.health),
          ...priceFamilies(prices, now),
          waitingFamily(networks, uncollected.waiting()),
          ...(yield* storeFamilies())
        ]
        return answer(exposition(families))
      })
  }
  return handlers
})
