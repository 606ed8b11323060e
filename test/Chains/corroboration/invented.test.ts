import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reader } from "../../../src/Sql.ts"
import { alice, aroundTwo, bridged, second, upTo, usdc, watchedPayment } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"

it.scoped.each<[string, object]>([
  ["amount", { data: `0x${"500".padStart(64, "0")}` }],
  ["token", { address: bridged }]
])("a transfer that one provider reports with another %s is refuted by two", ([, over]) => {
  const first = new ModelChain(10)
  const other = first.twin()
  first.distort = ({ method }, answer) =>
    method === "eth_getLogs" ? (answer as ReadonlyArray<object>).map((log) => ({ ...log, ...over })) : answer
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    first.mine(token(usdc, alice, 5n))
    first.mineMany(5)
    for (let i = 0; i < 10; i++) yield* second
    yield* upTo(16)
    const reader = yield* Reader
    expect(yield* reader.all("SELECT corroborated, canonical, refuted FROM receipts")).toEqual([
      { corroborated: 0, canonical: 0, refuted: 1 }
    ])
  }).pipe(aroundTwo(first, other))
})
