/**
 * What waits to be collected, by account, chain and currency: what the ledger has received, less what broadcasts have moved.
 * No chain is asked, so money that was moved by other means still counts; `tilld addresses --unswept` asks the chains. Counted
 * once an hour and after each broadcast, some payments at a time. `main` runs the worker.
 */
import { type BigDecimal, Clock, Context, Duration, Effect, Layer, Schedule, Schema } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import { decimalsOn, type NetworkTokens } from "../../Domain/Currency.ts"
import type { AccountId } from "../../Domain/Ids.ts"
import { type PriceOf, QuoteCurrency, usdOf } from "../../Domain/Quote.ts"
import { betweenParts } from "../../Http/parts.ts"
import { Reader } from "../../Sql.ts"
import { Workers } from "../../Telemetry/Workers.ts"
import * as ReceivedRepo from "./CollectedRepo.ts"
import { newest } from "./CollectedRepo.ts"

const interval = Duration.toMillis("1 hour")
/** Payments that are read at once. */
const window = 1_000

export interface UncollectedAmount extends Network {
  readonly account: AccountId
  readonly currency: string
  /** Base units, above 0. */
  readonly amount: bigint
}

const isPriced = Schema.is(QuoteCurrency)

/** What it is worth in USD; undefined where no price is known. */
export const worthOfWaiting = (
  networks: ReadonlyArray<NetworkTokens>,
  price: PriceOf,
  { amount, chain, currency, mode }: Omit<UncollectedAmount, "account">
): BigDecimal.BigDecimal | undefined => {
  const decimals = decimalsOn(networks, { chain, mode }, currency)
  return decimals === undefined || !isPriced(currency)
    ? undefined
    : usdOf(price, { symbol: currency, decimals }, amount)
}

export class Uncollected extends Context.Tag("tilld/Uncollected")<
  Uncollected,
  {
    /** As it was counted last; nothing before the first count. */
    readonly waiting: () => ReadonlyArray<UncollectedAmount>
    /** The worker. */
    readonly run: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.effect(
    Uncollected,
    Effect.gen(function* () {
      const reader = yield* Reader
      const heartbeat = (yield* Workers).worker("collecting", "1 hour")
      let waiting: ReadonlyArray<UncollectedAmount> = []
      let countedAt: number | undefined
      let collectedAt: number | undefined

      const count = Effect.gen(function* () {
        const found = new Map<string, UncollectedAmount>()
        let after: number | undefined = 0
        while (after !== undefined) {
          yield* betweenParts
          const page: ReceivedRepo.MovedPage = yield* ReceivedRepo.moved(reader, after, window)
          for (const { account, chain, collected, currency, mode, received } of page.rows) {
            const left = ReceivedRepo.leftOf(chain, currency, received - collected)
            if (left === 0n) continue
            const key = `${account} ${chain} ${mode} ${currency}`
            found.set(key, { account, chain, mode, currency, amount: left + (found.get(key)?.amount ?? 0n) })
          }
          after = page.next
        }
        waiting = [...found.values()]
      })

      const look = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const at = yield* newest(reader)
        if (countedAt !== undefined && now - countedAt < interval && at === collectedAt) return
        yield* count
        countedAt = now
        collectedAt = at
      }).pipe(Effect.catchTag("StoreUnavailable", ({ message }) => Effect.logWarning(message)))

      return {
        waiting: () => waiting,
        run: Effect.repeat(heartbeat(look), Schedule.spaced("1 minute")).pipe(
          Effect.zipRight(Effect.never),
          Effect.annotateLogs({ service: "collecting" })
        )
      }
    })
  )
}
