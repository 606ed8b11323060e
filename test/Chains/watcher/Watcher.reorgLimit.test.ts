import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { alice, around, second, upTo, usdc, watchedPayment } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { ledger } from "../world.ts"

it.scoped("a reorg deeper than the provider's block range is followed", () => {
  const chain = new ModelChain(10)
  chain.intercept = (batch) => {
    const isTooMuch = batch.some(({ method, params: [of] }) => {
      const { fromBlock, toBlock } = (of ?? {}) as { fromBlock?: string; toBlock?: string }
      return method === "eth_getLogs" && fromBlock !== undefined && Number(toBlock) - Number(fromBlock) >= 10
    })
    chain.failure = isTooMuch ? "range" : undefined
  }
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    for (let i = 0; i < 15; i++) {
      chain.mine()
      yield* second
    }
    yield* upTo(25)
    chain.rollback(14)
    chain.mineMany(10)
    chain.mine(token(usdc, alice, 5n))
    chain.mineMany(4)
    for (let i = 0; i < 60; i++) yield* second
    yield* upTo(chain.height)
    expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
  }).pipe(around(chain))
})
