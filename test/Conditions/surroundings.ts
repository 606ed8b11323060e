import { BigDecimal, Effect, Layer } from "effect"
import { type ChainHealth, Chains } from "../../src/Chains.ts"
import type { AccountId } from "../../src/Domain/Ids.ts"
import { Uncollected, type UncollectedAmount } from "../../src/Payments/addresses/Uncollected.ts"
import { type PriceStatus, Prices } from "../../src/Quotes/Prices.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"

export interface Around {
  /** Of the oldest webhook that is due. */
  readonly oldestDueMillis?: number
  readonly status?: () => ReadonlyArray<PriceStatus>
}

/** What the daemon is beside: so many millionths of a USDC of the live mode wait to be collected, and as many of the test mode. */
export const waitingToCollect = (amount: bigint, { oldestDueMillis = 0, status = () => [] }: Around = {}) => {
  const row: UncollectedAmount = {
    account: "default" as AccountId,
    chain: "base",
    mode: "live",
    currency: "USDC",
    amount
  }
  const rows: ReadonlyArray<UncollectedAmount> = amount === 0n ? [] : [row, { ...row, mode: "test" }]
  return Layer.mergeAll(
    Layer.mock(Uncollected, { waiting: () => rows }),
    Layer.mock(Dispatcher, { run: Effect.never, health: Effect.succeed({ due: 0, oldestDueMillis }) }),
    Layer.mock(Prices, {
      usd: (symbol) => (symbol === "USDC" ? BigDecimal.unsafeFromString("1") : undefined),
      of: () => {
        throw new Error("not asked for here")
      },
      status,
      reported: () => []
    })
  )
}

/** Chains in the health that they have at each look. */
export const chainsOf = (health: () => ReadonlyArray<ChainHealth>) =>
  Layer.mock(Chains, {
    health: Effect.sync(health),
    exclusively: () => () => Effect.never,
    wake: () => undefined,
    viewed: () => undefined,
    behind: () => 0
  })
