/**
 * The watchers of all configured chains, and what the rooms above need of them: health, gas prices, and how far this
 * machine's clock is behind a chain's. `App.ts` runs them; payments call `refresh`, `behind` and `wake`, checkout
 * pages `viewed`, quotes `gas`.
 */
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { WatchedAddresses } from "./Chains/ledger/WatchedAddresses.ts"
import { lastPayment } from "./Chains/ledger/WatchedAddressesRepo.ts"
import type { Gas } from "./Chains/providers/gas.ts"
import { HeadClock } from "./Chains/providers/HeadClock.ts"
import { Networks } from "./Chains/providers/Networks.ts"
import { makeWatcher, type Watcher } from "./Chains/watcher/Watcher.ts"
import type { ChainHealth } from "./Chains/watcher/watcherState.ts"
import { type Network, networkKey } from "./Domain/Chain.ts"
import { Settings } from "./Settings.ts"
import { Reader } from "./Sql.ts"

export type { ChainHealth } from "./Chains/watcher/watcherState.ts"

/** How often the providers that do not serve are looked at. */
const standbyInterval = "4 minutes"

export class Chains extends Context.Tag("tilld/Chains")<
  Chains,
  {
    /** Runs the watchers until they are interrupted. A chain that cannot be read delays no other; a defect ends all. */
    readonly run: Effect.Effect<never>
    readonly health: Effect.Effect<ReadonlyArray<ChainHealth>>
    /** The gas price; undefined where it is not known, or older than two minutes. */
    readonly gas: (network: Network) => Effect.Effect<Gas | undefined>
    /** Runs an effect between two ticks of a network's watcher, for repairs. Throws for a network that is not configured. */
    readonly exclusively: (network: Network) => Watcher["exclusively"]
    /** Called when a payment was created: its chain's watcher polls at once, unless it is hot anyway. */
    readonly wake: (network: Network) => void
    /** Called when the page of an open payment is looked at, and again while it is open: its chain is hot meanwhile. */
    readonly viewed: (network: Network) => void
    /**
     * Milliseconds by which this machine's clock is behind a chain's, by the time of its last head; undefined before this
     * process has seen one.
     */
    readonly behind: (network: Network) => number | undefined
    /**
     * Called before a payment is created: reads a new head, because only money above the creation head counts. Two seconds at
     * most.
     */
    readonly refresh: (network: Network) => Effect.Effect<void>
    /** The same for operators, once in five seconds however often they ask. */
    readonly look: (network: Network) => Effect.Effect<void>
  }
>() {
  static readonly layer = Layer.effect(
    Chains,
    Effect.gen(function* () {
      const settings = yield* Settings
      const networks = yield* Networks
      const matchSet = yield* WatchedAddresses
      const clock = yield* Effect.clock
      const last = yield* lastPayment(yield* Reader)
      const headClock = new HeadClock(Duration.toMillis(settings.payments.clockTolerance), last)
      const watchers = yield* Effect.forEach(
        settings.chains,
        (chain) => makeWatcher(chain, networks.providersOf(chain), headClock),
        { concurrency: 1 }
      )
      const byNetwork = new Map(watchers.map((watcher) => [networkKey(watcher), watcher]))
      const looks = settings.chains.map((chain) =>
        Effect.forever(Effect.zipRight(Effect.sleep(standbyInterval), networks.providersOf(chain).look)).pipe(
          Effect.annotateLogs({ service: "watcher", chain: chain.chain, mode: chain.mode })
        )
      )
      const workers = [matchSet.keep, ...looks, ...watchers.map((watcher) => watcher.run)]

      return {
        run: Effect.zipRight(Effect.all(workers, { concurrency: "unbounded", discard: true }), Effect.never),
        health: Effect.map(Clock.currentTimeMillis, (now) =>
          watchers.map((watcher) => {
            const ahead = headClock.ahead(watcher, clock)
            return { ...watcher.health(now), ...(ahead === undefined ? {} : { headAheadSeconds: ahead / 1000 }) }
          })
        ),
        gas: (network) => byNetwork.get(networkKey(network))?.gas ?? Effect.succeed(undefined),
        exclusively: (network) => {
          const watcher = byNetwork.get(networkKey(network))
          if (watcher === undefined) throw new Error(`chains.${networkKey(network)} is not configured`)
          return watcher.exclusively
        },
        wake: (network) => byNetwork.get(networkKey(network))?.wake(),
        viewed: (network) => byNetwork.get(networkKey(network))?.viewed(),
        behind: (network) => headClock.behind(network, clock),
        refresh: (network) => byNetwork.get(networkKey(network))?.refresh ?? Effect.void,
        look: (network) => byNetwork.get(networkKey(network))?.look ?? Effect.void
      }
    })
  )
}
