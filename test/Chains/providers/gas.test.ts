import { expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { gasOf, makeGas } from "../../../src/Chains/providers/gas.ts"
import { makeClient, type RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { ChainName } from "../../../src/Domain/Chain.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { quiet } from "../providing.ts"

const fee = (chain: ChainName, answer: unknown) => {
  const asked: Array<RpcRequest> = []
  const client = makeClient({
    host: "a",
    counters: { calls: 0, batches: 0, sent: 0, received: 0 },
    sendEach: (calls) =>
      Effect.sync(() => {
        asked.push(...calls)
        return calls.map(() => Either.right(answer))
      })
  })
  return Effect.map(gasOf(chain, client, 7n), (gas) => ({ gas, asked }))
}
const word = (value: number) => `0x${value.toString(16).padStart(64, "0")}`

it.effect.each<ChainName>(["optimism", "base"])("a transfer on %s costs its data on Ethereum too", (chain) =>
  Effect.gen(function* () {
    const { asked, gas } = yield* fee(chain, word(1_000))
    expect(gas).toEqual({ price: 7n, l1Fee: 1_000n })
    // The upper bound for a transaction of 120 bytes.
    expect(asked.map(({ params }) => params)).toEqual([
      [{ to: "0x420000000000000000000000000000000000000f", data: `0xf1c7a58b${word(120).slice(2)}` }, "latest"]
    ])
    expect((yield* fee(chain, "0x")).gas).toEqual({ price: 7n, l1Fee: 0n })
    expect((yield* fee(chain, "0x1")).gas).toBeUndefined()
  }).pipe(quiet)
)

it.effect.each<ChainName>(["ethereum", "polygon", "arbitrum"])("a transfer on %s costs its gas alone", (chain) =>
  Effect.map(fee(chain, word(1_000)), ({ asked, gas }) => {
    expect(gas).toEqual({ price: 7n, l1Fee: 0n })
    expect(asked).toEqual([])
  })
)

it.effect(
  "the cost of a transfer is the median of all providers, in price and in data, whichever provider differs",
  () =>
    Effect.gen(function* () {
      const node = (price: number, l1Fee: number) =>
        makeClient({
          host: `${price} ${l1Fee}`,
          counters: { calls: 0, batches: 0, sent: 0, received: 0 },
          sendEach: (calls) =>
            Effect.succeed(
              calls.map(({ method }) =>
                Either.right(method === "eth_gasPrice" ? `0x${price.toString(16)}` : word(l1Fee))
              )
            )
        })
      const [low, dear, high] = [node(7, 1_000), node(7, 900_000), node(8, 2_000)]
      for (const nodes of [[dear, low, high] as const, [low, dear, high] as const, [low, high, dear] as const]) {
        expect(yield* makeGas("base", someProviders(...nodes).providers)).toMatchObject({ price: 7n, l1Fee: 2_000n })
      }
      expect(yield* makeGas("base", someProviders(dear, low).providers)).toMatchObject({ price: 7n, l1Fee: 1_000n })
    })
)
