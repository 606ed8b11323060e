import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { gasOf, makeGas } from "../../../src/Chains/providers/gas.ts"
import type { RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { ChainName } from "../../../src/Domain/Chain.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { nodeClient, replies } from "../../sim/nodeClient.ts"
import { hex, word } from "../../sim/transactions.ts"
import { quiet } from "../providing.ts"

const node = (answer: (call: RpcRequest) => unknown) => nodeClient("a", (calls) => replies("a", calls, answer))

const fee = (chain: ChainName, answer: unknown) => {
  const asked: Array<unknown> = []
  const client = node(({ params }) => {
    asked.push(params)
    return answer
  })
  return Effect.map(gasOf(chain, client, 7n), (gas) => ({ gas, asked }))
}

it.effect.each<ChainName>(["optimism", "base"])("a transfer on %s costs its data on Ethereum too", (chain) =>
  Effect.gen(function* () {
    const { asked, gas } = yield* fee(chain, word(1_000n))
    expect(gas).toEqual({ price: 7n, l1Fee: 1_000n })
    // The upper bound for a transaction of 120 bytes.
    expect(asked).toEqual([
      [{ to: "0x420000000000000000000000000000000000000f", data: `0xf1c7a58b${word(120n).slice(2)}` }, "latest"]
    ])
    expect((yield* fee(chain, "0x")).gas).toEqual({ price: 7n, l1Fee: 0n })
    expect((yield* fee(chain, "0x1")).gas).toBeUndefined()
  }).pipe(quiet)
)

it.effect.each<ChainName>(["ethereum", "polygon", "arbitrum"])("a transfer on %s costs its gas alone", (chain) =>
  Effect.map(fee(chain, word(1_000n)), (found) => expect(found).toEqual({ gas: { price: 7n, l1Fee: 0n }, asked: [] }))
)

/** Price and data fee, each by one of the providers, the serving one first. */
it.effect.each<[string, said: string, expected: string]>([
  ["one of two says less", "1+900 7+1000", "1+900"],
  ["one of two says a thousand times more", "7+1000 7000+900000", "7+1000"],
  ["the serving one of three says a thousand times more", "7000+900000 7+1000 8+2000", "8+2000"],
  ["the second one of three says more of the data", "7+1000 7+900000 8+2000", "7+2000"],
  ["the last one of three says more of the data", "7+1000 8+2000 7+900000", "7+2000"],
  ["the serving one of three says less", "1+1 7+1000 7+1000", "7+1000"],
  ["the serving one of three says nothing of the price", "?+1000 7+1000 8+2000", "7+1000"]
])("the cost of a transfer is the middle one of all providers: %s", ([, said, expected]) => {
  const [first = node(() => null), ...others] = said.split(" ").map((one) => {
    const [price = "", l1Fee = ""] = one.split("+")
    return node(({ method }) => {
      if (method !== "eth_gasPrice") return word(BigInt(l1Fee))
      return price === "?" ? null : hex(BigInt(price))
    })
  })
  return Effect.map(makeGas("base", someProviders(first, ...others).providers), (gas) =>
    expect(`${gas?.price}+${gas?.l1Fee}`).toBe(expected)
  )
})
