import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { confirmations, localChain, makeHome, pay, serve } from "../lib/daemon.ts"
import { startFaultProxy } from "../lib/faultProxy.ts"
import { liveTest } from "../lib/scopedTest.ts"

liveTest("payments that were made and paid before any provider of a new chain answered are confirmed", function* () {
  const chain = yield* localChain("base")
  const provider = yield* startFaultProxy(chain.url)
  yield* provider.set("drop")
  const home = yield* makeHome({
    chains: new Map([["base", chain]]),
    rpcUrls: new Map([["base", [provider.url]]])
  })
  const daemon = yield* serve(home)
  const payments = yield* Effect.forEach(
    [
      { currency: "USDC", amount: "25000000" },
      { currency: "ETH", amount: "10000000000000000" }
    ],
    (order) => daemon.create({ ...order, chain: "base" }),
    { concurrency: 1 }
  )
  for (const payment of payments) yield* pay(chain, payment)
  yield* chain.mine(20 * confirmations)
  yield* provider.set()
  yield* daemon.hasRead(chain)
  for (const payment of payments) {
    const known = yield* daemon
      .payment(payment)
      .pipe(Effect.delay("20 millis"), Effect.repeat({ until: ({ status }) => status === "confirmed" }))
    expect(known.amountReceived).toBe(payment.amount)
  }
})
