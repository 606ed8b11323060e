import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { alice, around, second, upTo, withTokens } from "../around.ts"
import { coin, ModelChain } from "../ModelChain.ts"
import { end, ledger, pass, pay, watch } from "../world.ts"

it.scoped("native coin for an ended payment is found by the daily sweep", () => {
  const chain = new ModelChain(10)
  return Effect.gen(function* () {
    const payment = yield* pay(alice, { chain: "base", currency: "USDC" })
    yield* end(payment.id, 0)
    yield* pass("2 days")
    chain.mine(coin(alice, 5n))
    yield* watch
    for (let i = 0; i < 5; i++) yield* second
    yield* upTo(11)
    expect((yield* ledger).map(({ amount, position }) => [amount, position])).toEqual([["5", "unattributed"]])
  }).pipe(around(chain, { ...withTokens, chain: "base", rpcUrls: [Redacted.make("model:ethereum")] }))
})
