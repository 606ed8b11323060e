import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { alice, around, aroundTwo, second, upTo } from "../around.ts"
import { coin, ModelChain } from "../ModelChain.ts"
import { committedTo, ledger, pay, watch } from "../world.ts"

/** Reports a head with a wrong number. */
const wrong = (answer: unknown) => ({ ...(answer as object), number: "0x3b9aca00" })

/** A head far above the chain's is reported while no address is watched; then a payment is paid. */
const paidAfterwards = (chain: ModelChain) =>
  Effect.gen(function* () {
    yield* watch
    yield* committedTo(10)
    for (let i = 0; i < 70; i++) yield* second
    yield* pay(alice)
    chain.mine(coin(alice, 5n))
    chain.mineMany(5)
    yield* Effect.raceFirst(upTo(16), Effect.forever(second))
    expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
  })

it.scoped("a single head far above the chain's does not make all later heads lag behind it", () => {
  const chain = new ModelChain(10)
  let told = 0
  chain.distort = ({ method, params: [tag] }, answer) =>
    // Reading starts from the first head.
    method === "eth_getBlockByNumber" && tag === "latest" && ++told === 3 ? wrong(answer) : answer
  return paidAfterwards(chain).pipe(around(chain))
})

it.scoped("a provider that reports such a head every time does not either", () => {
  const liar = new ModelChain(10)
  const other = liar.twin()
  let told = 0
  liar.distort = ({ method, params: [tag] }, answer) => {
    if (method !== "eth_getBlockByNumber") return answer
    return tag === "0x3b9aca00" || (tag === "latest" && ++told > 2)
      ? wrong(answer ?? { ...liar.blocks[10], timestamp: "0x64" })
      : answer
  }
  return paidAfterwards(other).pipe(aroundTwo(liar, other))
})
