import { Clock, Effect, Layer } from "effect"
import { Networks } from "../../src/Chains/providers/Networks.ts"
import { Chains } from "../../src/Chains.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import type { CreateQuote } from "../../src/Domain/Quote.ts"
import { Prices } from "../../src/Quotes/Prices.ts"
import { Quotes } from "../../src/Quotes.ts"
import type { SettingsShape } from "../../src/Settings.ts"
import { testChain, testRates, testSettingsLayer } from "../lib/settings.ts"
import { execute, inTransaction, tempStore } from "../lib/store.ts"

export const owner = { account: AccountId.make("shop"), mode: "test" } as const
export const other = { account: AccountId.make("other"), mode: "test" } as const
const gwei = 10n ** 9n

/** Gas costs 10 gwei on every chain but polygon, where it is unknown, and arbitrum, where it is false. */
export const chains = Layer.mock(Chains, {
  behind: () => 0,
  wake: () => {},
  viewed: () => {},
  refresh: () => Effect.void,
  exclusively: () => () => Effect.die("not asked for"),
  gas: ({ chain }) =>
    Effect.succeed(
      chain === "polygon"
        ? undefined
        : { price: (chain === "arbitrum" ? 16n : 10n) * gwei, l1Fee: chain === "optimism" ? 10n ** 14n : 0n }
    )
})

const networks = Layer.succeed(Networks, {
  providersOf: () => {
    throw new Error("fixed prices are on no chain")
  }
})

const accounts = Layer.effectDiscard(
  execute("INSERT INTO accounts (id, name, created_at) VALUES (?, 'Shop', 0), (?, 'Other', 0)", [
    owner.account,
    other.account
  ])
)

export const fixed = { ETH: "2500", MATIC: "0.5", USDC: "1", USDT: "0.999", WBTC: "65000", EUR: "1.10", MXN: "0.05" }

export const quotesWith = (over: Partial<SettingsShape> = {}, prices = Layer.provide(Prices.layer, networks)) =>
  Quotes.layer.pipe(
    Layer.provide(prices),
    Layer.provide(chains),
    Layer.provideMerge(
      testSettingsLayer("", {
        rates: testRates(fixed),
        chains: (["ethereum", "base", "polygon", "arbitrum"] as const).map((chain) => testChain({ chain })),
        ...over
      })
    ),
    Layer.provideMerge(accounts),
    Layer.provideMerge(tempStore)
  )

export const create = (request: CreateQuote) => Effect.flatMap(Quotes, (quotes) => quotes.create(owner, request))

/** The quote's own row marks nothing: a payment's does. */
export const usedBy = (quoteId: string) =>
  Effect.zipRight(
    execute("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 1)"),
    execute(
      `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address,
         wallet, wallet_index, status, created_at, expires_at, metadata, quote_id)
       VALUES ('pay_1', 't', 'shop', 'test', 'a', '1', 'ETH', 'base', '0x1', 'w', 0, 'pending', 0, 1, '{}', ?)`,
      [quoteId]
    )
  )

export type Priced = Parameters<Quotes["Type"]["lock"]>[2]

export const lock = (quoteId: string, payment: Priced, by: { account: AccountId; mode: Mode } = owner) =>
  Effect.flatMap(Quotes, (quotes) =>
    inTransaction(Effect.flatMap(Clock.currentTimeMillis, (now) => quotes.lock(by, quoteId, payment, now)))
  )
