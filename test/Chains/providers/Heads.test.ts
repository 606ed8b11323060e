import { expect } from "@effect/vitest"
import { Heads } from "../../../src/Chains/providers/Heads.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { ModelChain } from "../ModelChain.ts"
import { errorOf } from "../providing.ts"

/** Whether a provider whose head stands at 10 is overtaken by another one. */
const look = (other: RpcClient) => {
  const { provider, providers } = someProviders(new ModelChain(10).client, other)
  return new Heads(providers, 3).stands(provider, 10)
}

clockTest("a stalled head lags behind one that is two blocks higher, and behind no lower one", function* () {
  for (const head of [8, 10, 11]) expect(yield* look(new ModelChain(head).client)).toBeUndefined()
  expect(yield* look(new ModelChain(12).client)).toMatchObject({ host: "model", reason: "behind" })
  const silent: RpcClient = { ...new ModelChain(12).client, send: () => errorOf("silent", "timeout") }
  expect(yield* look(silent)).toBeUndefined()
})

clockTest("another provider whose head cannot be read has failed", function* () {
  const garbled: RpcClient = { ...new ModelChain(12).client, send: () => errorOf("garbled", "garbage") }
  const { aside, provider, providers } = someProviders(new ModelChain(10).client, garbled)
  expect(yield* new Heads(providers, 3).stands(provider, 10)).toBeUndefined()
  expect(aside).toEqual(["garbage"])
})
