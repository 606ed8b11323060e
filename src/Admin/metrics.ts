import { BigDecimal, Clock, Effect } from "effect"
import { type ChainHealth, Chains } from "../Chains.ts"
import { answer, type Handlers } from "../Http/Handler.ts"
import { Prices } from "../Quotes/Prices.ts"
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
      "Whether the chain is read as it should be, as /readyz says.",
      of(({ ready }) => ready)
    ),
    gauge(
      "tilld_chain_troubled",
      "Whether something is wrong with a chain that is read, as /readyz says.",
      of(({ ready, reason }) => ready && reason !== undefined)
    ),
    gauge(
      "tilld_chain_head_block",
      "Every block up to this number has been read.",
      of(({ head }) => head)
    ),
    gauge(
      "tilld_chain_lag_blocks",
      "Blocks that the chain is ahead of that, as its provider last said.",
      of(({ lagBlocks }) => lagBlocks)
    ),
    gauge(
      "tilld_clock_behind_chain_seconds",
      "By how much this machine's clock was behind the time of the chain's last head when that was read; negative by the head's age.",
      of(({ headAheadSeconds }) => headAheadSeconds)
    ),
    gauge(
      "tilld_chain_decides_alone_seconds",
      "For how long no other provider has responded where one of several decides alone, 0 where none does.",
      of(({ decidesAloneSeconds = 0 }) => decidesAloneSeconds)
    ),
    gauge(
      "tilld_chain_provider_usable",
      "Whether a provider is used, 1, or unhealthy, 0, by its place in rpc_urls from 0 on.",
      health.flatMap(({ chain, mode, providers }) =>
        providers.map(({ healthy }, index): Measured => [{ chain, mode, provider: String(index) }, healthy])
      )
    )
  ]
}

const workerFamily = (health: ReadonlyArray<WorkerHealth>): Family =>
  gauge(
    "tilld_worker_ready",
    "Whether a worker's ticks end in time; of the store: whether it takes writes.",
    health.map(({ name, ready }) => [{ worker: name }, ready])
  )

const priceFamilies = (prices: Prices["Type"], now: number): ReadonlyArray<Family> => {
  const status = prices.status()
  return [
    gauge(
      "tilld_price_usable",
      "Whether there is a price to quote by: fresh, and of sources that agree.",
      status.map(({ price, symbol }) => [{ currency: symbol }, price !== undefined])
    ),
    gauge(
      "tilld_price_age_seconds",
      "How long ago the price of a source was true, however old that is; 0 for configured ones.",
      prices
        .told()
        .map(({ observedAt, source, symbol }) => [
          { currency: symbol, source },
          Number.isFinite(observedAt) ? Math.max(0, now - observedAt) / 1000 : 0
        ])
    ),
    gauge(
      "tilld_price_spread_ratio",
      "The highest fresh price less the lowest, as a part of the lowest; left out where no two can be compared.",
      status.map(({ spread, symbol }) => [{ currency: symbol }, spread && BigDecimal.unsafeToNumber(spread)])
    )
  ]
}

export const metricsHandlers = Effect.gen(function* () {
  const chains = yield* Chains
  const prices = yield* Prices
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
          ...(yield* storeFamilies())
        ]
        return answer(exposition(families))
      })
  }
  return handlers
})
