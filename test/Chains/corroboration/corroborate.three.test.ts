import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Reader } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, next, upTo, usdc, watchedPayment, withTokens } from "../around.ts"
import { ModelChain, modelRpc, token } from "../ModelChain.ts"
import { notingSettlement, world } from "../world.ts"

it.scoped("a receipt that the second provider lacks is corroborated where a third one has it", () => {
  const first = new ModelChain(10)
  const lacking = first.twin()
  lacking.distort = ({ method }, answer) => (method === "eth_getTransactionReceipt" ? null : answer)
  const chains = { "model:first": first, "model:second": lacking, "model:third": first.twin() }
  const settings = { ...withTokens, rpcUrls: Object.keys(chains).map((url) => Redacted.make(url)) }
  const test = Effect.gen(function* () {
    yield* watchedPayment(alice)
    yield* next(first, token(usdc, alice, 5n))
    for (let i = 0; i < 4; i++) yield* next(first)
    yield* upTo(15)
    const reader = yield* Reader
    expect(yield* reader.all("SELECT corroborated FROM receipts")).toEqual([{ corroborated: 1 }])
  })
  return Effect.flatMap(temporaryDatabase, (path) =>
    Effect.provide(test, world(path, [settings], modelRpc(chains), notingSettlement))
  )
})
